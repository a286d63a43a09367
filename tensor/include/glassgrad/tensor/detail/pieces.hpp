#pragma once
// How split and chunk cut an axis, for tensors and whatever holds one.

#include <glassgrad/tensor/ops/shape.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace glassgrad::detail {

/// Pieces of `size`, the last as long as is left. Throws ValueError.
std::vector<std::int64_t> split_sizes(const Shape& shape, std::int64_t size, std::int64_t axis);
/// The sizes themselves, once they make up the axis. Throws ValueError or ShapeError.
std::vector<std::int64_t> split_sizes(const Shape& shape, std::span<const std::int64_t> sizes,
                                      std::int64_t axis);
/// Pieces of the same size, rounded up. Throws ValueError.
std::vector<std::int64_t> chunk_sizes(const Shape& shape, std::int64_t count, std::int64_t axis);

/// One slice a size, one after the other.
template <class V>
std::vector<V> pieces(const V& x, const std::vector<std::int64_t>& sizes, std::int64_t axis) {
    std::vector<V> result;
    result.reserve(sizes.size());
    std::int64_t start = 0;
    for (const std::int64_t size : sizes) {
        result.push_back(slice(x, axis, {.start = start, .stop = start + size}));
        start += size;
    }
    return result;
}

}  // namespace glassgrad::detail
