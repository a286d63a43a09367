// Comparison, and choice between elements.

#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad {

using detail::binary;
using detail::fail;
using detail::hint;
using detail::map;
using detail::require_same_type;
using detail::scalar;
using detail::with_number;
using detail::with_type;

namespace {

template <class F>
Tensor compare(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
    require_same_type(op, a, b);
    return with_type(a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return binary<bool, T>(op, a, b, f);
    });
}

template <class F>
Tensor logical(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
    detail::require_defined(op, a);
    detail::require_defined(op, b);
    if (a.dtype() != boolean || b.dtype() != boolean) {
        fail<TypeError>(hint("compare first, or convert with astype(boolean)"),
                        "{}: needs boolean tensors, got {} and {}", op, a.dtype(), b.dtype());
    }
    return binary<bool, bool>(op, a, b, f);
}

template <class T>
Tensor clamped(const Tensor& x, T low, T high) {
    const auto kernel = detail::kernels<T>().map.clamp;
    const T* in = x.data<T>();
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    T* out = result.mutable_data<T>();
    detail::for_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
        kernel(end - begin, low, high, in + begin, out + begin);
    });
    return result;
}

template <class Choose, class F>
Tensor extremes(std::string_view op, const Tensor& a, const Tensor& b, const Choose& choose,
                const F& f) {
    require_same_type(op, a, b);
    return with_number(op, a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return detail::pair_kernel<T>(op, a, b, choose);
        } else {
            return binary<T, T>(op, a, b, f);
        }
    });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
    return extremes(
        "maximum", a, b, [](const auto& pairs) { return pairs.maximum; },
        [](auto x, auto y) { return x > y ? x : y; });
}
Tensor minimum(const Tensor& a, const Tensor& b) {
    return extremes(
        "minimum", a, b, [](const auto& pairs) { return pairs.minimum; },
        [](auto x, auto y) { return x < y ? x : y; });
}

Tensor equal(const Tensor& a, const Tensor& b) {
    return compare("equal", a, b, [](auto x, auto y) { return x == y; });
}
Tensor not_equal(const Tensor& a, const Tensor& b) {
    return compare("not_equal", a, b, [](auto x, auto y) { return x != y; });
}
Tensor less(const Tensor& a, const Tensor& b) {
    return compare("less", a, b, [](auto x, auto y) { return x < y; });
}
Tensor less_equal(const Tensor& a, const Tensor& b) {
    return compare("less_equal", a, b, [](auto x, auto y) { return x <= y; });
}
Tensor greater(const Tensor& a, const Tensor& b) {
    return compare("greater", a, b, [](auto x, auto y) { return x > y; });
}
Tensor greater_equal(const Tensor& a, const Tensor& b) {
    return compare("greater_equal", a, b, [](auto x, auto y) { return x >= y; });
}
Tensor logical_and(const Tensor& a, const Tensor& b) {
    return logical("logical_and", a, b, [](bool x, bool y) { return x && y; });
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
    return logical("logical_or", a, b, [](bool x, bool y) { return x || y; });
}
Tensor logical_not(const Tensor& x) {
    detail::require_defined("logical_not", x);
    if (x.dtype() != boolean) {
        fail<TypeError>(hint("compare first, or convert with astype(boolean)"),
                        "logical_not: needs a boolean tensor, got {}", x.dtype());
    }
    return map<bool>(x, [](bool v) { return !v; });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
    require_same_type("where", a, b);
    detail::require_defined("where", condition);
    if (condition.dtype() != boolean) {
        fail<TypeError>(hint("compare first, or convert with astype(boolean)"),
                        "where: the condition must be boolean, got {} {}", condition.dtype(),
                        condition.shape());
    }
    const Shape shape = broadcast_shapes(
        "where", broadcast_shapes("where", condition.shape(), a.shape()), b.shape());
    const bool* mask = condition.data<bool>();
    Tensor result = Tensor::empty(shape, a.dtype());
    const detail::StridedWalk<3> walk(shape, {detail::broadcast_strides(condition.shape(), shape),
                                              detail::broadcast_strides(a.shape(), shape),
                                              detail::broadcast_strides(b.shape(), shape)});
    with_type(a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* pa = a.data<T>();
        const T* pb = b.data<T>();
        T* out = result.mutable_data<T>();
        const auto run = [&](std::int64_t at, const auto& offsets, std::int64_t n,
                             const auto& steps) {
            if constexpr (std::is_floating_point_v<T>) {
                detail::kernels<T>().pair.choose(n, mask + offsets[0], steps[0], pa + offsets[1],
                                                 steps[1], pb + offsets[2], steps[2], out + at);
                return;
            }
            for (std::int64_t i = 0; i < n; ++i) {
                out[at + i] = mask[offsets[0] + i * steps[0]] ? pa[offsets[1] + i * steps[1]]
                                                              : pb[offsets[2] + i * steps[2]];
            }
        };
        detail::in_chunks(walk, run);
    });
    return result;
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
    detail::require_defined("masked_fill", x);
    detail::require_defined("masked_fill", mask);
    if (mask.dtype() != boolean) {
        fail<TypeError>(hint("compare first, or convert with astype(boolean)"),
                        "masked_fill: the mask must be boolean, got {} {}", mask.dtype(),
                        mask.shape());
    }
    broadcast_shapes("masked_fill", x.shape(), mask.shape());
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        detail::exact_cast<T>("masked_fill", value);
    });
    return where(mask, full({}, value, x.dtype()), x);
}

Tensor clamp(const Tensor& x, const ClampOptions& options) {
    detail::require_defined("clamp", x);
    const std::optional<double>& min = options.min;
    const std::optional<double>& max = options.max;
    if (!min && !max) fail<ValueError>("clamp: neither min nor max is given");
    if ((min && *min != *min) || (max && *max != *max)) {
        fail<ValueError>("clamp: a bound is NaN");
    }
    if (min && max && *min > *max) {
        fail<ValueError>("clamp: min {} is larger than max {}", *min, *max);
    }
    return with_number("clamp", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T low = min ? scalar<T>("clamp", *min) : T{};
        const T high = max ? scalar<T>("clamp", *max) : T{};
        if constexpr (std::is_floating_point_v<T>) {
            constexpr T infinity = std::numeric_limits<T>::infinity();
            return clamped(x, min ? low : -infinity, max ? high : infinity);
        }
        const bool below = min.has_value();
        const bool above = max.has_value();
        return map<T>(x, [=](T v) {
            if (below && v < low) return low;
            return above && v > high ? high : v;
        });
    });
}

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
    require_same_type("allclose", a, b);
    return with_type(a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Tensor close = binary<bool, T>("allclose", a, b, [&](T x, T y) {
            if (x == y) return true;
            if constexpr (std::is_floating_point_v<T>) {
                if (x != x || y != y) return options.equal_nan && x != x && y != y;
                if (std::isinf(x) || std::isinf(y)) return false;
            }
            const double distance = std::abs(static_cast<double>(x) - static_cast<double>(y));
            return distance <= options.atol + options.rtol * std::abs(static_cast<double>(y));
        });
        const auto values = close.values<bool>();
        return std::all_of(values.begin(), values.end(), [](bool v) { return v; });
    });
}

}  // namespace glassgrad
