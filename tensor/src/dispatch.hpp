#pragma once
// From the element type at run time to a C++ type, and casts that refuse what does not fit.

#include <glassgrad/tensor/dtype.hpp>

#include "fail.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

namespace glassgrad::detail {

/// Calls f(std::type_identity<T>) for the C++ type of `dtype`.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
    switch (dtype) {
        case DType::f32: return f(std::type_identity<float>{});
        case DType::f64: return f(std::type_identity<double>{});
        case DType::i64: return f(std::type_identity<std::int64_t>{});
        case DType::boolean: break;
    }
    return f(std::type_identity<bool>{});
}

/// As with_type for f32 and f64; TypeError that names `op` for the others.
template <class F>
decltype(auto) with_float(std::string_view op, DType dtype, F&& f) {
    if (dtype == DType::f32) return f(std::type_identity<float>{});
    if (dtype == DType::f64) return f(std::type_identity<double>{});
    fail<TypeError>(hint("convert with astype(f32) or astype(f64)"),
                    "{}: needs a floating tensor, got {}", op, dtype);
}

/// TypeError that names `op` unless x is f32 or f64.
inline void require_floating(std::string_view op, const Tensor& x) {
    require_defined(op, x);
    with_float(op, x.dtype(), [](auto) {});
}

/// As with_type for f32, f64 and i64.
template <class F>
decltype(auto) with_number(std::string_view op, DType dtype, F&& f) {
    if (dtype == DType::f32) return f(std::type_identity<float>{});
    if (dtype == DType::f64) return f(std::type_identity<double>{});
    if (dtype == DType::i64) return f(std::type_identity<std::int64_t>{});
    fail<TypeError>(hint("convert with astype(i64) or astype(f32)"), "{}: needs numbers, got {}",
                    op, dtype);
}

/// `value` as To. Float to i64 cuts towards zero; NaN, infinity and values outside throw.
template <class To, class From>
To checked_cast(std::string_view op, From value) {
    if constexpr (std::is_same_v<To, bool>) {
        return value != From{};
    } else if constexpr (std::is_same_v<To, std::int64_t> && std::is_floating_point_v<From>) {
        if (!(value >= static_cast<From>(-9223372036854775808.0) &&
              value < static_cast<From>(9223372036854775808.0))) {
            fail<ValueError>("{}: {} does not fit i64", op, value);
        }
        return static_cast<std::int64_t>(value);
    } else {
        return static_cast<To>(value);
    }
}

/// `value` as To, and nothing lost but digits: a fraction for an i64 throws, too.
template <class To>
To exact_cast(std::string_view op, double value) {
    if constexpr (std::is_same_v<To, std::int64_t>) {
        const To whole = checked_cast<To>(op, value);
        if (static_cast<double>(whole) != value) {
            fail<ValueError>(hint("use f32 or f64, or cut it with astype(i64)"),
                             "{}: {} is no whole number, the tensor is i64", op, value);
        }
        return whole;
    } else {
        return checked_cast<To>(op, value);
    }
}

}  // namespace glassgrad::detail
