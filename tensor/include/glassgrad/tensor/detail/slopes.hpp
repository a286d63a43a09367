#pragma once
// gy times the slope of an activation, in one pass: what the usual backward pass runs. gy has the
// shape and type of the first argument.

#include <glassgrad/tensor/ops/elementwise.hpp>

namespace glassgrad::detail {

// Of the result y.
Tensor tanh_vjp(const Tensor& y, const Tensor& gy);
Tensor sigmoid_vjp(const Tensor& y, const Tensor& gy);
Tensor relu_vjp(const Tensor& y, const Tensor& gy);

// Of the input x.
Tensor softplus_vjp(const Tensor& x, const Tensor& gy);
Tensor gelu_vjp(const Tensor& x, const Tensor& gy, const GeluOptions& options);
Tensor silu_vjp(const Tensor& x, const Tensor& gy);

}  // namespace glassgrad::detail
