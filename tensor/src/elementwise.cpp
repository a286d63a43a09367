// Elementwise functions: one loop for equal shapes, one for a broadcast operand, one for the rest.

#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"
#include "strided.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::with_float;
using detail::with_number;
using detail::with_type;

namespace {

void require_same_type(std::string_view op, const Tensor& a, const Tensor& b) {
    detail::require_defined(op, a);
    detail::require_defined(op, b);
    if (a.dtype() == b.dtype()) return;
    fail<TypeError>(hint("convert one with astype"), "{}: {} {} and {} {} have different types", op,
                    a.dtype(), a.shape(), b.dtype(), b.shape());
}

/// out[i] = f(a[i], b[i]) with broadcasting; R is the element type of the result.
template <class R, class T, class F>
Tensor binary(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    if (a.shape() == b.shape()) {
        Tensor result = Tensor::empty(a.shape(), dtype_of<R>());
        R* out = result.mutable_data<R>();
        detail::for_elements(result.numel(), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) out[i] = f(pa[i], pb[i]);
        });
        return result;
    }
    const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
    Tensor result = Tensor::empty(shape, dtype_of<R>());
    R* out = result.mutable_data<R>();
    const detail::StridedWalk<2> walk(shape, {detail::broadcast_strides(a.shape(), shape),
                                              detail::broadcast_strides(b.shape(), shape)});
    walk([&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
        const T* x = pa + offsets[0];
        const T* y = pb + offsets[1];
        R* o = out + at;
        if (steps[0] == 1 && steps[1] == 1) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
        } else if (steps[0] == 1 && steps[1] == 0) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], *y);
        } else if (steps[0] == 0 && steps[1] == 1) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(*x, y[i]);
        } else {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i * steps[0]], y[i * steps[1]]);
        }
    });
    return result;
}

/// Integer arithmetic wraps: it is done on unsigned numbers, where that is defined.
template <class T, class F>
T wrapping(T a, T b, const F& f) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    } else {
        return f(a, b);
    }
}

template <class F>
Tensor arithmetic(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
    require_same_type(op, a, b);
    return with_number(op, a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return binary<T, T>(op, a, b, [&](T x, T y) { return wrapping(x, y, f); });
    });
}

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

template <class T, class F>
Tensor map(const Tensor& x, const F& f) {
    const T* in = x.data<T>();
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    T* out = result.mutable_data<T>();
    detail::for_elements(result.numel(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = f(in[i]);
    });
    return result;
}

template <class F>
Tensor map_float(std::string_view op, const Tensor& x, const F& f) {
    detail::require_defined(op, x);
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return map<T>(x, [&](T value) { return static_cast<T>(f(value)); });
    });
}

/// Larger (or smaller) of two; NaN if either is NaN.
template <bool Larger, class T>
T extreme(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        if (a != a) return a;
        if (b != b) return b;
    }
    return (Larger ? a > b : a < b) ? a : b;
}

template <bool Larger>
Tensor extremes(std::string_view op, const Tensor& a, const Tensor& b) {
    require_same_type(op, a, b);
    return with_number(op, a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return binary<T, T>(op, a, b, [](T x, T y) { return extreme<Larger>(x, y); });
    });
}

/// Integer power by squaring, wrapping; negative exponents are refused.
std::int64_t power(std::int64_t base, std::int64_t exponent) {
    if (exponent < 0) {
        fail<ValueError>(hint("convert with astype(f64)"),
                         "pow: i64 {} to the negative power {} is not an integer", base, exponent);
    }
    std::uint64_t result = 1;
    auto factor = static_cast<std::uint64_t>(base);
    for (; exponent != 0; exponent >>= 1, factor *= factor) {
        if (exponent & 1) result *= factor;
    }
    return static_cast<std::int64_t>(result);
}
float power(float base, float exponent) { return std::pow(base, exponent); }
double power(double base, double exponent) { return std::pow(base, exponent); }

/// A number in the type of `x`; refused when an i64 tensor meets a fraction.
template <class T>
T scalar(std::string_view op, double value) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        if (std::trunc(value) != value) {
            fail<TypeError>(hint("convert with astype(f32) or astype(f64)"),
                            "{}: {} is not an integer, the tensor is i64", op, value);
        }
        return detail::checked_cast<T>(op, value);
    } else {
        (void)op;
        return static_cast<T>(value);
    }
}

template <class F>
Tensor with_scalar(std::string_view op, const Tensor& x, double value, const F& f) {
    detail::require_defined(op, x);
    return with_number(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T number = scalar<T>(op, value);
        return map<T>(x, [&](T element) { return wrapping(element, number, f); });
    });
}

constexpr auto plus = [](auto x, auto y) { return x + y; };
constexpr auto minus = [](auto x, auto y) { return x - y; };
constexpr auto times = [](auto x, auto y) { return x * y; };

