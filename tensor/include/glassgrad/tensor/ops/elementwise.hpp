#pragma once
// Arithmetic, functions of each element, comparison and choice.

#include <glassgrad/tensor/tensor.hpp>

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

// Elementwise functions of floating tensors (abs takes i64 too).
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor abs(const Tensor& x);
/// max(x, 0); NaN stays NaN.
Tensor relu(const Tensor& x);

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

struct CloseOptions {
    double rtol = 1e-5;
    double atol = 1e-8;
    bool equal_nan = false;
};
/// True when |a - b| <= atol + rtol |b| everywhere; shapes broadcast, infinities must be equal.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});

}  // namespace glassgrad
