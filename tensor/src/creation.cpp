#include <glassgrad/tensor/tensor.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "strided_copy.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace glassgrad {

using detail::checked_cast;
using detail::exact_cast;
using detail::fail;
using detail::hint;
using detail::with_type;

void detail::check_count(std::string_view op, const Shape& shape, std::size_t count) {
    const std::int64_t wanted = checked_numel(op, shape, f64);
    if (static_cast<std::uint64_t>(wanted) != count) {
        fail<ShapeError>("{}: shape {} holds {} elements, {} given", op, shape, wanted, count);
    }
}

namespace {

/// Sizes of a nested list, from its first items; the walk below checks the rest.
Shape shape_of(const NestedList& list) {
    Shape shape;
    const NestedList* level = &list;
    while (!level->is_number()) {
        shape.push_back(static_cast<std::int64_t>(level->items().size()));
        if (level->items().empty()) break;
        level = &level->items().front();
    }
    return shape;
}

template <class T>
void write(const NestedList& list, const Shape& shape, int axis, T*& out) {
    if (list.is_number()) {
        if (axis != shape.rank()) {
            fail<ShapeError>("tensor: ragged list: a number at depth {} where shape {} has a list",
                             axis, shape);
        }
        if constexpr (std::is_same_v<T, std::int64_t>) {
            *out++ = list.is_integer() ? list.integer() : exact_cast<T>("tensor", list.number());
        } else {
            *out++ = exact_cast<T>("tensor", list.number());
        }
        return;
    }
    const auto count = static_cast<std::int64_t>(list.items().size());
    if (axis >= shape.rank() || count != shape[axis]) {
        fail<ShapeError>("tensor: ragged list: {} items at depth {} where shape {} has {}", count,
                         axis, shape,
                         axis < shape.rank() ? fmt::format("{}", shape[axis]) : "a number");
    }
    for (const NestedList& item : list.items()) write(item, shape, axis + 1, out);
}

}  // namespace

Tensor tensor(const NestedList& values, DType dtype) {
    const Shape shape = shape_of(values);
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&](auto type) {
        auto* out = result.mutable_data<typename decltype(type)::type>();
        write(values, shape, 0, out);
    });
    return result;
}

Tensor from_values(std::span<const double> values, const Shape& shape, DType dtype) {
    detail::check_count("from_values", shape, values.size());
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        std::transform(values.begin(), values.end(), result.mutable_data<T>(),
                       [](double value) { return exact_cast<T>("from_values", value); });
    });
    return result;
}

Tensor full(const Shape& shape, double value, DType dtype) {
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        detail::write_number(result.numel(), exact_cast<T>("full", value),
                             result.mutable_data<T>());
    });
    return result;
}

Tensor zeros(const Shape& shape, DType dtype) {
    Tensor result = Tensor::empty(shape, dtype);
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        std::memset(static_cast<void*>(result.mutable_data<T>()), 0,
                    static_cast<std::size_t>(result.numel()) * sizeof(T));
    });
    return result;
}

Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }

Tensor zeros_like(const Tensor& x) {
    detail::require_defined("zeros_like", x);
    return zeros(x.shape(), x.dtype());
}

Tensor ones_like(const Tensor& x) {
    detail::require_defined("ones_like", x);
    return full(x.shape(), 1, x.dtype());
}

Tensor arange(double start, double stop, double step, DType dtype) {
    const double count = std::ceil((stop - start) / step);
    if (step == 0 || !std::isfinite(start) || !std::isfinite(stop) || !std::isfinite(step)) {
        fail<ValueError>("arange: cannot count from {} to {} by {}", start, stop, step);
    }
    if (count > 0x1p60) {
        fail<ShapeError>("arange: {} to {} by {} is {} elements, too many", start, stop, step,
                         count);
    }
    const auto n = static_cast<std::int64_t>(std::max(0.0, count));
    Tensor result = Tensor::empty({n}, dtype);
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        // NumPy's rule: the first two values fix the step in the type of the result.
        const T first = checked_cast<T>("arange", start);
        if constexpr (std::is_same_v<T, bool>) {
            fail<TypeError>("arange: needs numbers, got boolean");
        } else {
            const T delta = static_cast<T>(checked_cast<T>("arange", start + step) - first);
            for (std::int64_t i = 0; i < n; ++i)
                out[i] = static_cast<T>(first + static_cast<T>(i) * delta);
        }
    });
    return result;
}

Tensor arange(std::int64_t stop) {
    Tensor result = Tensor::empty({std::max<std::int64_t>(0, stop)}, i64);
    auto* out = result.mutable_data<std::int64_t>();
    for (std::int64_t i = 0; i < stop; ++i) out[i] = i;
    return result;
}

Tensor linspace(double start, double stop, std::int64_t count, DType dtype) {
    if (count < 0) fail<ValueError>("linspace: {} values asked for", count);
    if (!is_floating(dtype)) {
        fail<TypeError>(hint("use arange for integers"), "linspace: needs f32 or f64, got {}",
                        dtype);
    }
    Tensor result = Tensor::empty({count}, dtype);
    const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; i < count; ++i) {
            const bool last = count > 1 && i + 1 == count;
            out[i] = static_cast<T>(last ? stop : static_cast<double>(i) * step + start);
        }
    });
    return result;
}

Tensor eye(std::int64_t n, DType dtype) {
    Tensor result = zeros({n, n}, dtype);
    with_type(dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; i < n; ++i) out[i * (n + 1)] = T{1};
    });
    return result;
}

}  // namespace glassgrad
