#pragma once
// Reductions, and sums along an axis.

#include <glassgrad/tensor/tensor.hpp>

#include <optional>

namespace glassgrad {

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
struct VectorNormOptions {
    Axes axes = {};
    bool keepdims = false;
    double ord = 2;  ///< 1, 2 or infinity
};
struct CumsumOptions {
    bool reverse = false;  ///< from the end of the axis
};
/// f32 is added up in f64. boolean counts into i64, i64 wraps. The sum of nothing is 0.
Tensor sum(const Tensor& x, const ReduceOptions& options = {});
/// Throws ValueError over zero elements, as do var, std, max, min, argmax, argmin and the norm of
/// ord infinity.
Tensor mean(const Tensor& x, const ReduceOptions& options = {});
/// Two passes: the mean first, then the squares about it. Exactly 0 where all elements are equal.
/// The divisor is n - correction, and correction is 0 unless given (NumPy's default; PyTorch's is
/// 1). Throws ValueError where that leaves no degree of freedom.
Tensor var(const Tensor& x, const VarOptions& options = {});
/// The square root of `var`. Beside a `using namespace glassgrad`, call it glassgrad::std.
Tensor std(const Tensor& x, const VarOptions& options = {});
/// f32 is multiplied in f64. boolean counts into i64, i64 wraps. The product of nothing is 1.
Tensor prod(const Tensor& x, const ReduceOptions& options = {});
/// For each element the product of the others along the axes, without division, times gy, which
/// has the shape of the product or keeps the axes as 1: the derivative of `prod`.
Tensor prod_vjp(const Tensor& x, const Tensor& gy, const Axes& axes = {});
/// NaN if any element is NaN.
Tensor max(const Tensor& x, const ReduceOptions& options = {});
Tensor min(const Tensor& x, const ReduceOptions& options = {});
/// Other names of max and min.
Tensor amax(const Tensor& x, const ReduceOptions& options = {});
Tensor amin(const Tensor& x, const ReduceOptions& options = {});
/// Index (i64) of the first largest element; the first NaN counts as largest.
Tensor argmax(const Tensor& x, const ArgOptions& options = {});
/// Index (i64) of the first smallest element; the first NaN counts as smallest.
Tensor argmin(const Tensor& x, const ArgOptions& options = {});
/// log of the sum of exp(x), with the largest x taken out first. -inf where every x is -inf and
/// over zero elements; inf where any x is inf.
Tensor logsumexp(const Tensor& x, const ReduceOptions& options = {});
/// The p-norm for p = ord: sqrt(sum(x²)), sum(|x|), max(|x|). Squares that overflow or vanish are
/// scaled first. The norm of nothing is 0 for ord 1 and 2. Throws ValueError for another ord.
Tensor norm(const Tensor& x, const VectorNormOptions& options = {});
/// Sums of the elements up to each along `axis`; f32 is added up in f64, i64 wraps, boolean counts
/// into i64.
Tensor cumsum(const Tensor& x, std::int64_t axis, const CumsumOptions& options = {});
/// Sums what broadcasting `shape` to the shape of x repeated: the adjoint of `broadcast_to`.
Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace glassgrad
