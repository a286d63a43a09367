#pragma once
// The logistic function and tanh, without branches.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// 1 / (1 + exp(-x)) and what it leaves of 1, each to its own last digits; the first is 0 where it
/// would be smaller than normal numbers are.
template <class T>
struct Logistic {
    T share;
    T rest;

    GLASSGRAD_INLINE explicit Logistic(T x) noexcept {
        constexpr T far = exp_limit<T>;
        const T over = x < -far ? -far : x;
        *this = of_exp(exp_within(over > far ? -far : -over), x < -far);
    }

    /// From exp(-x), and whether x is so far left that the share is 0.
    GLASSGRAD_INLINE static Logistic of_exp(T e, bool none) noexcept {
        const T normal = T{1} / (T{1} + e);
        return {none ? T{0} : normal, e * normal};
    }

  private:
    GLASSGRAD_INLINE Logistic(T of_share, T of_rest) noexcept : share(of_share), rest(of_rest) {}
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
    const T m = expm1_within(T{2} * (size > far ? far : size));
    return std::copysign(m / (m + T{2}), x);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
