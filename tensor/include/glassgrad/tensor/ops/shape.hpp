#pragma once
// Functions that move elements without changing them.

#include <glassgrad/tensor/tensor.hpp>

#include <initializer_list>
#include <optional>
#include <span>

namespace glassgrad {

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
