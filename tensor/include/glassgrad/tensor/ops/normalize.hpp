#pragma once
// Softmax and what else brings rows to a common measure.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// exp(x - max x) / sum along `axis`. A row that is all -inf gives zeros; NaN stays NaN.
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
/// x - max x - log sum exp along `axis`. A row that is all -inf gives -inf.
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// gx of softmax from its result y: y (gy - sum(gy y)).
Tensor softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis);

}  // namespace glassgrad
