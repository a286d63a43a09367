#pragma once
// Functions of tensors under their NumPy names. Operands of two take one element type and
// broadcast; anything else is a TypeError or ShapeError that names both.

#include <glassgrad/tensor/tensor.hpp>

#include <initializer_list>
#include <optional>
#include <span>

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

// Reductions over `axes` (all by default).
struct ReduceOptions {
    Axes axes = {};
    bool keepdims = false;
};
struct VarOptions {
    Axes axes = {};
    bool keepdims = false;
    double correction = 0;  ///< the divisor is n - correction: 0 as in NumPy, 1 for unbiased
};
struct ArgOptions {
    std::optional<std::int64_t> axis = {};  ///< none: over the flattened tensor
    bool keepdims = false;
};
/// f32 is added up in f64. boolean counts into i64. The sum of nothing is 0.
Tensor sum(const Tensor& x, const ReduceOptions& options = {});
/// Throws ValueError over zero elements, as do max, min, var and argmax.
Tensor mean(const Tensor& x, const ReduceOptions& options = {});
/// NaN if any element is NaN.
Tensor max(const Tensor& x, const ReduceOptions& options = {});
Tensor min(const Tensor& x, const ReduceOptions& options = {});
/// Two passes: the mean first, then the squares about it.
Tensor var(const Tensor& x, const VarOptions& options = {});
/// Index (i64) of the first largest element; the first NaN counts as largest.
Tensor argmax(const Tensor& x, const ArgOptions& options = {});
/// Sums what broadcasting `shape` to the shape of x repeated: the adjoint of `broadcast_to`.
Tensor sum_to(const Tensor& x, const Shape& shape);

struct MatmulOptions {
    bool transpose_a = false;  ///< take a as (..., k, m)
    bool transpose_b = false;  ///< take b as (..., n, k)
};
/// Product of a (..., m, k) and b (..., k, n); leading axes broadcast; transposed operands are
/// read in place. A vector counts as a row on the left, a column on the right, as in NumPy.
Tensor matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options = {});

/// exp(x - max x) / sum along `axis`. A row that is all -inf gives zeros; NaN stays NaN.
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
/// x - max x - log sum exp along `axis`. A row that is all -inf gives -inf.
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// gx of softmax from its result y: y (gy - sum(gy y)).
Tensor softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis);

/// The same elements in another shape; one size may be -1. Shares the buffer.
Tensor reshape(const Tensor& x, const Shape& shape);
/// Axis i of the result is axis `axes[i]` of x.
Tensor permute(const Tensor& x, std::span<const std::int64_t> axes);
Tensor permute(const Tensor& x, std::initializer_list<std::int64_t> axes);
/// Two axes exchanged (PyTorch's transpose); the last two by default.
Tensor transpose(const Tensor& x, std::int64_t axis0 = -2, std::int64_t axis1 = -1);
struct SliceOptions {
    std::optional<std::int64_t> start = {};
    std::optional<std::int64_t> stop = {};
    std::int64_t step = 1;
};
/// x[..., start:stop:step, ...] along `axis`, with Python's rules for negative and missing bounds.
Tensor slice(const Tensor& x, std::int64_t axis, const SliceOptions& options);
/// The adjoint of `slice`: zeros of `shape` with `y` written where the slice was read.
Tensor slice_scatter(const Tensor& y, const Shape& shape, std::int64_t axis,
                     const SliceOptions& options);
/// Joined along an axis that exists; all other sizes agree.
Tensor concat(std::span<const Tensor> parts, std::int64_t axis = 0);
Tensor concat(std::initializer_list<Tensor> parts, std::int64_t axis = 0);
/// Joined along a new axis; all shapes agree.
Tensor stack(std::span<const Tensor> parts, std::int64_t axis = 0);
Tensor stack(std::initializer_list<Tensor> parts, std::int64_t axis = 0);
Tensor broadcast_to(const Tensor& x, const Shape& shape);

}  // namespace glassgrad
