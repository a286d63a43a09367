#pragma once
// Updates of optimizers, in place: one pass over a parameter, its gradient and its state. All
// tensors of a call have one shape and one floating type; who calls has checked that. Elements are
// computed in that type, in PyTorch's order of operations.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad::detail {

/// Copies what others hold as well, so that the next write to x needs no memory.
void own(Tensor& x);

/// The sum of the squares of a floating x, in f64.
double sum_of_squares(const Tensor& x);

struct SgdStep {
    double grad_scale;  ///< of the gradient as it is read, here and below
    double lr;
    double momentum;
    double dampening;
    double weight_decay;
    bool nesterov;
    bool first;  ///< the momentum starts as the gradient
};
/// `velocity` is undefined without momentum.
void sgd_update(Tensor& w, const Tensor& g, Tensor& velocity, const SgdStep& step);

struct AdamStep {
    double grad_scale;
    double lr;
    double beta1;
    double beta2;
    double eps;
    double weight_decay;
    bool decoupled;      ///< AdamW's decay
    double correction1;  ///< 1 - beta1ⁿ of the n-th step
    double correction2;  ///< 1 - beta2ⁿ
};
void adam_update(Tensor& w, const Tensor& g, Tensor& mean, Tensor& square, const AdamStep& step);

struct LionStep {
    double grad_scale;
    double lr;
    double beta1;
    double beta2;
    double weight_decay;
};
void lion_update(Tensor& w, const Tensor& g, Tensor& mean, const LionStep& step);

/// x becomes a x + b y.
void blend(Tensor& x, double a, const Tensor& y, double b);

}  // namespace glassgrad::detail
