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

// For derivatives: where a gradient arrives that is exactly 0, it stays 0, though the slope is
// infinite or NaN there.
/// y = gy slope, and 0 where gy is 0. Derivative: that of a product, by the same rule.
Variable chain_mul(const Variable& gy, const Variable& slope);
/// y = gy / divisor, and 0 where gy is 0. Derivative: that of a quotient, by the same rule.
Variable chain_div(const Variable& gy, const Variable& divisor);

/// y = |x|. Derivative: gx = sign(x) gy, 0 at 0.
Variable abs(const Variable& x);
/// y = -1, 0 or 1. Derivative: gx = 0.
Variable sign(const Variable& x);
/// y = eˣ. Derivative: gx = y gy.
Variable exp(const Variable& x);
/// y = eˣ - 1. Derivative: gx = eˣ gy.
Variable expm1(const Variable& x);
/// y = ln x. Derivative: gx = gy / x.
Variable log(const Variable& x);
/// y = ln(1 + x). Derivative: gx = gy / (1 + x).
Variable log1p(const Variable& x);
/// y = √x. Derivative: gx = gy / (2 y), infinite at 0.
Variable sqrt(const Variable& x);
/// y = 1 / √x. Derivative: gx = -y³ gy / 2.
Variable rsqrt(const Variable& x);
/// y = x². Derivative: gx = 2 x gy.
Variable square(const Variable& x);
/// y = 1 / x. Derivative: gx = -y² gy.
Variable reciprocal(const Variable& x);
/// Derivative: gx = cos(x) gy.
Variable sin(const Variable& x);
/// Derivative: gx = -sin(x) gy.
Variable cos(const Variable& x);
/// The error function. Derivative: gx = 2 / √π exp(-x²) gy.
Variable erf(const Variable& x);

/// Derivative: gx = (1 - y²) gy.
Variable tanh(const Variable& x);
/// y = 1 / (1 + e⁻ˣ). Derivative: gx = y (1 - y) gy.
Variable sigmoid(const Variable& x);
/// y = ln(1 + eˣ), without overflow. Derivative: gx = sigmoid(x) gy.
Variable softplus(const Variable& x);
/// y = max(x, 0). Derivative: gx = gy where x > 0, else 0 (also at 0).
Variable relu(const Variable& x);
/// y = x where x > 0, else negative_slope x. Derivative: gx = gy or negative_slope gy (also at 0).
Variable leaky_relu(const Variable& x, double negative_slope = 0.01);
/// y = x where x > 0, else alpha (eˣ - 1). Derivative: gx = gy or alpha eˣ gy (also at 0).
Variable elu(const Variable& x, double alpha = 1);
/// y = x P(x), P the normal distribution's share below x; GPT-2 takes the form by tanh, which
/// differs by up to 5e-4 and is asked for with {.approximate = Approximate::tanh}.
/// Derivative: gx = (P + x P') gy, 1 and 0 far out, at infinities too.
/// Hendrycks and Gimpel 2016, arXiv 1606.08415.
Variable gelu(const Variable& x, const GeluOptions& options = {});
/// y = x s with s = sigmoid(x). Derivative: gx = s (1 + x (1 - s)) gy, 1 and 0 far out.
Variable silu(const Variable& x);

/// a where `condition` (boolean) is true, else b. Derivative: gy goes where the value came from.
Variable where(const Variable& condition, const Variable& a, const Variable& b);
/// x, and `value` where `mask` (boolean) is true. Derivative: gx = gy, exactly 0 where filled.
Variable masked_fill(const Variable& x, const Variable& mask, double value);
/// Larger of the two; NaN if either is NaN. Derivative: gy to the larger, half each where equal;
/// to the one that is NaN, a if both are.
Variable maximum(const Variable& a, const Variable& b);
/// Smaller of the two, as `maximum`.
Variable minimum(const Variable& a, const Variable& b);
/// x brought into [min, max]. Derivative: gx = gy inside and at the bounds, else 0; 0 at NaN.
/// Throws ValueError when neither bound is given, one is NaN or min > max.
Variable clamp(const Variable& x, const ClampOptions& options);

}  // namespace glassgrad
