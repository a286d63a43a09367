#pragma once
// The logistic function and tanh, without branches.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// 1 / (1 + exp(-x)) and what it leaves of 1, each to its own last digits.
template <class T>
struct Logistic {
    T share;
    T rest;

    GLASSGRAD_INLINE explicit Logistic(T x) noexcept : Logistic(x, fast_exp(-std::abs(x))) {}
    GLASSGRAD_INLINE Logistic(T x, T e) noexcept {
        // exp of a negative number only, so that nothing overflows.
        const T large = T{1} / (T{1} + e);
        const T small = e * large;
        share = x < 0 ? small : large;
        rest = x < 0 ? large : small;
    }
    /// Of x + low, for a `low` of the size of what x lost when it was rounded.
    GLASSGRAD_INLINE static Logistic of_sum(T x, T low) noexcept {
        return Logistic(x, exp_of_sum<true>(-std::abs(x), x < 0 ? low : -low));
    }
};

template <class T>
GLASSGRAD_INLINE T logistic(T x) noexcept {
    return Logistic<T>(x).share;
}

template <class T>
GLASSGRAD_INLINE T fast_tanh(T x) noexcept {
    // Beyond it tanh is 1 to rounding.
    constexpr T far = sizeof(T) == sizeof(float) ? T(10) : T(20);
    const T size = std::abs(x);
    const T m = fast_expm1(T{2} * (size > far ? far : size));
    return std::copysign(m / (m + T{2}), x);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
