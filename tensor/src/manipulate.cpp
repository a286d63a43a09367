// Functions that move elements: one shape seen as another, parts, joins. Reshape shares the buffer;
// everything else copies once, in runs as long as the strides allow.

#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "strided_copy.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::Strides;
using detail::with_type;

namespace {

/// A slice with its bounds resolved: `count` items from `start`, `step` apart.
struct Range {
    int axis;
    std::int64_t start;
    std::int64_t step;
    std::int64_t count;
};

/// Python's rules: negative bounds count from the end, bounds outside are cut.
Range resolve(std::string_view op, const Shape& shape, std::int64_t axis,
              const SliceOptions& options) {
    Range range{normalize_axis(op, axis, shape), 0, options.step, 0};
    const std::int64_t size = shape[range.axis];
    const std::int64_t step = options.step;
    if (step == 0) {
        fail<ValueError>("{}: step 0 along axis {} of shape {}", op, axis, shape);
    }
    const std::int64_t lowest = step > 0 ? 0 : -1;
    const std::int64_t highest = step > 0 ? size : size - 1;
    const auto bound = [&](const std::optional<std::int64_t>& given, std::int64_t missing) {
        if (!given) return missing;
        const std::int64_t value = *given < 0 ? std::max<std::int64_t>(*given + size, -1) : *given;
        return std::clamp(value, lowest, highest);
    };
    range.start = bound(options.start, step > 0 ? lowest : highest);
    const std::int64_t stop = bound(options.stop, step > 0 ? highest : lowest);
    if (step > 0 && stop > range.start) {
        range.count = (stop - range.start - 1) / step + 1;
    } else if (step < 0 && stop < range.start) {
        // |step| without overflow at the smallest i64.
        const auto stride = std::uint64_t{0} - static_cast<std::uint64_t>(step);
        range.count = static_cast<std::int64_t>(
            (static_cast<std::uint64_t>(range.start - stop) - 1) / stride + 1);
    }
    if (range.count <= 1) range.step = 1;  // never used, and may be too large to multiply
    return range;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
    detail::require_defined("reshape", x);
    Shape target = shape;
    int open = -1;
    std::int64_t known = 1;
    for (int i = 0; i < shape.rank(); ++i) {
        if (shape[i] == -1 && open < 0) {
            open = i;
        } else if (shape[i] < 0) {
            fail<ShapeError>("reshape: size {} in {} {}", shape[i], shape,
                             shape[i] == -1 ? "appears twice" : "is negative");
        }
    }
    if (open >= 0) target[open] = 1;
    known = checked_numel("reshape", target, x.dtype());
    if (open >= 0) {
        if (known == 0 || x.numel() % known != 0) {
            fail<ShapeError>("reshape: no size for -1 makes {} hold the {} elements of {}", shape,
                             x.numel(), x.shape());
        }
        target[open] = x.numel() / known;
    } else if (known != x.numel()) {
        fail<ShapeError>("reshape: {} has {} elements, {} has {}", x.shape(), x.numel(), shape,
                         known);
    }
    return x.with_shape(target);
}

Tensor permute(const Tensor& x, std::span<const std::int64_t> axes) {
    detail::require_defined("permute", x);
    const Shape order(axes);
    if (order.rank() != x.rank()) {
        fail<IndexError>("permute: {} axes given for shape {}, which has {}", order.rank(),
                         x.shape(), x.rank());
    }
    normalize_axes("permute", Axes(axes), x.shape());
    const Strides from = detail::contiguous_strides(x.shape());
    Shape shape = x.shape();
    Strides strides{};
    bool same = true;
    for (int i = 0; i < x.rank(); ++i) {
        const int axis = normalize_axis("permute", order[i], x.shape());
        shape[i] = x.shape()[axis];
        strides[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(axis)];
        same = same && axis == i;
    }
    if (same) return x;
    return detail::strided_copy(x, shape, strides, 0);
}

Tensor permute(const Tensor& x, std::initializer_list<std::int64_t> axes) {
    return permute(x, std::span<const std::int64_t>(axes.begin(), axes.size()));
}

Tensor transpose(const Tensor& x, std::int64_t axis0, std::int64_t axis1) {
    detail::require_defined("transpose", x);
    if (x.rank() < 2) {
        fail<ShapeError>("transpose: needs two axes, shape {} has {}", x.shape(), x.rank());
    }
    const int a = normalize_axis("transpose", axis0, x.shape());
    const int b = normalize_axis("transpose", axis1, x.shape());
    std::array<std::int64_t, max_rank> order{};
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(i);
    std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
    return permute(x,
                   std::span<const std::int64_t>(order.data(), static_cast<std::size_t>(x.rank())));
}

Tensor slice(const Tensor& x, std::int64_t axis, const SliceOptions& options) {
    detail::require_defined("slice", x);
    const Range range = resolve("slice", x.shape(), axis, options);
    Shape shape = x.shape();
    shape[range.axis] = range.count;
    if (shape == x.shape() && range.step == 1) return x;
    Strides strides = detail::contiguous_strides(x.shape());
    std::int64_t& stride = strides[static_cast<std::size_t>(range.axis)];
    const std::int64_t start = shape.numel() == 0 ? 0 : range.start * stride;
    stride *= range.step;
    return detail::strided_copy(x, shape, strides, start);
}

Tensor slice_scatter(const Tensor& y, const Shape& shape, std::int64_t axis,
                     const SliceOptions& options) {
    detail::require_defined("slice_scatter", y);
    checked_numel("slice_scatter", shape, y.dtype());
    const Range range = resolve("slice_scatter", shape, axis, options);
    Shape expected = shape;
    expected[range.axis] = range.count;
    if (y.shape() != expected) {
        fail<ShapeError>("slice_scatter: the slice of {} has shape {}, got {}", shape, expected,
                         y.shape());
    }
    Tensor result = zeros(shape, y.dtype());
    if (y.numel() == 0) return result;
    Strides strides = detail::contiguous_strides(shape);
    std::int64_t& stride = strides[static_cast<std::size_t>(range.axis)];
    const std::int64_t start = range.start * stride;
    stride *= range.step;
    const detail::StridedWalk<1> walk(expected, {strides});
    with_type(y.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = y.data<T>();
        T* out = result.mutable_data<T>() + start;
        walk([&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
            for (std::int64_t i = 0; i < n; ++i) out[offsets[0] + i * steps[0]] = in[at + i];
        });
    });
    return result;
}

