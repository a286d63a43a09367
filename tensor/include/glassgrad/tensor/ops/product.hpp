#pragma once
// Products of matrices and of any two tensors.

#include <glassgrad/tensor/tensor.hpp>

#include <string_view>

namespace glassgrad {

struct MatmulOptions {
    bool transpose_a = false;  ///< take a as (..., k, m)
    bool transpose_b = false;  ///< take b as (..., n, k)
};
/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; transposed operands are
/// read in place. A vector counts as a row on the left, a column on the right, as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});
/// x weightᵀ + bias, of x (..., in), weight (out, in) and bias (out,), which is left out if it is
/// undefined: the numbers of `matmul` and `add` in one pass. Throws ShapeError or TypeError.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);
/// `matmul` of stacks a (batch, m, k) and b (batch, k, n), of rank 3 and the same batch: nothing
/// broadcasts. Throws ShapeError.
Tensor bmm(const Tensor& a, const Tensor& b);
/// y[i, j] = a[i] b[j] of two vectors. Throws ShapeError on other ranks (np.outer flattens).
Tensor outer(const Tensor& a, const Tensor& b);

/// Sum of products by index letters, `einsum("bqd,bkd->bqk", q, k)`: letters a to z and A to Z name
/// axes; those that the output leaves out are summed. `...` stands for leading batch axes, which
/// broadcast. A letter twice in one operand takes the diagonal. Without `->` the output has `...`
/// and the letters that appear once, in alphabetical order. Letters do not broadcast: a size of 1
/// beside another is refused.
/// Throws ValueError on an equation that cannot be read, ShapeError when the shapes do not fit it.
Tensor einsum(std::string_view equation, const Tensor& a, const Tensor& b);
Tensor einsum(std::string_view equation, const Tensor& a);

}  // namespace glassgrad
