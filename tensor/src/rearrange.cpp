// Functions that put elements elsewhere or leave some out: pad, flip, roll, triangles, repeat.

#include <glassgrad/tensor/ops.hpp>

#include "along.hpp"
#include "dispatch.hpp"
#include "fail.hpp"
#include "strided_copy.hpp"

#include <algorithm>
#include <array>

namespace glassgrad {

using detail::Along;
using detail::fail;
using detail::hint;
using detail::Strides;
using detail::with_type;

namespace {

std::size_t at(int axis) { return static_cast<std::size_t>(axis); }

Tensor rolled(const Tensor& x, std::int64_t shift, int axis) {
    const Along along(x.shape(), axis);
    const std::int64_t block = along.size * along.inner;
    const std::int64_t head = (along.size - shift) * along.inner;  // goes behind the rest
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; i < along.outer; ++i, in += block, out += block) {
            std::rotate_copy(in, in + head, in + block, out);
        }
    });
    return result;
}

Tensor repeated(const Tensor& x, std::int64_t count, int axis) {
    const Along along(x.shape(), axis);
    const std::int64_t block = along.size * along.inner;
    Shape shape = x.shape();
    shape[axis] *= count;
    Tensor result = Tensor::empty(shape, x.dtype());
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; i < along.outer; ++i, in += block) {
            for (std::int64_t k = 0; k < count; ++k) out = std::copy_n(in, block, out);
        }
    });
    return result;
}

/// Rows of matrices with the part from `first(i)` to `last(i)` kept.
template <class First, class Last>
Tensor triangle(std::string_view op, const Tensor& x, const First& first, const Last& last) {
    detail::require_defined(op, x);
    if (x.rank() < 2) {
        fail<ShapeError>("{}: needs two axes, shape {} has {}", op, x.shape(), x.rank());
    }
    const std::int64_t rows = x.shape()[x.rank() - 2];
    const std::int64_t columns = x.shape().back();
    Tensor result = zeros(x.shape(), x.dtype());
    if (x.numel() == 0) return result;
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        const T* const end = in + x.numel();
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; in != end; in += columns, out += columns) {
            const std::int64_t begin = first(i);
            std::copy_n(in + begin, std::max<std::int64_t>(0, last(i) - begin), out + begin);
            i = i + 1 == rows ? 0 : i + 1;
        }
    });
    return result;
}

/// A diagonal beyond every element is cut to one that is just outside.
std::int64_t cut_diagonal(const Tensor& x, std::int64_t diagonal) {
    if (x.rank() < 2) return 0;
    return std::clamp(diagonal, -x.shape()[x.rank() - 2], x.shape().back());
}

}  // namespace

Tensor pad(const Tensor& x, std::span<const PadWidth> widths, const PadOptions& options) {
    detail::require_defined("pad", x);
    if (widths.size() != at(x.rank())) {
        fail<ShapeError>(hint("give one (before, after) an axis, the first axis first"),
                         "pad: {} widths given for shape {}, which has {} axes", widths.size(),
                         x.shape(), x.rank());
    }
    Shape shape = x.shape();
    const auto too_large = [&](int axis) {
        fail<ShapeError>("pad: widths {} and {} of axis {} are too large", widths[at(axis)].before,
                         widths[at(axis)].after, axis);
    };
    for (int i = 0; i < x.rank(); ++i) {
        for (const std::int64_t width : {widths[at(i)].before, widths[at(i)].after}) {
            if (width < 0) {
                fail<ValueError>(hint("slice cuts"), "pad: width {} of axis {} is negative", width,
                                 i);
            }
            if (__builtin_add_overflow(shape[i], width, &shape[i])) too_large(i);
        }
    }
    checked_numel("pad", shape, x.dtype());
    Tensor result = Tensor::empty(shape, x.dtype());
    const Strides strides = detail::contiguous_strides(shape);
    std::int64_t start = 0;
    for (int i = 0; i < x.rank(); ++i) start += widths[at(i)].before * strides[at(i)];
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        std::fill_n(out, result.numel(), detail::exact_cast<T>("pad", options.value));
        if (x.numel() == 0) return;
        const T* in = x.data<T>();
        const detail::StridedWalk<1> walk(x.shape(), {strides});
        walk([&](std::int64_t from, const auto& offsets, std::int64_t n, const auto& steps) {
            T* to = out + start + offsets[0];
            for (std::int64_t i = 0; i < n; ++i) to[i * steps[0]] = in[from + i];
        });
    });
    return result;
}

