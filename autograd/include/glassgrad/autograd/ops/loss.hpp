#pragma once
// Losses. The mean over nothing (an empty batch, all targets ignored) is 0, and so is its gradient.
// Targets get gradients, too, where they are no class numbers.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/loss.hpp>

namespace glassgrad {

/// -sum_c q[c] log_softmax(logits)[c], averaged, where q is 1 at the class of the target (i64) or
/// is given by probabilities. Rows that are ignored take zero gradient whatever they hold.
/// Derivative: glogits = g (softmax(logits) sum(q) - q), with g = gy / (weight of all that count).
Variable cross_entropy(const Variable& logits, const Variable& target,
                       const CrossEntropyOptions& options = {});
/// glogits of cross_entropy with class numbers. Itself composed of ops when recorded.
Variable cross_entropy_vjp(const Variable& logits, const Variable& target, const Variable& gy,
                           const CrossEntropyOptions& options);
/// -weight[t] log_p[t], averaged. Derivative: glog_p = -g weight[t] at the class of the target.
Variable nll_loss(const Variable& log_p, const Variable& target,
                  const CrossEntropyOptions& options = {});

/// (x - target)², reduced. Derivative: gx = 2 g (x - target), gtarget = -gx.
Variable mse_loss(const Variable& x, const Variable& target, const LossOptions& options = {});
/// |x - target|, reduced. Derivative: gx = g sign(x - target), 0 at 0; gtarget = -gx.
Variable l1_loss(const Variable& x, const Variable& target, const LossOptions& options = {});
/// d²/2 for |d| <= delta, else delta (|d| - delta/2), with d = x - target.
/// Derivative: gx = g clamp(d, -delta, delta), gtarget = -gx.
Variable huber_loss(const Variable& x, const Variable& target, const HuberOptions& options = {});
/// pos_weight t softplus(-x) + (1 - t) softplus(x), reduced.
/// Derivative: gx = g ((1 - t) sigmoid(x) - pos_weight t sigmoid(-x)),
/// gt = g (pos_weight softplus(-x) - softplus(x)).
Variable bce_with_logits(const Variable& x, const Variable& target, const BceOptions& options = {});
/// t (log t - x), reduced; 0 where t is 0.
/// Derivative: gx = -g t, gt = g (log t + 1 - x), 0 where t is 0.
Variable kl_div(const Variable& x, const Variable& target, const KlDivOptions& options = {});

}  // namespace glassgrad
