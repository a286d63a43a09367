#pragma once
// A dense tensor as three axes, for loops along one of its own.

#include <glassgrad/tensor/shape.hpp>

#include <cstdint>

namespace glassgrad::detail {

/// `outer` blocks of `size` runs of `inner` elements.
struct Along {
    std::int64_t outer = 1;
    std::int64_t size;
    std::int64_t inner = 1;

    Along(const Shape& shape, int axis) : size(shape[axis]) {
        for (int i = 0; i < axis; ++i) outer *= shape[i];
        for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
    }
};

}  // namespace glassgrad::detail