Tensor pad(const Tensor& x, std::initializer_list<PadWidth> widths, const PadOptions& options) {
    return pad(x, std::span<const PadWidth>(widths.begin(), widths.size()), options);
}

Tensor flip(const Tensor& x, const Axes& axes) {
    detail::require_defined("flip", x);
    const std::uint32_t mask = normalize_axes("flip", axes, x.shape());
    if (x.numel() == 0) return x;
    Strides strides = detail::contiguous_strides(x.shape());
    std::int64_t start = 0;
    bool same = true;
    for (int i = 0; i < x.rank(); ++i) {
        if ((mask >> i & 1u) == 0 || x.shape()[i] == 1) continue;
        start += (x.shape()[i] - 1) * strides[at(i)];
        strides[at(i)] = -strides[at(i)];
        same = false;
    }
    return same ? x : detail::strided_copy(x, x.shape(), strides, start);
}

Tensor roll(const Tensor& x, std::span<const std::int64_t> shifts,
            std::span<const std::int64_t> axes) {
    detail::require_defined("roll", x);
    if (shifts.size() != axes.size()) {
        fail<ValueError>(hint("give one shift an axis"), "roll: {} shifts for {} axes",
                         shifts.size(), axes.size());
    }
    for (const std::int64_t axis : axes) normalize_axis("roll", axis, x.shape());
    if (x.numel() == 0) return x;
    std::array<std::int64_t, max_rank> total{};  // by axis, in [0, size)
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const int axis = normalize_axis("roll", axes[i], x.shape());
        const std::int64_t size = x.shape()[axis];
        const std::int64_t shift = shifts[i] % size;
        total[at(axis)] = (total[at(axis)] + (shift < 0 ? shift + size : shift)) % size;
    }
    Tensor result = x;
    for (int axis = 0; axis < x.rank(); ++axis) {
        if (total[at(axis)] != 0) result = rolled(result, total[at(axis)], axis);
    }
    return result;
}

Tensor roll(const Tensor& x, std::initializer_list<std::int64_t> shifts,
            std::initializer_list<std::int64_t> axes) {
    return roll(x, std::span<const std::int64_t>(shifts.begin(), shifts.size()),
                std::span<const std::int64_t>(axes.begin(), axes.size()));
}

Tensor roll(const Tensor& x, std::int64_t shift, std::int64_t axis) {
    return roll(x, {shift}, {axis});
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
    const std::int64_t d = cut_diagonal(x, diagonal);
    return triangle(
        "tril", x, [](std::int64_t) { return std::int64_t{0}; },
        [&](std::int64_t i) { return std::clamp<std::int64_t>(i + d + 1, 0, x.shape().back()); });
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
    const std::int64_t d = cut_diagonal(x, diagonal);
    return triangle(
        "triu", x,
        [&](std::int64_t i) { return std::clamp<std::int64_t>(i + d, 0, x.shape().back()); },
        [&](std::int64_t) { return x.shape().back(); });
}

Tensor repeat(const Tensor& x, const Shape& counts) {
    detail::require_defined("repeat", x);
    const int lead = counts.rank() - x.rank();
    if (lead < 0) {
        fail<ShapeError>(hint("give one count an axis"),
                         "repeat: {} counts given for shape {}, which has {} axes", counts.rank(),
                         x.shape(), x.rank());
    }
    Shape shape;  // of x, with the new axes
    Shape target;
    for (int i = 0; i < counts.rank(); ++i) {
        if (counts[i] < 0)
            fail<ValueError>("repeat: count {} in {} is negative", counts[i], counts);
        const std::int64_t size = i < lead ? 1 : x.shape()[i - lead];
        shape.push_back(size);
        target.push_back(0);
        if (__builtin_mul_overflow(size, counts[i], &target[i])) {
            fail<ShapeError>("repeat: {} times {} is too large", counts, x.shape());
        }
    }
    if (checked_numel("repeat", target, x.dtype()) == 0) return zeros(target, x.dtype());
    Tensor result = x.with_shape(shape);
    // The innermost axis first: what is copied then lies together.
    for (int i = counts.rank() - 1; i >= 0; --i) {
        if (counts[i] != 1) result = repeated(result, counts[i], i);
    }
    return result;
}

}  // namespace glassgrad
