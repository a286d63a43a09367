#pragma once
// What bmm and outer ask of their operands before they call matmul.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad::detail {

/// Throws an error unless both are stacks of matrices, of one size and type, that can be
/// multiplied.
void check_bmm(const Tensor& left, const Tensor& right);
/// Throws an error unless both are vectors of one type.
void check_outer(const Tensor& a, const Tensor& b);

}  // namespace glassgrad::detail
