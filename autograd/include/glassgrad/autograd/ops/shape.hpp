#pragma once
// Functions that move elements without changing them.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/shape.hpp>

#include <initializer_list>
#include <span>

namespace glassgrad {

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
