#pragma once
// Arithmetic, functions of each element, comparison and choice.

#include <glassgrad/tensor/tensor.hpp>

#include <optional>

namespace glassgrad {

// Arithmetic. i64 wraps on overflow. boolean operands throw TypeError.
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
/// Quotient of floating tensors; i64 throws TypeError, since rounding would be silent.
Tensor div(const Tensor& a, const Tensor& b);
/// a to the power b. pow(0, 0) is 1; a negative base with a fractional exponent is NaN.
Tensor pow(const Tensor& a, const Tensor& b);
/// Larger of the two; NaN if either is NaN.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, double b);
Tensor pow(const Tensor& a, double b);
/// x times a number.
Tensor scale(const Tensor& x, double factor);
Tensor neg(const Tensor& x);

Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& a, double b);
Tensor operator-(const Tensor& a, double b);
Tensor operator*(const Tensor& a, double b);
Tensor operator/(const Tensor& a, double b);
Tensor operator+(double a, const Tensor& b);
Tensor operator-(double a, const Tensor& b);
Tensor operator*(double a, const Tensor& b);
Tensor operator/(double a, const Tensor& b);
Tensor operator-(const Tensor& x);
/// In place where nobody else holds the buffer of `a`. `b` must broadcast to the shape of `a`.
Tensor& operator+=(Tensor& a, const Tensor& b);
Tensor& operator-=(Tensor& a, const Tensor& b);
Tensor& operator*=(Tensor& a, const Tensor& b);
Tensor& operator*=(Tensor& a, double b);

// The product rule's last step, for derivatives that may be infinite: a gradient that is exactly 0
// stays 0 where the slope is infinite or NaN.
/// gy times slope, and 0 where gy is 0, whatever the slope is. Floating tensors.
Tensor chain_mul(const Tensor& gy, const Tensor& slope);
/// gy / divisor, and 0 where gy is 0, whatever the divisor is. Floating tensors.
Tensor chain_div(const Tensor& gy, const Tensor& divisor);

// Functions of each element of a floating tensor; i64 and boolean throw TypeError.
Tensor exp(const Tensor& x);
/// exp(x) - 1, exact near 0.
Tensor expm1(const Tensor& x);
/// -inf at 0, NaN below.
Tensor log(const Tensor& x);
/// log(1 + x), exact near 0; -inf at -1, NaN below.
Tensor log1p(const Tensor& x);
/// NaN below 0.
Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x); inf at 0, NaN below.
Tensor rsqrt(const Tensor& x);
/// 1 / x; inf of the zero's sign at 0.
Tensor reciprocal(const Tensor& x);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
/// The error function.
Tensor erf(const Tensor& x);

// Of i64 too, which wraps: abs of the smallest i64 is itself.
Tensor abs(const Tensor& x);
/// -1, 0 or 1; NaN stays NaN.
Tensor sign(const Tensor& x);
/// x times x.
Tensor square(const Tensor& x);

// Activations, of floating tensors.
Tensor tanh(const Tensor& x);
/// 1 / (1 + exp(-x)); nothing overflows.
Tensor sigmoid(const Tensor& x);
/// log(1 + exp(x)) without overflow.
Tensor softplus(const Tensor& x);
/// max(x, 0); NaN stays NaN.
Tensor relu(const Tensor& x);
/// x where x > 0, negative_slope x elsewhere.
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.01);
/// x where x > 0, alpha (exp(x) - 1) elsewhere.
Tensor elu(const Tensor& x, double alpha = 1);

enum class Approximate { none, tanh };
struct GeluOptions {
    Approximate approximate = Approximate::none;  ///< none: by erf, the exact form
};
/// Constants of gelu by tanh: sqrt(2 / pi), and the factor of x³.
inline constexpr double gelu_tanh_scale = 0.79788456080286535588;
inline constexpr double gelu_tanh_cubic = 0.044715;
/// x times the normal distribution's share below x: x (1 + erf(x / sqrt 2)) / 2; 0 at -inf.
/// The form by tanh, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x³))) / 2, is GPT-2's and differs by up
/// to 5e-4. Hendrycks and Gimpel 2016, arXiv 1606.08415.
Tensor gelu(const Tensor& x, const GeluOptions& options = {});
/// x sigmoid(x), also called swish; 0 at -inf.
Tensor silu(const Tensor& x);

// Comparison: boolean tensors, broadcast. NaN equals nothing.
Tensor equal(const Tensor& a, const Tensor& b);
Tensor not_equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor logical_and(const Tensor& a, const Tensor& b);
Tensor logical_or(const Tensor& a, const Tensor& b);
Tensor logical_not(const Tensor& x);
/// a where `condition` (boolean) is true, b elsewhere; all three broadcast.
Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);

/// x, and `value` where `mask` (boolean) is true; the two broadcast.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);

struct ClampOptions {
    std::optional<double> min = {};
    std::optional<double> max = {};
};
/// x brought into [min, max]; NaN stays NaN. Throws ValueError when neither bound is given, one is
/// NaN or min > max, TypeError when an i64 tensor meets a fraction.
Tensor clamp(const Tensor& x, const ClampOptions& options);

struct CloseOptions {
    double rtol = 1e-5;
    double atol = 1e-8;
    bool equal_nan = false;
};
/// True when |a - b| <= atol + rtol |b| everywhere; shapes broadcast, infinities must be equal.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});

}  // namespace glassgrad