Tensor concat(std::span<const Tensor> parts, std::int64_t axis) {
    if (parts.empty()) fail<ValueError>("concat: no tensors given");
    for (const Tensor& part : parts) detail::require_defined("concat", part);
    const Tensor& first = parts.front();
    const int at = normalize_axis("concat", axis, first.shape());
    Shape shape = first.shape();
    shape[at] = 0;
    std::int64_t before = 1;
    for (int i = 0; i < at; ++i) before *= shape[i];
    for (std::size_t p = 0; p < parts.size(); ++p) {
        const Tensor& part = parts[p];
        if (part.dtype() != first.dtype()) {
            fail<TypeError>(hint("convert one with astype"),
                            "concat: tensor 0 is {} {}, tensor {} is {} {}", first.dtype(),
                            first.shape(), p, part.dtype(), part.shape());
        }
        bool fits = part.rank() == shape.rank();
        for (int i = 0; fits && i < shape.rank(); ++i) {
            fits = i == at || part.shape()[i] == shape[i];
        }
        if (!fits) {
            fail<ShapeError>("concat: tensor 0 is {}, tensor {} is {}: only axis {} may differ",
                             first.shape(), p, part.shape(), at);
        }
        shape[at] += part.shape()[at];
    }
    Tensor result = Tensor::empty(shape, first.dtype());
    with_type(first.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        const std::int64_t row = before == 0 ? 0 : result.numel() / before;
        for (const Tensor& part : parts) {
            const std::int64_t run = before == 0 ? 0 : part.numel() / before;
            const T* in = part.data<T>();
            for (std::int64_t i = 0; i < before; ++i) std::copy_n(in + i * run, run, out + i * row);
            out += run;
        }
    });
    return result;
}

Tensor concat(std::initializer_list<Tensor> parts, std::int64_t axis) {
    return concat(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor stack(std::span<const Tensor> parts, std::int64_t axis) {
    if (parts.empty()) fail<ValueError>("stack: no tensors given");
    for (const Tensor& part : parts) detail::require_defined("stack", part);
    const Tensor& first = parts.front();
    const Shape& shape = first.shape();
    if (shape.rank() == max_rank) {
        fail<ShapeError>("stack: {} has {} axes, no room for another", shape, max_rank);
    }
    Shape target = shape;
    target.push_back(1);
    const int at = normalize_axis("stack", axis, target);
    std::vector<Tensor> rows;
    rows.reserve(parts.size());
    for (std::size_t p = 0; p < parts.size(); ++p) {
        if (parts[p].dtype() != first.dtype()) {
            fail<TypeError>(hint("convert one with astype"),
                            "stack: tensor 0 is {} {}, tensor {} is {} {}", first.dtype(), shape, p,
                            parts[p].dtype(), parts[p].shape());
        }
        if (parts[p].shape() != shape) {
            fail<ShapeError>("stack: tensor 0 is {}, tensor {} is {}: shapes must be equal", shape,
                             p, parts[p].shape());
        }
        Shape widened = shape;
        widened.insert(at, 1);
        rows.push_back(parts[p].with_shape(widened));
    }
    return concat(rows, at);
}

Tensor stack(std::initializer_list<Tensor> parts, std::int64_t axis) {
    return stack(std::span<const Tensor>(parts.begin(), parts.size()), axis);
}

Tensor broadcast_to(const Tensor& x, const Shape& shape) {
    detail::require_defined("broadcast_to", x);
    if (x.shape() == shape) return x;
    checked_numel("broadcast_to", shape, x.dtype());
    if (broadcast_shapes("broadcast_to", x.shape(), shape) != shape) {
        fail<ShapeError>("broadcast_to: {} does not broadcast to {}", x.shape(), shape);
    }
    return detail::strided_copy(x, shape, detail::broadcast_strides(x.shape(), shape), 0);
}

}  // namespace glassgrad
