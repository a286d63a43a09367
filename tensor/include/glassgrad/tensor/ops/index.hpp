#pragma once
// Elements picked and put by index.
//
// A number in a call counts from the end when it is negative (select, slice, axes). An index in a
// tensor is data, where -1 is more likely a mistake or a marker: it lies in [0, size), and all
// others are refused, as PyTorch's gather refuses them. Index tensors are i64.
// Where several indices are the same, what is put there adds up, in f64 for f32; the order is
// that of the indices, so the bits are the same for any number of threads.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// x[..., index, ...]: the part at one index of `axis`, which goes; a negative index counts from
/// the end. Throws IndexError.
Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index);
/// x[indices]: parts of x along its first axis, in the shape of `indices`, which may be any.
/// Throws IndexError on an index outside [0, size), TypeError unless indices are i64.
Tensor index(const Tensor& x, const Tensor& indices);
/// The parts of x at the indices of a vector along `axis`: `torch.index_select`, `np.take`.
/// Throws as `index`, and ShapeError unless `indices` has one axis.
Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices);
/// x with each part of `src` added where `index_select` with the same indices would read it:
/// `torch.index_add`. Throws ShapeError unless `src` has the shape of that selection.
Tensor index_add(Tensor x, std::int64_t axis, const Tensor& indices, const Tensor& src);
/// y[i][j] = x[i][index[i][j]] for axis 1, and so on: `torch.gather`. Along other axes `index` may
/// be smaller than x. Throws as `index`, and ShapeError on other sizes.
Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index);
/// x with each element of `src` added where `gather` with the same index would read it:
/// `torch.scatter_add`. `src` has the shape of `index` (PyTorch: that or larger).
Tensor scatter_add(Tensor x, std::int64_t axis, const Tensor& index, const Tensor& src);
/// Row `ids[...]` of a table `weight` (rows, width) for each id: (ids..., width).
/// Throws IndexError on an id outside [0, rows), TypeError unless ids are i64.
Tensor embedding(const Tensor& weight, const Tensor& ids);

}  // namespace glassgrad
