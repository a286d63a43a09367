#pragma once
// Arithmetic and functions of each element.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/elementwise.hpp>

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

}  // namespace glassgrad
