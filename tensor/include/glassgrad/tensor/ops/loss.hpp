#pragma once
// Losses. The mean over nothing (an empty batch, all targets ignored) is 0, and so is its gradient.

#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>

namespace glassgrad {

/// What becomes of the losses of the single elements.
enum class Reduction : std::uint8_t {
    none,
    sum,
    mean,        ///< over all elements; for classes, over the weights of those that count
    batch_mean,  ///< the sum divided by the size of the first axis
};

struct CrossEntropyOptions {
    /// The axis of the classes: the last one, as in logits (batch, time, classes). PyTorch's
    /// (batch, classes, time) is `.axis = 1`.
    std::int64_t axis = -1;
    /// What each class counts: f32 or f64 (classes,), none negative; undefined: 1 each.
    Tensor weight = {};
    /// Targets of this value don't count, even if it is the number of a class.
    std::int64_t ignore_index = -100;
    Reduction reduction = Reduction::mean;
    /// This part of each target goes to all classes evenly; 0 to 1.
    double label_smoothing = 0;
};

/// -sum_c q[c] log_softmax(logits)[c], averaged, where q is 1 at the target's class.
/// `target` is i64 of the shape of `logits` without the axis of the classes, or floating of its
/// whole shape: probabilities. With weights, the mean is over the weights of the targets that
/// count (class numbers) or over the rows (probabilities), as in PyTorch.
/// Ignored rows count nothing whatever their logits are; when none is left the mean is 0 (PyTorch:
/// NaN). Throws IndexError with value, place and bound for a target outside the classes.
Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options = {});
/// g of the logits of `cross_entropy` with class numbers along the last axis.
Tensor cross_entropy_vjp(const Tensor& logits, const Tensor& target, const Tensor& gy,
                         const CrossEntropyOptions& options);

/// -weight[t] log_p[t], averaged: cross_entropy of what is log probabilities already. Targets are
/// class numbers; `label_smoothing` is not taken.
Tensor nll_loss(const Tensor& log_p, const Tensor& target, const CrossEntropyOptions& options = {});

struct LossOptions {
    Reduction reduction = Reduction::mean;
};

/// (x - target)². x and target have one shape: none is broadcast, which would hide a mistake.
Tensor mse_loss(const Tensor& x, const Tensor& target, const LossOptions& options = {});
/// |x - target|.
Tensor l1_loss(const Tensor& x, const Tensor& target, const LossOptions& options = {});

struct HuberOptions {
    Reduction reduction = Reduction::mean;
    double delta = 1;  ///< from here on the loss is linear; must be positive
};
/// d²/2 for |d| <= delta, else delta (|d| - delta/2), where d = x - target. Source: Huber 1964.
Tensor huber_loss(const Tensor& x, const Tensor& target, const HuberOptions& options = {});

struct BceOptions {
    Reduction reduction = Reduction::mean;
    double pos_weight = 1;  ///< what a target of 1 counts
};
/// pos_weight t softplus(-x) + (1 - t) softplus(x): binary cross entropy of sigmoid(x), exact for
/// any x. A side that counts 0 is 0 even where its softplus is infinite.
Tensor bce_with_logits(const Tensor& x, const Tensor& target, const BceOptions& options = {});

struct KlDivOptions {
    Reduction reduction = Reduction::mean;
    bool log_target = false;  ///< `target` holds logarithms of probabilities
};
/// t (log t - x) with x log probabilities; 0 where t is 0. `batch_mean` is what the mathematical
/// divergence of a batch is; `mean` divides by all elements, as PyTorch does.
Tensor kl_div(const Tensor& x, const Tensor& target, const KlDivOptions& options = {});

}  // namespace glassgrad
