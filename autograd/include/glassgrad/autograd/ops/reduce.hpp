#pragma once
// Reductions, and sums along an axis.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/reduce.hpp>

namespace glassgrad {

/// Sum over axes (all by default). Derivative: gx = gy, spread back.
Variable sum(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gx = gy / n, spread back over the n elements averaged.
Variable mean(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gx = 2 gy (x - mean(x)) / (n - correction). correction is 0 unless given (NumPy's
/// default; PyTorch's is 1).
Variable var(const Variable& x, const VarOptions& options = {});
/// √var. Derivative: gx = gy (x - mean(x)) / ((n - correction) y), 0 where y is 0.
Variable std(const Variable& x, const VarOptions& options = {});
/// Derivative: gx = gy times the product of the others, right with any number of zeros; nothing is
/// divided. With create_graph it takes memory for n² elements, n the factors of one product.
Variable prod(const Variable& x, const ReduceOptions& options = {});
Variable prod_vjp(const Variable& x, const Variable& gy, const Axes& axes = {});
/// Derivative: gy to the largest element; k equal ones share it, gy / k each. NaNs count as equal
/// and largest.
Variable max(const Variable& x, const ReduceOptions& options = {});
/// As `max`, for the smallest.
Variable min(const Variable& x, const ReduceOptions& options = {});
/// Other names of max and min, which they record.
Variable amax(const Variable& x, const ReduceOptions& options = {});
Variable amin(const Variable& x, const ReduceOptions& options = {});
/// Index of the first largest element. No derivative: throws GraphError when x requires a gradient,
/// unless under NoGrad.
Variable argmax(const Variable& x, const ArgOptions& options = {});
/// As `argmax`, for the smallest.
Variable argmin(const Variable& x, const ArgOptions& options = {});
/// log of the sum of eˣ. Derivative: gx = gy exp(x - y), 0 where y is -inf, NaN where y is inf.
Variable logsumexp(const Variable& x, const ReduceOptions& options = {});
/// Norm of ord 2 (default), 1 or infinity. Derivative: gx = gy x / y, 0 at the zero vector; for ord
/// 1 gy sign(x), for infinity to the largest |x|, shared by equal ones.
Variable norm(const Variable& x, const VectorNormOptions& options = {});
/// Sums of the elements up to each along `axis`. Derivative: the cumsum of gy from the other end.
Variable cumsum(const Variable& x, std::int64_t axis, const CumsumOptions& options = {});
/// Sums to `shape`, which broadcasts to the shape of x. Derivative: gx = broadcast_to(gy).
Variable sum_to(const Variable& x, const Shape& shape);

}  // namespace glassgrad
