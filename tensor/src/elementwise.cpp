// Arithmetic and functions of each element.

#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"

#include <cmath>

namespace glassgrad {

using detail::binary;
using detail::fail;
using detail::hint;
using detail::map;
using detail::map_float;
using detail::map_kernel;
using detail::pair_kernel;
using detail::require_same_type;
using detail::scalar;
using detail::with_float;
using detail::with_number;
using detail::wrapping;

namespace {

/// By the kernel that choose(pairs) is, or f of each pair where elements are i64.
template <class Choose, class F>
Tensor arithmetic(std::string_view op, const Tensor& a, const Tensor& b, const Choose& choose,
                  const F& f) {
    require_same_type(op, a, b);
    return with_number(op, a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return pair_kernel<T>(op, a, b, choose);
        } else {
            return binary<T, T>(op, a, b, [&](T x, T y) { return wrapping(x, y, f); });
        }
    });
}

template <class Choose>
Tensor float_arithmetic(std::string_view op, const Tensor& a, const Tensor& b,
                        const Choose& choose) {
    require_same_type(op, a, b);
    return with_float(op, a.dtype(), [&](auto type) {
        return pair_kernel<typename decltype(type)::type>(op, a, b, choose);
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

enum class Number { left, right };

/// x and a number, which stands left or right.
template <class Choose, class F>
Tensor with_scalar(std::string_view op, const Tensor& x, double value, Number side,
                   const Choose& choose, const F& f) {
    detail::require_defined(op, x);
    return with_number(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T number = scalar<T>(op, value);
        if constexpr (std::is_floating_point_v<T>) {
            const auto kernel = choose(detail::kernels<T>().pair);
            const T* in = x.data<T>();
            Tensor result = Tensor::empty(x.shape(), x.dtype());
            T* out = result.mutable_data<T>();
            detail::write_elements(x.numel(), out, [&](std::int64_t begin, std::int64_t n, T* to) {
                if (side == Number::left) {
                    kernel(n, &number, 0, in + begin, 1, to);
                } else {
                    kernel(n, in + begin, 1, &number, 0, to);
                }
            });
            return result;
        } else {
            return map<T>(x, [&](T element) {
                return side == Number::left ? wrapping(number, element, f)
                                            : wrapping(element, number, f);
            });
        }
    });
}

constexpr auto plus = [](auto x, auto y) { return x + y; };
constexpr auto minus = [](auto x, auto y) { return x - y; };
constexpr auto times = [](auto x, auto y) { return x * y; };
constexpr auto quotient = [](auto x, auto y) { return x / y; };  // of floating numbers only

constexpr auto add_pairs = [](const auto& pairs) { return pairs.add; };
constexpr auto sub_pairs = [](const auto& pairs) { return pairs.sub; };
constexpr auto mul_pairs = [](const auto& pairs) { return pairs.mul; };
constexpr auto div_pairs = [](const auto& pairs) { return pairs.div; };

/// a = f(a, b) without a new buffer where a holds its own.
template <class Choose, class F>
Tensor& in_place(std::string_view op, Tensor& a, const Tensor& b, const Choose& choose,
                 const F& f) {
    require_same_type(op, a, b);
    if (a.shape() == b.shape()) {
        with_number(op, a.dtype(), [&](auto type) {
            using T = typename decltype(type)::type;
            const T* in = b.data<T>();
            const Tensor keep = a.shares_buffer_with(b) ? b : Tensor();
            T* out = a.mutable_data<T>();
            detail::for_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
                if constexpr (std::is_floating_point_v<T>) {
                    const auto kernel = choose(detail::kernels<T>().pair);
                    kernel(end - begin, out + begin, 1, in + begin, 1, out + begin);
                } else {
                    for (std::int64_t i = begin; i < end; ++i) out[i] = wrapping(out[i], in[i], f);
                }
            });
        });
        return a;
    }
    if (broadcast_shapes(op, a.shape(), b.shape()) != a.shape()) {
        fail<ShapeError>("{}: cannot write {} into shape {}", op, b.shape(), a.shape());
    }
    return a = arithmetic(op, a, b, choose, f);
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return arithmetic("add", a, b, add_pairs, plus); }
Tensor sub(const Tensor& a, const Tensor& b) { return arithmetic("sub", a, b, sub_pairs, minus); }
Tensor mul(const Tensor& a, const Tensor& b) { return arithmetic("mul", a, b, mul_pairs, times); }

Tensor div(const Tensor& a, const Tensor& b) { return float_arithmetic("div", a, b, div_pairs); }

Tensor chain_mul(const Tensor& gy, const Tensor& slope) {
    return float_arithmetic("chain_mul", gy, slope,
                            [](const auto& pairs) { return pairs.chain_mul; });
}

