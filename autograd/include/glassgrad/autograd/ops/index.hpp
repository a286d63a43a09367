#pragma once
// Elements picked and put by index.
//
// A number in a call counts from the end when it is negative (select, slice, axes). An index in a
// tensor is data: it lies in [0, size), and all others are refused. Index tensors are i64.
// Gradients that meet at one place add up, in f64 for f32, with the same bits for any number of
// threads.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/index.hpp>

namespace glassgrad {

/// x[..., index, ...]: the part at one index of `axis`, which goes; a negative index counts from
/// the end. Derivative: gx = zeros with gy at the index. Throws IndexError.
Variable select(const Variable& x, std::int64_t axis, std::int64_t index);
/// x[indices]: parts of x along its first axis, in the shape of `indices`, which may be any.
/// Derivative: gx = zeros with each part of gy added at its index.
/// Throws IndexError on an index outside [0, size), TypeError unless indices are i64.
Variable index(const Variable& x, const Variable& indices);
/// The parts of x at the indices of a vector along `axis`: `torch.index_select`, `np.take`.
/// Derivative: gx = zeros with each part of gy added at its index.
/// Throws as `index`, and ShapeError unless `indices` has one axis.
Variable index_select(const Variable& x, std::int64_t axis, const Variable& indices);
/// x with each part of `src` added where `index_select` with the same indices would read it:
/// `torch.index_add`. Derivative: gx = gy, gsrc = index_select(gy).
/// Throws ShapeError unless `src` has the shape of that selection.
Variable index_add(const Variable& x, std::int64_t axis, const Variable& indices,
                   const Variable& src);
/// y[i][j] = x[i][index[i][j]] for axis 1, and so on: `torch.gather`. Along other axes `index` may
/// be smaller than x. Derivative: gx = zeros with each element of gy added where it was read.
/// Throws as `index`, and ShapeError on other sizes.
Variable gather(const Variable& x, std::int64_t axis, const Variable& index);
/// x with each element of `src` added where `gather` with the same index would read it:
/// `torch.scatter_add`. `src` has the shape of `index` (PyTorch: that or larger).
/// Derivative: gx = gy, gsrc = gather(gy).
Variable scatter_add(const Variable& x, std::int64_t axis, const Variable& index,
                     const Variable& src);
/// Row `ids[...]` of a table `weight` (rows, width) for each id: (ids..., width).
/// Derivative: gweight = zeros with each row of gy added at its id.
/// Throws IndexError on an id outside [0, rows), TypeError unless ids are i64.
Variable embedding(const Variable& weight, const Variable& ids);

}  // namespace glassgrad
