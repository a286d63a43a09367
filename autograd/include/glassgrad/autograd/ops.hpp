#pragma once
// Ops on Variables, under the names of the Tensor functions that compute them. y is the result,
// gy the gradient that arrives; derivatives of any order follow from the same rules.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>

namespace glassgrad {

// Arithmetic; operands broadcast, and gradients are summed back to the operands' shapes.
/// y = a + b. Derivative: ga = gy, gb = gy.
Variable add(const Variable& a, const Variable& b);
Variable add(const Variable& a, double b);
/// y = a - b. Derivative: ga = gy, gb = -gy.
Variable sub(const Variable& a, const Variable& b);
/// y = a b, element by element. Derivative: ga = gy b, gb = gy a.
Variable mul(const Variable& a, const Variable& b);
/// y = a / b. Derivative: ga = gy / b, gb = -gy y / b.
Variable div(const Variable& a, const Variable& b);
/// y = -x. Derivative: gx = -gy.
Variable neg(const Variable& x);
/// y = factor x. Derivative: gx = factor gy.
Variable scale(const Variable& x, double factor);
/// y = xᵖ. Derivative: gx = p xᵖ⁻¹ gy, and 0 for p = 0, also at x = 0.
Variable pow(const Variable& x, double p);
/// y = aᵇ. Derivative: ga = b aᵇ⁻¹ gy (0 where b = 0), gb = y log(a) gy (0 where a = 0 and
/// b >= 0).
Variable pow(const Variable& a, const Variable& b);

Variable operator+(const Variable& a, const Variable& b);
Variable operator-(const Variable& a, const Variable& b);
Variable operator*(const Variable& a, const Variable& b);
Variable operator/(const Variable& a, const Variable& b);
Variable operator+(const Variable& a, double b);
Variable operator-(const Variable& a, double b);
Variable operator*(const Variable& a, double b);
Variable operator/(const Variable& a, double b);
Variable operator+(double a, const Variable& b);
Variable operator-(double a, const Variable& b);
Variable operator*(double a, const Variable& b);
Variable operator/(double a, const Variable& b);
Variable operator-(const Variable& x);

/// y = eˣ. Derivative: gx = y gy.
Variable exp(const Variable& x);
/// y = ln x. Derivative: gx = gy / x.
Variable log(const Variable& x);
/// y = √x. Derivative: gx = gy / (2 y), infinite at 0.
Variable sqrt(const Variable& x);
/// Derivative: gx = (1 - y²) gy.
Variable tanh(const Variable& x);
/// y = max(x, 0). Derivative: gx = gy where x > 0, else 0 (also at 0).
Variable relu(const Variable& x);
/// a where `condition` (boolean) is true, else b. Derivative: gy goes where the value came from.
Variable where(const Variable& condition, const Variable& a, const Variable& b);

/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; operands may be read
/// transposed. Derivative: ga = gy bᵀ, gb = aᵀ gy. Throws ShapeError unless inner sizes agree.
Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options = {});

/// y = exp(x - max x) / sum exp(x - max x) along `axis`; a row of -inf gives zeros.
/// Derivative: gx = y (gy - sum(gy y)).
Variable softmax(const Variable& x, std::int64_t axis = -1);
/// y = x - log sum exp x along `axis`. Derivative: gx = gy - exp(y) sum(gy).
Variable log_softmax(const Variable& x, std::int64_t axis = -1);
/// gx of softmax from its result y: y (gy - sum(gy y)). Itself composed of ops when recorded.
Variable softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis);

/// Sum over axes (all by default). Derivative: gx = gy, spread back.
Variable sum(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gx = gy / n, spread back over the n elements averaged.
Variable mean(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gy to the largest element; k equal ones share it, gy / k each.
Variable max(const Variable& x, const ReduceOptions& options = {});
/// Sums to `shape`, which broadcasts to the shape of x. Derivative: gx = broadcast_to(gy).
Variable sum_to(const Variable& x, const Shape& shape);

// Shape. Derivative: gy, put back where its elements came from.
Variable reshape(const Variable& x, const Shape& shape);
Variable permute(const Variable& x, std::span<const std::int64_t> axes);
Variable permute(const Variable& x, std::initializer_list<std::int64_t> axes);
Variable transpose(const Variable& x, std::int64_t axis0 = -2, std::int64_t axis1 = -1);
Variable slice(const Variable& x, std::int64_t axis, const SliceOptions& options);
/// Zeros of `shape` with x where `slice` with the same options would read. Derivative: the slice.
Variable slice_scatter(const Variable& x, const Shape& shape, std::int64_t axis,
                       const SliceOptions& options);
Variable concat(std::span<const Variable> parts, std::int64_t axis = 0);
Variable concat(std::initializer_list<Variable> parts, std::int64_t axis = 0);
/// Derivative: gx = sum_to(gy, shape of x).
Variable broadcast_to(const Variable& x, const Shape& shape);

}  // namespace glassgrad
