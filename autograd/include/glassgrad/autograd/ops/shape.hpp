#pragma once
// Functions that move elements without changing them.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/shape.hpp>

#include <initializer_list>
#include <span>
#include <vector>

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
/// Joined along a new axis; all shapes agree. Derivative: each input gets its part of gy.
Variable stack(std::span<const Variable> parts, std::int64_t axis = 0);
Variable stack(std::initializer_list<Variable> parts, std::int64_t axis = 0);
/// Derivative: gx = sum_to(gy, shape of x).
Variable broadcast_to(const Variable& x, const Shape& shape);

/// x without its axes of size 1, or without those named. Derivative: gx = gy in the shape of x.
/// Throws ShapeError when a named axis has another size, as NumPy does (PyTorch leaves such an
/// axis).
Variable squeeze(const Variable& x, const Axes& axes = {});
/// x with an axis of size 1 put in, so that it is axis `axis` of the result. Derivative: gx = gy in
/// the shape of x.
Variable unsqueeze(const Variable& x, std::int64_t axis);
/// PyTorch's `expand`: `broadcast_to` in which -1 keeps a size of x. Derivative: gx = sum_to(gy,
/// shape of x). Throws ShapeError unless every other axis of x has the size asked for or 1.
Variable expand(const Variable& x, const Shape& shape);

/// Cut along `axis` into pieces of `size`, of which the last may be shorter; each is a `slice`.
/// Along an axis of size 0 there is one piece, empty. Throws ValueError unless the size is
/// positive.
std::vector<Variable> split(const Variable& x, std::int64_t size, std::int64_t axis = 0);
/// Cut into pieces of these sizes. Throws ShapeError unless they add up to the size of the axis.
std::vector<Variable> split(const Variable& x, std::span<const std::int64_t> sizes,
                            std::int64_t axis = 0);
std::vector<Variable> split(const Variable& x, std::initializer_list<std::int64_t> sizes,
                            std::int64_t axis = 0);
/// PyTorch's `chunk`: pieces of size / count, rounded up, so that there may be fewer than `count`
/// of them (NumPy's array_split makes exactly `count`); each is a `slice`. Throws ValueError when
/// count < 1.
std::vector<Variable> chunk(const Variable& x, std::int64_t count, std::int64_t axis = 0);

/// x with a constant around it: one (before, after) an axis, the first axis first, as `np.pad` has
/// it; `F.pad` names the last axis first and puts all numbers in one list. Derivative: gx = the
/// part of gy that x became.
/// Throws ShapeError unless there are as many widths as axes, ValueError when one is negative.
Variable pad(const Variable& x, std::span<const PadWidth> widths, const PadOptions& options = {});
Variable pad(const Variable& x, std::initializer_list<PadWidth> widths,
             const PadOptions& options = {});

/// The order of the elements reversed along axes (all by default, as in NumPy). Derivative: gx = gy
/// reversed.
Variable flip(const Variable& x, const Axes& axes = {});
/// Elements moved forwards along an axis; those that leave at its end come in at its start.
/// Derivative: gx = gy moved back.
Variable roll(const Variable& x, std::int64_t shift, std::int64_t axis);
/// Along several axes, one shift each; shifts of an axis named twice add up.
Variable roll(const Variable& x, std::span<const std::int64_t> shifts,
              std::span<const std::int64_t> axes);
Variable roll(const Variable& x, std::initializer_list<std::int64_t> shifts,
              std::initializer_list<std::int64_t> axes);

/// The matrices in the last two axes with zeros above a diagonal: y[i, j] = x[i, j] where
/// j <= i + diagonal. Derivative: gx = tril(gy), exactly 0 outside whatever gy is there.
/// Throws ShapeError below two axes.
Variable tril(const Variable& x, std::int64_t diagonal = 0);
/// As `tril`, with zeros below the diagonal: kept where j >= i + diagonal.
Variable triu(const Variable& x, std::int64_t diagonal = 0);

/// x laid out `counts[i]` times along axis i: `torch.Tensor.repeat`, which is `np.tile` and not
/// `np.repeat`. More counts than axes make new axes on the left; fewer throw ShapeError.
/// Derivative: gx = the sum of gy over the copies.
Variable repeat(const Variable& x, const Shape& counts);

}  // namespace glassgrad