Tensor chain_div(const Tensor& gy, const Tensor& divisor) {
    return float_arithmetic("chain_div", gy, divisor,
                            [](const auto& pairs) { return pairs.chain_div; });
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
            if (b == 2) return square(a);
        }
        return map<T>(a, [&](T x) { return power(x, exponent); });
    });
}

Tensor add(const Tensor& a, double b) {
    return with_scalar("add", a, b, Number::right, add_pairs, plus);
}
Tensor scale(const Tensor& x, double factor) {
    return with_scalar("scale", x, factor, Number::right, mul_pairs, times);
}

Tensor neg(const Tensor& x) {
    detail::require_defined("neg", x);
    return with_number("neg", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return map_kernel("neg", x, [](const auto& maps) { return maps.neg; });
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
Tensor operator-(const Tensor& a, double b) {
    return with_scalar("sub", a, b, Number::right, sub_pairs, minus);
}
Tensor operator*(const Tensor& a, double b) { return scale(a, b); }
Tensor operator+(double a, const Tensor& b) { return add(b, a); }
Tensor operator*(double a, const Tensor& b) { return scale(b, a); }
Tensor operator-(const Tensor& x) { return neg(x); }

Tensor operator-(double a, const Tensor& b) {
    return with_scalar("sub", b, a, Number::left, sub_pairs, minus);
}
Tensor operator/(const Tensor& a, double b) {
    detail::require_floating("div", a);
    return with_scalar("div", a, b, Number::right, div_pairs, quotient);
}
Tensor operator/(double a, const Tensor& b) {
    detail::require_floating("div", b);
    return with_scalar("div", b, a, Number::left, div_pairs, quotient);
}

Tensor& operator+=(Tensor& a, const Tensor& b) { return in_place("add", a, b, add_pairs, plus); }
Tensor& operator-=(Tensor& a, const Tensor& b) { return in_place("sub", a, b, sub_pairs, minus); }
Tensor& operator*=(Tensor& a, const Tensor& b) { return in_place("mul", a, b, mul_pairs, times); }
Tensor& operator*=(Tensor& a, double b) {
    detail::require_defined("scale", a);
    with_number("scale", a.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T number = scalar<T>("scale", b);
        T* out = a.mutable_data<T>();
        detail::for_elements(a.numel(), [&](std::int64_t begin, std::int64_t end) {
            if constexpr (std::is_floating_point_v<T>) {
                detail::kernels<T>().pair.mul(end - begin, out + begin, 1, &number, 0, out + begin);
            } else {
                for (std::int64_t i = begin; i < end; ++i) {
                    out[i] = wrapping(out[i], number, times);
                }
            }
        });
    });
    return a;
}

Tensor exp(const Tensor& x) {
    return map_kernel("exp", x, [](const auto& map) { return map.exp; });
}
Tensor expm1(const Tensor& x) {
    return map_kernel("expm1", x, [](const auto& map) { return map.expm1; });
}
Tensor log(const Tensor& x) {
    return map_kernel("log", x, [](const auto& map) { return map.log; });
}
Tensor log1p(const Tensor& x) {
    return map_kernel("log1p", x, [](const auto& map) { return map.log1p; });
}
Tensor sqrt(const Tensor& x) {
    return map_kernel("sqrt", x, [](const auto& map) { return map.sqrt; });
}
Tensor rsqrt(const Tensor& x) {
    return map_kernel("rsqrt", x, [](const auto& map) { return map.rsqrt; });
}
Tensor reciprocal(const Tensor& x) {
    return map_kernel("reciprocal", x, [](const auto& map) { return map.reciprocal; });
}
Tensor sin(const Tensor& x) {
    return map_float("sin", x, [](auto v) { return std::sin(v); });
}
Tensor cos(const Tensor& x) {
    return map_float("cos", x, [](auto v) { return std::cos(v); });
}
Tensor erf(const Tensor& x) {
    return map_kernel("erf", x, [](const auto& map) { return map.erf; });
}

Tensor square(const Tensor& x) {
    detail::require_defined("square", x);
    return with_number("square", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return map_kernel("square", x, [](const auto& maps) { return maps.square; });
        } else {
            return map<T>(x, [](T v) { return wrapping(v, v, times); });
        }
    });
}

Tensor sign(const Tensor& x) {
    detail::require_defined("sign", x);
    return with_number("sign", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return map<T>(x, [](T v) {
            if (v != v) return v;
            return static_cast<T>((v > 0) - (v < 0));
        });
    });
}

Tensor abs(const Tensor& x) {
    detail::require_defined("abs", x);
    return with_number("abs", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return map_kernel("abs", x, [](const auto& maps) { return maps.abs; });
        } else {
            return map<T>(x, [](T v) { return v < 0 ? wrapping(T{0}, v, minus) : v; });
        }
    });
}

}  // namespace glassgrad
