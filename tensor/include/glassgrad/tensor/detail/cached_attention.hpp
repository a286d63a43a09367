#pragma once
// Attention of the newest tokens to keys and values that are kept with room for more.

#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>

namespace glassgrad::detail {

/// softmax(q kᵀ scale) v of q (batch, heads, queries, width), whose last query stands at the last
/// of the first `length` places of keys and values (batch, kv_heads, room, width) and whose queries
/// see the places up to their own. One floating type, heads a multiple of kv_heads; who calls has
/// checked that.
Tensor cached_attention(const Tensor& q, const Tensor& keys, const Tensor& values,
                        std::int64_t length, double scale);

/// Writes x (batch, heads, tokens, width) into the places of `room` (batch, heads, more, width)
/// from `begin` on.
void put_tokens(Tensor& room, const Tensor& x, std::int64_t begin);
/// `room` with `places` places, whose first `length` are those of `room`; (…, length, width) for
/// `places` = `length`.
Tensor with_room(const Tensor& room, std::int64_t length, std::int64_t places);

}  // namespace glassgrad::detail
