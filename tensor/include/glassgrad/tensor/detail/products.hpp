#pragma once
// What bmm and outer ask of their operands before they call matmul, and linear's derivative.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad::detail {

/// Throws an error unless both are stacks of matrices, of one size and type, that can be
/// multiplied.
void check_bmm(const Tensor& left, const Tensor& right);
/// Throws an error unless both are vectors of one type.
void check_outer(const Tensor& a, const Tensor& b);

/// One of each input of `linear`; undefined where it isn't wanted.
struct LinearGradients {
    Tensor x;
    Tensor weight;
    Tensor bias;
};
struct LinearInputs {
    bool x = false;
    bool weight = false;
    bool bias = false;
};
/// The gradients of `linear` that are wanted. x is read for that of the weight alone, the weight
/// for that of x, and may be undefined else. A row of gy that is exactly 0 takes nothing from x.
LinearGradients linear_gradients(const Tensor& x, const Tensor& weight, const Tensor& gy,
                                 const LinearInputs& wanted);

}  // namespace glassgrad::detail
