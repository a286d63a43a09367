#pragma once
// Where an element is, for texts about it.

#include <glassgrad/tensor/shape.hpp>

#include <cstdint>

namespace glassgrad::detail {

/// The index of element `offset`, in row-major order, of a `shape` that has it.
inline Shape place(std::int64_t offset, const Shape& shape) {
    Shape index = shape;
    for (int i = shape.rank() - 1; i >= 0; --i) {
        index[i] = offset % shape[i];
        offset /= shape[i];
    }
    return index;
}

}  // namespace glassgrad::detail