/// a = f(a, b) without a new buffer where a holds its own.
template <class F>
Tensor& in_place(std::string_view op, Tensor& a, const Tensor& b, const F& f) {
    require_same_type(op, a, b);
    if (a.shape() == b.shape()) {
        with_number(op, a.dtype(), [&](auto type) {
            using T = typename decltype(type)::type;
            const T* in = b.data<T>();
            const Tensor keep = a.shares_buffer_with(b) ? b : Tensor();
            T* out = a.mutable_data<T>();
            detail::for_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t i = begin; i < end; ++i) out[i] = wrapping(out[i], in[i], f);
            });
        });
        return a;
    }
    if (broadcast_shapes(op, a.shape(), b.shape()) != a.shape()) {
        fail<ShapeError>("{}: cannot write {} into shape {}", op, b.shape(), a.shape());
    }
    return a = arithmetic(op, a, b, f);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return arithmetic("add", a, b, plus); }
Tensor sub(const Tensor& a, const Tensor& b) { return arithmetic("sub", a, b, minus); }
Tensor mul(const Tensor& a, const Tensor& b) { return arithmetic("mul", a, b, times); }

Tensor div(const Tensor& a, const Tensor& b) {
    require_same_type("div", a, b);
    return with_float("div", a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return binary<T, T>("div", a, b, [](T x, T y) { return x / y; });
    });
}

Tensor pow(const Tensor& a, const Tensor& b) {
    require_same_type("pow", a, b);
    return with_number("pow", a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return binary<T, T>("pow", a, b, [](T x, T y) { return power(x, y); });
    });
}

Tensor pow(const Tensor& a, double b) {
    detail::require_defined("pow", a);
    return with_number("pow", a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T exponent = scalar<T>("pow", b);
        if constexpr (std::is_floating_point_v<T>) {
            if (b == 2) return map<T>(a, [](T x) { return x * x; });
        }
        return map<T>(a, [&](T x) { return power(x, exponent); });
    });
}

Tensor maximum(const Tensor& a, const Tensor& b) { return extremes<true>("maximum", a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return extremes<false>("minimum", a, b); }

Tensor add(const Tensor& a, double b) { return with_scalar("add", a, b, plus); }
Tensor scale(const Tensor& x, double factor) { return with_scalar("scale", x, factor, times); }

Tensor neg(const Tensor& x) {
    detail::require_defined("neg", x);
    return with_number("neg", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return map<T>(x, [](T value) { return -value; });
        } else {
            return map<T>(x, [](T value) { return wrapping(T{0}, value, minus); });
        }
    });
}

Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
Tensor operator+(const Tensor& a, double b) { return add(a, b); }
Tensor operator-(const Tensor& a, double b) { return with_scalar("sub", a, b, minus); }
Tensor operator*(const Tensor& a, double b) { return scale(a, b); }
Tensor operator+(double a, const Tensor& b) { return add(b, a); }
Tensor operator*(double a, const Tensor& b) { return scale(b, a); }
Tensor operator-(const Tensor& x) { return neg(x); }

Tensor operator-(double a, const Tensor& b) {
    return with_scalar("sub", b, a, [](auto x, auto number) { return number - x; });
}
Tensor operator/(const Tensor& a, double b) {
    return map_float("div", a, [&](auto x) { return x / static_cast<decltype(x)>(b); });
}
Tensor operator/(double a, const Tensor& b) {
    return map_float("div", b, [&](auto x) { return static_cast<decltype(x)>(a) / x; });
}

Tensor& operator+=(Tensor& a, const Tensor& b) { return in_place("add", a, b, plus); }
Tensor& operator-=(Tensor& a, const Tensor& b) { return in_place("sub", a, b, minus); }
Tensor& operator*=(Tensor& a, const Tensor& b) { return in_place("mul", a, b, times); }
Tensor& operator*=(Tensor& a, double b) {
    detail::require_defined("scale", a);
    with_number("scale", a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T number = scalar<T>("scale", b);
        T* out = a.mutable_data<T>();
        for (std::int64_t i = 0; i < a.numel(); ++i) out[i] = wrapping(out[i], number, times);
    });
    return a;
}

Tensor exp(const Tensor& x) {
    return map_float("exp", x, [](auto v) { return std::exp(v); });
}
Tensor log(const Tensor& x) {
    return map_float("log", x, [](auto v) { return std::log(v); });
}
Tensor sqrt(const Tensor& x) {
    return map_float("sqrt", x, [](auto v) { return std::sqrt(v); });
}
Tensor tanh(const Tensor& x) {
    return map_float("tanh", x, [](auto v) { return std::tanh(v); });
}
Tensor relu(const Tensor& x) {
    return map_float("relu", x, [](auto v) { return v < 0 ? decltype(v){0} : v; });
}
Tensor abs(const Tensor& x) {
    detail::require_defined("abs", x);
    return with_number("abs", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return map<T>(x, [](T v) { return std::abs(v); });
        } else {
            return map<T>(x, [](T v) { return v < 0 ? wrapping(T{0}, v, minus) : v; });
        }
    });
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
        walk([&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
            for (std::int64_t i = 0; i < n; ++i) {
                out[at + i] = mask[offsets[0] + i * steps[0]] ? pa[offsets[1] + i * steps[1]]
                                                              : pb[offsets[2] + i * steps[2]];
            }
        });
    });
    return result;
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
