#pragma once
// Products of matrices and of any two tensors.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/product.hpp>

namespace glassgrad {

/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; operands may be read
/// transposed. Derivative: ga = gy bᵀ, gb = aᵀ gy. Throws ShapeError unless inner sizes agree.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

}  // namespace glassgrad
