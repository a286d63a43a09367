#pragma once
// Attention of few queries and keys in one call: the steps of the named form, with its kernels and
// so its bits, one (query, key) matrix after the other in memory that stays in the first cache.

#include <glassgrad/tensor/detail/attend.hpp>

#include <array>
#include <cstdint>
#include <optional>

namespace glassgrad::detail {

/// A call without masks, window, ALiBi and dropout.
struct SmallCall {
    double scale = 1;
    bool causal = false;
    std::int64_t heads = 0;  ///< side by side; 0: an axis of their own
};

/// The call, if it is small enough and nothing about it is wrong or out of the ordinary. `watched`:
/// someone wants to see the steps.
std::optional<SmallCall> small_call(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const SdpaOptions& options, bool watched);

struct SmallResult {
    Tensor output;
    Tensor weights;  ///< softmax's, (..., heads, query, key)
};
SmallResult attend_small(const Tensor& q, const Tensor& k, const Tensor& v, const SmallCall& call);

/// The gradients of q, k and v that are wanted; the others stay undefined.
std::array<Tensor, 3> attend_small_vjp(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& weights, const Tensor& gy,
                                       const SmallCall& call, const std::array<bool, 3>& wanted);

/// A small call whose q, k and v are x (..., token, d) times three matrices.
struct ProjectedResult {
    Tensor output;
    std::array<Tensor, 4> kept;  ///< q, k, v and the weights
};
/// The call, if it is small enough and nothing about it is wrong: x and w_q, w_k, w_v.
std::optional<SmallCall> small_projected_call(const std::array<const Tensor*, 4>& inputs,
                                              bool causal, bool watched);
ProjectedResult project_small(const std::array<const Tensor*, 4>& inputs, const SmallCall& call);
/// The gradients of x and the three matrices that are wanted; the others stay undefined.
std::array<Tensor, 4> project_small_vjp(const std::array<const Tensor*, 4>& inputs,
                                        const std::array<Tensor, 4>& kept, const Tensor& gy,
                                        const SmallCall& call, const std::array<bool, 4>& wanted);

}  // namespace glassgrad::detail
