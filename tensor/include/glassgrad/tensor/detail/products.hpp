#pragma once
// What bmm and outer ask of shapes before they call matmul.

#include <glassgrad/tensor/shape.hpp>

namespace glassgrad::detail {

/// Throws ShapeError unless both are stacks of matrices, of one size, that can be multiplied.
void check_bmm(const Shape& a, const Shape& b);
/// Throws ShapeError unless both are vectors.
void check_outer(const Shape& a, const Shape& b);

}  // namespace glassgrad::detail
