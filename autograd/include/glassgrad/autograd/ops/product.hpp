#pragma once
// Products of matrices and of any two tensors.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/product.hpp>

#include <string_view>

namespace glassgrad {

/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; operands may be read
/// transposed. Derivative: ga = gy bᵀ, gb = aᵀ gy; with transpose_b alone, as a layer multiplies by
/// its weight, rows of a whose gradient is exactly 0 take no part in gb, even if they are NaN.
/// Throws ShapeError unless inner sizes agree.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});
/// x weightᵀ + bias, of x (..., in), weight (out, in) and bias (out,), which may be undefined.
/// Derivative: gx = gy weight, gweight = gyᵀ x, gbias = gy summed over all but its last axis. Rows
/// of x whose gradient is exactly 0 take no part in gweight, even if they are NaN. Recorded as
/// `matmul` and `add` while somebody watches. Throws ShapeError or TypeError.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias);
/// `matmul` of stacks a (batch, m, k) and b (batch, k, n), of rank 3 and the same batch: nothing
/// broadcasts. Derivative: ga = gy bᵀ, gb = aᵀ gy. Throws ShapeError.
Variable bmm(const Variable& a, const Variable& b);
/// y[i, j] = a[i] b[j] of two vectors. Derivative: ga = gy b, gb = gyᵀ a. Throws ShapeError on
/// other ranks (np.outer flattens).
Variable outer(const Variable& a, const Variable& b);

/// Sum of products by index letters, `einsum("bqd,bkd->bqk", q, k)`: letters a to z and A to Z name
/// axes; those that the output leaves out are summed. `...` stands for leading batch axes, which
/// broadcast. A letter twice in one operand takes the diagonal. Without `->` the output has `...`
/// and the letters that appear once, in alphabetical order. Letters do not broadcast.
/// Derivative: ga = einsum of gy and b with the output and a's term exchanged, spread over what
/// was summed in a alone and put on the diagonal it was read from; gb likewise.
/// Throws ValueError on an equation that cannot be read, ShapeError when the shapes do not fit it.
Variable einsum(std::string_view equation, const Variable& a, const Variable& b);
Variable einsum(std::string_view equation, const Variable& a);

}  // namespace glassgrad
