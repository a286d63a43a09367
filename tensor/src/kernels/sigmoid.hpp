#pragma once
// The logistic function and tanh, without branches.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// x in [-far, far].
template <class T>
GLASSGRAD_INLINE T bounded(T x, T far) noexcept {
    const T over = x < -far ? -far : x;
    return over > far ? far : over;
}

/// 1 / (1 + exp(-x)) and what it leaves of 1, each to its own last digits; the first is 0 where it
/// would be smaller than normal numbers are.
template <class T>
struct Logistic {
    T x;  // no farther out than that
    T share;
    T rest;

    GLASSGRAD_INLINE explicit Logistic(T of) noexcept
        : Logistic(bounded(of, exp_limit<T>), exp_within(-bounded(of, exp_limit<T>)),
                   of < -exp_limit<T>) {}
    /// From exp(-of), and whether `of` is so far left that the share is 0.
    GLASSGRAD_INLINE Logistic(T of, T e, bool none) noexcept : x(of) {
        const T normal = T{1} / (T{1} + e);
        share = none ? T{0} : normal;
        rest = e * normal;
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
    const T m = expm1_within(T{2} * (size > far ? far : size));
    return std::copysign(m / (m + T{2}), x);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
