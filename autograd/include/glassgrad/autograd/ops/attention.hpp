#pragma once
// Attention, the products it is made of, and dropout. What a mask hides leaks nowhere: see
// <glassgrad/tensor/ops/attention.hpp>.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/attention.hpp>

namespace glassgrad {

/// y = q kᵀ. Derivative: gq = weighted_sum(gy, k), gk = weighted_sum(gyᵀ, q).
Variable attention_scores(const Variable& q, const Variable& k);
/// y = weights values, in which a weight of exactly 0 takes nothing from its value, even infinity
/// or NaN. Derivative: gweights = gy valuesᵀ, gvalues = weighted_sum(weightsᵀ, gy).
Variable weighted_sum(const Variable& weights, const Variable& values,
                      const WeightedSumOptions& options = {});

/// y = x / (1 - p) with probability 1 - p, else 0. Derivative: gx = gy / (1 - p) where x was kept,
/// exactly 0 elsewhere.
Variable dropout(const Variable& x, CounterRng& rng, const DropoutOptions& options = {});

using AttentionOpOptions = AttentionOptionsOf<Variable>;
using AttentionSteps = AttentionStepsOf<Variable>;

/// softmax(q kᵀ scale + mask + bias + alibi) v, in the form that `form` names. The named one is
/// made of ops that are recorded one by one: attention_scores, scale, add, where, softmax, dropout
/// and weighted_sum, or matmul where nothing is hidden; or of one, with their bits, for up to
/// `tiled_attention_threshold` scores a head of no mask, bias, window or dropout, while nobody
/// observes. The tiled one is `tiled_attention`. A
/// floating mask and the bias get their gradients. Throws GraphError when the slopes of alibi
/// require one, which would be lost.
Variable scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                      const AttentionOpOptions& options = {});
/// The same in tiles, as one op. Memory grows with queries plus keys, forward and backward; the
/// backward pass computes the weights again. Derivatives of its derivatives (create_graph) are
/// recorded in the named form, whose memory grows with queries times keys. Throws ShapeError unless
/// q, k and v have the same leading axes, but for heads of k and v that divide q's.
Variable tiled_attention(const Variable& q, const Variable& k, const Variable& v,
                         const AttentionOpOptions& options = {});
/// The same with all steps, the weights among them: always in the named form.
AttentionSteps scaled_dot_product_attention_steps(const Variable& q, const Variable& k,
                                                  const Variable& v,
                                                  const AttentionOpOptions& options = {});

/// softmax(q kᵀ/√d) v with q = x w_q, k = x w_k and v = x w_v: as one op for so few tokens that
/// scaled_dot_product_attention is one, else in its steps. Shapes: x (..., token, d_model), w_q and
/// w_k (d_model, d), w_v (d_model, d_v), result (..., token, d_v). Derivative: that of the steps.
/// Throws ShapeError or TypeError unless all fits together.
Variable projected_attention(const Variable& x, const Variable& w_q, const Variable& w_k,
                             const Variable& w_v, const ProjectedAttentionOptions& options = {});

}  // namespace glassgrad
