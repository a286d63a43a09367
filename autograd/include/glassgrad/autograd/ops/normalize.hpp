#pragma once
// Softmax and what else brings rows to a common measure.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>

namespace glassgrad {

/// y = exp(x - max x) / sum exp(x - max x) along `axis`; a row of -inf gives zeros.
/// Derivative: gx = y (gy - sum(gy y)).
Variable softmax(const Variable& x, std::int64_t axis = -1);
/// y = x - log sum exp x along `axis`. Derivative: gx = gy - exp(y) sum(gy).
Variable log_softmax(const Variable& x, std::int64_t axis = -1);
/// gx of softmax from its result y: y (gy - sum(gy y)). Itself composed of ops when recorded.
Variable softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis);

}  // namespace glassgrad
