#pragma once
// Attention without its (query, key) matrices: scores are computed a tile at a time, forward with a
// running maximum and sum, backward once more from what is known of each row. So memory grows with
// queries plus keys. Masks, window, ALiBi and dropout are evaluated where a tile is.
// Sources: Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao, Fu,
// Ermon, Rudra and Ré 2022, "FlashAttention".

#include <glassgrad/tensor/detail/attend.hpp>

#include <cstdint>

namespace glassgrad::detail {

/// A call as its derivative needs it, when the caller's generator has moved on.
struct TiledCall {
    double scale = 1;
    Tensor mask = {};  ///< boolean or floating; may be undefined, as bias and alibi
    Tensor bias = {};
    bool causal = false;
    std::int64_t window = 0;
    Tensor alibi = {};
    double dropout_p = 0;
    CounterRng rng{0};  ///< as it was before the call
    std::int64_t tile = 0;
    std::int64_t heads = 0;  ///< of q, side by side; 0: an axis of their own
    std::int64_t kv_heads = 0;
    bool keeps = false;  ///< weights for the derivative, where they take little memory
};

/// (..., heads, tokens, width) for heads that lie side by side; the shape itself for 0 heads.
Shape heads_shape(const Shape& shape, std::int64_t heads);
/// The shape of the scores q kᵀ.
Shape scores_shape(const Shape& q, const Shape& k);

/// Whether the leading axes are as tiles need them: equal, but for heads of k and v that divide
/// q's.
bool tiles_fit(const Shape& q, const Shape& k, const Shape& v);
/// The form that a call takes; `watched`: someone wants to see the steps.
bool takes_tiles(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options,
                 bool watched);

/// Checks all, and moves the caller's generator as the named form does. Throws as attention does.
TiledCall tiled_call(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options);

struct TiledResult {
    Tensor output;
    /// f64 (..., heads, query, 2): the largest score of a row, and the sum of exp(score - largest).
    Tensor rows;
    Tensor weights;  ///< softmax's, as whole_attention.hpp lays them; undefined unless kept
};
/// q (..., heads, query, d), k and v with the same leading axes, but for heads that divide q's; or
/// (..., query, heads d) and so on, as `call.heads` says.
TiledResult attend_in_tiles(const Tensor& q, const Tensor& k, const Tensor& v,
                            const TiledCall& call);

/// One for each of q, k, v, mask and bias.
struct TiledGradients {
    Tensor q, k, v, mask, bias;
};
struct TiledWanted {
    bool q = false, k = false, v = false, mask = false, bias = false;
};
/// The gradients that are wanted; the others stay undefined. Weights that weren't kept are computed
/// again.
TiledGradients attend_in_tiles_vjp(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const TiledCall& call, const TiledResult& result,
                                   const Tensor& gy, const TiledWanted& wanted);

}  // namespace glassgrad::detail
