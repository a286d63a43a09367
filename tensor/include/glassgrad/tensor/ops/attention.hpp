#pragma once
// Attention, the products it is made of, and dropout.
//
// What a mask hides leaks nowhere, whatever it is: the products here take nothing from a value
// whose weight is exactly 0, where 0 times infinity would be NaN, and softmax's derivative does
// the same. The results are those of `matmul` to the bit when all values are finite.

#include <glassgrad/tensor/counter_rng.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

namespace glassgrad {

/// q kᵀ: q (..., query, d) and k (..., key, d) give (..., query, key); leading axes broadcast.
Tensor attention_scores(const Tensor& q, const Tensor& k);

struct WeightedSumOptions {
    bool transpose_weights = false;  ///< take weights as (..., key, query)
};
/// sum_j weights[..., i, j] values[..., j, d]: the product of weights (..., query, key) and values
/// (..., key, d), in which a weight of exactly 0 takes nothing from its value, even infinity or
/// NaN.
Tensor weighted_sum(const Tensor& weights, const Tensor& values,
                    const WeightedSumOptions& options = {});

struct DropoutOptions {
    double p = 0.5;  ///< probability that an element is dropped
};
/// x with elements set to 0 with probability p and the others divided by 1 - p. Draws one number an
/// element from `rng` (none for p = 0): the same mask for any number of threads and for any type.
/// Throws ValueError unless 0 <= p <= 1. Source: Srivastava et al. 2014.
Tensor dropout(const Tensor& x, CounterRng& rng, const DropoutOptions& options = {});

/// How attention is computed; the result is the same up to rounding.
enum class AttentionForm : std::uint8_t {
    /// Tiled when there are 8 queries or more, queries times keys reach
    /// `tiled_attention_threshold`, nobody observes, and the leading axes of q, k and v are as it
    /// needs them; else named, which is one op for few queries and keys while nobody observes.
    automatic,
    named,  ///< step by step: memory grows with queries times keys
    tiled,  ///< no step is kept: memory grows with queries plus keys
};
/// From here on tiles are faster, forward with backward, and save memory.
inline constexpr std::int64_t tiled_attention_threshold = 16 * 16;

/// All restrictions and additions may come together. A query i is at position p = i + keys -
/// queries among the keys, so that the last query is at the last key.
template <class V>
struct AttentionOptionsOf {
    /// What scores are multiplied by; 1/√d if not given.
    std::optional<double> scale = {};
    /// Broadcasts to (..., query, key). boolean: true where a query may look. Floating: added to
    /// the scaled scores; -inf hides, and takes no gradient.
    V mask = {};
    /// Broadcasts to (..., query, key). Added to the scaled scores, as a floating mask is.
    V bias = {};
    /// A query sees the keys up to its position.
    bool causal = false;
    /// A query sees a key j only if |p - j| < window; 0 for all.
    std::int64_t window = 0;
    /// (heads,): slopes of a bias of -slope |p - j|. Constant: takes no gradient.
    /// Source: Press, Smith and Lewis 2022, "Train short, test long" (ALiBi).
    V alibi = {};
    /// Probability that a weight is dropped; needs `rng`.
    double dropout_p = 0;
    CounterRng* rng = nullptr;
    AttentionForm form = AttentionForm::automatic;
    /// 0: heads are an axis. Else they lie side by side, as a projection leaves them: q (...,
    /// query, heads d), k (..., key, kv_heads d), v (..., key, kv_heads d_v), and the result (...,
    /// query, heads d_v). Masks and biases are as for heads on an axis.
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;  ///< 0: as many as q has
    /// Queries, and keys, in a tile of the tiled form; 0 for its own choice.
    std::int64_t tile = 0;
    /// Called with each step and its name (that of AttentionStepsOf) as it is computed; returns
    /// what is used in its place. Asks for the named form.
    std::function<V(std::string_view step, const V& value)> on_step = {};
};

/// All that attention computes on the way.
template <class V>
struct AttentionStepsOf {
    V scores;   ///< q kᵀ            (..., heads, query, key)
    V scaled;   ///< scores scale
    V masked;   ///< with what is added, -inf where a query may not look; undefined without both
    V weights;  ///< softmax over the keys; a query that may look nowhere has zeros
    V dropped;  ///< weights after dropout; undefined without
    V output;   ///< weights v       (..., heads, query, d_v)
};

using SdpaOptions = AttentionOptionsOf<Tensor>;
using SdpaSteps = AttentionStepsOf<Tensor>;

/// softmax(q kᵀ scale + mask + bias + alibi) v, for q (..., heads, query, d), k (..., heads, key,
/// d) and v (..., heads, key, d_v). With fewer heads in k and v than in q (which must be a
/// multiple), each of them serves a group of q's heads that lie together. A query that sees no key
/// gives zeros and takes zero gradients. Throws ShapeError, TypeError or ValueError unless all fits
/// together. Source: Vaswani et al. 2017, equation 1.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const SdpaOptions& options = {});
/// The same in tiles, whatever `form` says. Memory grows with queries plus keys. Throws ShapeError
/// unless q, k and v have the same leading axes, but for heads of k and v that divide q's.
/// Sources: Milakov and Gimelshein 2018; Dao et al. 2022 (FlashAttention).
Tensor tiled_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const SdpaOptions& options = {});
/// The same with all steps, the weights among them: always in the named form.
SdpaSteps scaled_dot_product_attention_steps(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const SdpaOptions& options = {});

struct ProjectedAttentionOptions {
    bool causal = false;  ///< a query sees the keys up to its position
};
/// softmax(q kᵀ/√d) v with q = x w_q, k = x w_k and v = x w_v: attention of one head with its
/// projections, for x (..., token, d_model), w_q and w_k (d_model, d) and w_v (d_model, d_v).
/// Throws ShapeError or TypeError unless all fits together.
Tensor projected_attention(const Tensor& x, const Tensor& w_q, const Tensor& w_k, const Tensor& w_v,
                           const ProjectedAttentionOptions& options = {});

}  // namespace glassgrad
