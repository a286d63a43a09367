// Axes put in, taken out and spread, and a tensor cut along one: forms of reshape, broadcast_to
// and slice that carry checks of their own.

#include <glassgrad/tensor/detail/pieces.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "fail.hpp"

#include <algorithm>

namespace glassgrad {

using detail::fail;
using detail::hint;

Tensor squeeze(const Tensor& x, const Axes& axes) {
    detail::require_defined("squeeze", x);
    const std::uint32_t mask = normalize_axes("squeeze", axes, x.shape());
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
        const bool named = (mask >> i & 1u) != 0;
        if (named && x.shape()[i] == 1) continue;
        if (named && !axes.all()) {
            fail<ShapeError>(hint("only axes of size 1 can go; select drops an axis at an index"),
                             "squeeze: axis {} of shape {} has size {}", i, x.shape(),
                             x.shape()[i]);
        }
        shape.push_back(x.shape()[i]);
    }
    return x.with_shape(shape);
}

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
    detail::require_defined("unsqueeze", x);
    if (x.rank() == max_rank) {
        fail<ShapeError>("unsqueeze: {} has {} axes, no room for another", x.shape(), max_rank);
    }
    Shape shape = x.shape();
    if (axis < -x.rank() - 1 || axis > x.rank()) {
        fail<IndexError>(hint("a new axis goes to {} to {}", -x.rank() - 1, x.rank()),
                         "unsqueeze: no place {} for an axis in shape {}", axis, x.shape());
    }
    shape.insert(static_cast<int>(axis < 0 ? axis + x.rank() + 1 : axis), 1);
    return x.with_shape(shape);
}

Tensor expand(const Tensor& x, const Shape& shape) {
    detail::require_defined("expand", x);
    const int lead = shape.rank() - x.rank();
    if (lead < 0) {
        fail<ShapeError>(hint("new axes go to the left, none can go"),
                         "expand: {} names {} axes, {} has {}", shape, shape.rank(), x.shape(),
                         x.rank());
    }
    Shape target = shape;
    for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] == -1 && i < lead) {
            fail<ShapeError>(hint("a new axis needs its size"),
                             "expand: -1 at axis {} of {} keeps a size that {} does not have", i,
                             shape, x.shape());
        }
        if (shape[i] == -1) target[i] = x.shape()[i - lead];
        if (target[i] < 0) fail<ShapeError>("expand: size {} in {} is negative", shape[i], shape);
        if (i >= lead && target[i] != x.shape()[i - lead] && x.shape()[i - lead] != 1) {
            fail<ShapeError>(hint("only axes of size 1 expand; -1 keeps a size"),
                             "expand: {} does not expand to {}: sizes {} and {} differ at axis {}",
                             x.shape(), shape, x.shape()[i - lead], target[i], i);
        }
    }
    checked_numel("expand", target, x.dtype());
    return broadcast_to(x, target);
}

std::vector<std::int64_t> detail::split_sizes(const Shape& shape, std::int64_t size,
                                              std::int64_t axis) {
    const std::int64_t whole = shape[normalize_axis("split", axis, shape)];
    if (size < 0 || (size == 0 && whole > 0)) {
        fail<ValueError>("split: pieces of {} along axis {} of shape {}: the size must be positive",
                         size, axis, shape);
    }
    std::vector<std::int64_t> sizes;
    for (std::int64_t at = 0; at < whole; at += sizes.back()) {
        sizes.push_back(std::min(size, whole - at));
    }
    if (sizes.empty()) sizes.push_back(0);
    return sizes;
}

std::vector<std::int64_t> detail::split_sizes(const Shape& shape,
                                              std::span<const std::int64_t> sizes,
                                              std::int64_t axis) {
    const std::int64_t whole = shape[normalize_axis("split", axis, shape)];
    std::int64_t left = whole;
    std::string text;
    bool fits = true;
    for (const std::int64_t size : sizes) {
        if (size < 0) fail<ValueError>("split: size {} is negative", size);
        fits = fits && size <= left;
        left -= fits ? size : 0;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", size);
    }
    if (!fits || left != 0) {
        fail<ShapeError>(hint("sizes must add up to {}", whole),
                         "split: sizes ({}) do not make up axis {} of shape {}", text, axis, shape);
    }
    return {sizes.begin(), sizes.end()};
}

std::vector<std::int64_t> detail::chunk_sizes(const Shape& shape, std::int64_t count,
                                              std::int64_t axis) {
    const std::int64_t whole = shape[normalize_axis("chunk", axis, shape)];
    if (count < 1) {
        fail<ValueError>("chunk: {} pieces along axis {} of shape {}: at least 1 is needed", count,
                         axis, shape);
    }
    if (whole == 0) return std::vector<std::int64_t>(static_cast<std::size_t>(count), 0);
    return split_sizes(shape, (whole - 1) / count + 1, axis);
}

std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t axis) {
    detail::require_defined("split", x);
    return detail::pieces(x, detail::split_sizes(x.shape(), size, axis), axis);
}

std::vector<Tensor> split(const Tensor& x, std::span<const std::int64_t> sizes, std::int64_t axis) {
    detail::require_defined("split", x);
    return detail::pieces(x, detail::split_sizes(x.shape(), sizes, axis), axis);
}

std::vector<Tensor> split(const Tensor& x, std::initializer_list<std::int64_t> sizes,
                          std::int64_t axis) {
    return split(x, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t count, std::int64_t axis) {
    detail::require_defined("chunk", x);
    return detail::pieces(x, detail::chunk_sizes(x.shape(), count, axis), axis);
}

}  // namespace glassgrad
