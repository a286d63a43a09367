#pragma once
// Products of matrices and of any two tensors.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

struct MatmulOptions {
    bool transpose_a = false;  ///< take a as (..., k, m)
    bool transpose_b = false;  ///< take b as (..., n, k)
};
/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; transposed operands are
/// read in place. A vector counts as a row on the left, a column on the right, as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

}  // namespace glassgrad
