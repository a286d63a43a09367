#pragma once
// exp and expm1 without branches, so that compilers turn loops of them into vector code.

#include "isa.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace glassgrad::detail::GLASSGRAD_ISA {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;

/// x = n ln(2) + r with a whole n and |r| <= ln(2) / 2.
template <class T>
struct ExpParts {
    static constexpr bool narrow = sizeof(T) == sizeof(float);
    static constexpr int digits = std::numeric_limits<T>::digits - 1;
    // Adding 1.5 2^digits leaves the nearest whole number in the lowest bits; with the bias of
    // exponents it needs but a shift to be a power of two.
    static constexpr T magic =
        static_cast<T>(BitsOf<T>{3} << (digits - 1)) + (std::numeric_limits<T>::max_exponent - 1);

    T shifted;  // n + magic
    T n;
    T r;

    GLASSGRAD_INLINE explicit ExpParts(T x) noexcept {
        constexpr T log2e = static_cast<T>(1.4426950408889634074);
        // ln(2) in two parts: products of the first with n are exact.
        constexpr T ln2_high = narrow ? T(0.693359375) : T(0x1.62e42fee00000p-1);
        constexpr T ln2_low = narrow ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);
        shifted = mul_add(x, log2e, magic);
        n = shifted - magic;
        r = mul_add(-n, ln2_low, mul_add(-n, ln2_high, x));
    }

    /// 2^k of k + magic.
    GLASSGRAD_INLINE static T power(T of) noexcept {
        return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(of) << digits);
    }
};

/// (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2, by its Taylor series.
template <class T>
GLASSGRAD_INLINE T exp_rest(T r) noexcept {
    T sum;
    if constexpr (sizeof(T) == sizeof(float)) {
        sum = T(1.0 / 5040);
    } else {
        sum = T(1.0 / 6227020800.0);
        sum = mul_add(sum, r, T(1.0 / 479001600));
        sum = mul_add(sum, r, T(1.0 / 39916800));
        sum = mul_add(sum, r, T(1.0 / 3628800));
        sum = mul_add(sum, r, T(1.0 / 362880));
        sum = mul_add(sum, r, T(1.0 / 40320));
        sum = mul_add(sum, r, T(1.0 / 5040));
    }
    sum = mul_add(sum, r, T(1.0 / 720));
    sum = mul_add(sum, r, T(1.0 / 120));
    sum = mul_add(sum, r, T(1.0 / 24));
    sum = mul_add(sum, r, T(1.0 / 6));
    return mul_add(sum, r, T(0.5));
}

/// exp(r) for |r| <= ln(2) / 2.
template <class T>
GLASSGRAD_INLINE T exp_near_0(T r) noexcept {
    return mul_add(mul_add(exp_rest(r), r, T(1)), r, T(1));
}

/// Between -exp_limit and exp_limit exp is a normal number.
template <class T>
inline constexpr T exp_limit = sizeof(T) == sizeof(float) ? T(87) : T(708);

/// exp(x + low) for |x| <= exp_limit and a `low` of the size of what x lost when it was rounded.
template <class T>
GLASSGRAD_INLINE T exp_within(T x, T low) noexcept {
    const ExpParts<T> parts(x);
    return exp_near_0(parts.r + low) * ExpParts<T>::power(parts.shifted);
}
template <class T>
GLASSGRAD_INLINE T exp_within(T x) noexcept {
    const ExpParts<T> parts(x);
    return exp_near_0(parts.r) * ExpParts<T>::power(parts.shifted);
}

/// exp(x) of an x that is not above 89 (f32) or 710 (f64), or NaN.
template <class T>
GLASSGRAD_INLINE T exp_below(T x) noexcept {
    using Parts = ExpParts<T>;
    constexpr T lowest = Parts::narrow ? T(-104) : T(-746);  // beyond it is 0
    const Parts parts(x < lowest ? lowest : x);
    // In two factors, since 2^n itself may be too large or too small; the last one rounds.
    const T first = mul_add(parts.n, T(0.5), Parts::magic);
    const T second = parts.shifted - (first - Parts::magic);
    return exp_near_0(parts.r) * Parts::power(first) * Parts::power(second);
}

/// exp(x) within 2 units in the last place. Gradual underflow, infinities and NaN as exp has them.
template <class T>
GLASSGRAD_INLINE T fast_exp(T x) noexcept {
    constexpr T highest = sizeof(T) == sizeof(float) ? T(89) : T(710);  // beyond it is infinity
    return exp_below(x > highest ? highest : x);
}

/// exp(x) - 1 for -40 <= x <= 89 (f32) or 710 (f64), but for the sign of 0.
template <class T>
GLASSGRAD_INLINE T expm1_within(T x) noexcept {
    using Parts = ExpParts<T>;
    const Parts parts(x);
    const T r = parts.r;
    const T sum = mul_add(exp_rest(r), r * r, r);
    // Half of 2^n, which itself may be too large.
    const T half = Parts::power(parts.shifted - T(1));
    return T(2) * mul_add(half, sum, half - T(0.5));
}

/// exp(x) - 1 within 3 units in the last place, near 0 as well.
template <class T>
GLASSGRAD_INLINE T fast_expm1(T x) noexcept {
    // Beyond these the result is -1 and infinity.
    constexpr T lowest = -40;
    constexpr T highest = sizeof(T) == sizeof(float) ? T(89) : T(710);
    const T over = x < lowest ? lowest : x;
    return x == 0 ? x : expm1_within(over > highest ? highest : over);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
