#pragma once
// Functions that move elements without changing them.

#include <glassgrad/tensor/tensor.hpp>

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

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
/// x repeated along its axes of size 1, and along new axes to the left, until it has `shape`.
Tensor broadcast_to(const Tensor& x, const Shape& shape);

/// x without its axes of size 1, or without those named. Throws ShapeError when a named axis has
/// another size, as NumPy does (PyTorch leaves such an axis).
Tensor squeeze(const Tensor& x, const Axes& axes = {});
/// x with an axis of size 1 put in, so that it is axis `axis` of the result.
Tensor unsqueeze(const Tensor& x, std::int64_t axis);
/// PyTorch's `expand`: `broadcast_to` in which -1 keeps a size of x. Throws ShapeError unless every
/// other axis of x has the size asked for or 1.
Tensor expand(const Tensor& x, const Shape& shape);

/// Cut along `axis` into pieces of `size`, of which the last may be shorter. Along an axis of size
/// 0 there is one piece, empty. Throws ValueError unless the size is positive.
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis = 0);
/// Cut into pieces of these sizes. Throws ShapeError unless they add up to the size of the axis.
std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes,
                          std::int64_t axis = 0);
std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes,
                          std::int64_t axis = 0);
/// PyTorch's `chunk`: pieces of size / count, rounded up, so that there may be fewer than `count`
/// of them (NumPy's array_split makes exactly `count`). Throws ValueError when count < 1.
std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, std::int64_t axis = 0);

/// How many elements `pad` adds to the two ends of an axis.
struct PadWidth {
    std::int64_t before = 0;
    std::int64_t after = 0;
};
struct PadOptions {
    double value = 0;  ///< what is added
};
/// x with a constant around it: one (before, after) an axis, the first axis first, as `np.pad` has
/// it; `F.pad` names the last axis first and puts all numbers in one list.
/// Throws ShapeError unless there are as many widths as axes, ValueError when one is negative.
Tensor pad(const Tensor& x, std::span<const PadWidth> widths, const PadOptions& options = {});
Tensor pad(const Tensor& x, std::initializer_list<PadWidth> widths, const PadOptions& options = {});

/// The order of the elements reversed along axes (all by default, as in NumPy).
Tensor flip(const Tensor& x, const Axes& axes = {});
/// Elements moved forwards along an axis; those that leave at its end come in at its start.
Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t axis);
/// Along several axes, one shift each; shifts of an axis named twice add up.
Tensor roll(const Tensor& x, std::span<const std::int64_t> shifts,
            std::span<const std::int64_t> axes);
Tensor roll(const Tensor& x, std::initializer_list<std::int64_t> shifts,
            std::initializer_list<std::int64_t> axes);

/// The matrices in the last two axes with zeros above a diagonal: y[i, j] = x[i, j] where
/// j <= i + diagonal. What is left out may be anything, NaN included.
/// Throws ShapeError below two axes.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// As `tril`, with zeros below the diagonal: kept where j >= i + diagonal.
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

/// x laid out `counts[i]` times along axis i: `torch.Tensor.repeat`, which is `np.tile` and not
/// `np.repeat`. More counts than axes make new axes on the left; fewer throw ShapeError.
Tensor repeat(const Tensor& x, const Shape& counts);

}  // namespace glassgrad
