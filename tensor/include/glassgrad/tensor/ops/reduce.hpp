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

}  // namespace glassgrad
