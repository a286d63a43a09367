#pragma once
// Reductions, and sums along an axis.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/reduce.hpp>

namespace glassgrad {

/// Sum over axes (all by default). Derivative: gx = gy, spread back.
Variable sum(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gx = gy / n, spread back over the n elements averaged.
Variable mean(const Variable& x, const ReduceOptions& options = {});
/// Derivative: gy to the largest element; k equal ones share it, gy / k each.
Variable max(const Variable& x, const ReduceOptions& options = {});
/// Sums to `shape`, which broadcasts to the shape of x. Derivative: gx = broadcast_to(gy).
Variable sum_to(const Variable& x, const Shape& shape);

}  // namespace glassgrad
