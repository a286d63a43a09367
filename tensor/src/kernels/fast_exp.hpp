#pragma once
// exp and expm1 without branches, so that compilers turn loops of them into vector code.

#include "vectors.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace glassgrad::detail::GLASSGRAD_ISA {

/// No number beyond the limit; NaN stays.
template <class T>
GLASSGRAD_INLINE T at_least(T x, T low) noexcept {
    return x < low ? low : x;
}
template <class T>
GLASSGRAD_INLINE T at_most(T x, T high) noexcept {
    return x > high ? high : x;
}

/// x = n ln(2) + r with a whole n and |r| <= ln(2) / 2. V is a number or a vector.
template <class V>
struct ExpParts {
    using T = typename Parts<V>::Number;
    using Bits = typename Parts<V>::Bits;
    static constexpr bool narrow = sizeof(T) == sizeof(float);
    static constexpr int digits = std::numeric_limits<T>::digits - 1;
    // Adding 1.5 2^digits leaves the nearest whole number in the lowest bits; with the bias of
    // exponents it needs but a shift to be a power of two.
    static constexpr T magic = static_cast<T>(typename Parts<T>::Bits{3} << (digits - 1)) +
                               (std::numeric_limits<T>::max_exponent - 1);

    V shifted;  // n + magic
    V n;
    V r;

    GLASSGRAD_INLINE explicit ExpParts(V x) noexcept {
        constexpr T log2e = static_cast<T>(1.4426950408889634074);
        // ln(2) in two parts: products of the first with n are exact.
        constexpr T ln2_high = narrow ? T(0.693359375) : T(0x1.62e42fee00000p-1);
        constexpr T ln2_low = narrow ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);
        shifted = mul_add(x, all<V>(log2e), all<V>(magic));
        n = shifted - all<V>(magic);
        r = mul_add(-n, all<V>(ln2_low), mul_add(-n, all<V>(ln2_high), x));
    }

    /// 2^k of k + magic.
    GLASSGRAD_INLINE static V power(V of) noexcept {
        return std::bit_cast<V>(std::bit_cast<Bits>(of) << digits);
    }
};

/// (exp(r) - 1 - r) / r² for |r| <= ln(2) / 2, by its Taylor series.
template <class V>
GLASSGRAD_INLINE V exp_rest(V r) noexcept {
    using T = typename Parts<V>::Number;
    V sum;
    if constexpr (sizeof(T) == sizeof(float)) {
        sum = all<V>(T(1.0 / 5040));
    } else {
        sum = all<V>(T(1.0 / 6227020800.0));
        sum = mul_add(sum, r, all<V>(T(1.0 / 479001600)));
        sum = mul_add(sum, r, all<V>(T(1.0 / 39916800)));
        sum = mul_add(sum, r, all<V>(T(1.0 / 3628800)));
        sum = mul_add(sum, r, all<V>(T(1.0 / 362880)));
        sum = mul_add(sum, r, all<V>(T(1.0 / 40320)));
        sum = mul_add(sum, r, all<V>(T(1.0 / 5040)));
    }
    sum = mul_add(sum, r, all<V>(T(1.0 / 720)));
    sum = mul_add(sum, r, all<V>(T(1.0 / 120)));
    sum = mul_add(sum, r, all<V>(T(1.0 / 24)));
    sum = mul_add(sum, r, all<V>(T(1.0 / 6)));
    return mul_add(sum, r, all<V>(T(0.5)));
}

/// exp(r) for |r| <= ln(2) / 2.
template <class V>
GLASSGRAD_INLINE V exp_near_0(V r) noexcept {
    return mul_add(mul_add(exp_rest(r), r, all<V>(1)), r, all<V>(1));
}

/// Between -exp_limit and exp_limit exp is a normal number.
template <class T>
inline constexpr T exp_limit = sizeof(T) == sizeof(float) ? T(87) : T(708);

/// exp(x + low) for |x| <= exp_limit and a `low` of the size of what x lost when it was rounded.
template <class V>
GLASSGRAD_INLINE V exp_within(V x, V low) noexcept {
    const ExpParts<V> parts(x);
    return exp_near_0(parts.r + low) * ExpParts<V>::power(parts.shifted);
}
template <class V>
GLASSGRAD_INLINE V exp_within(V x) noexcept {
    const ExpParts<V> parts(x);
    return exp_near_0(parts.r) * ExpParts<V>::power(parts.shifted);
}

/// 2^n y, rounded once.
template <class V>
GLASSGRAD_INLINE V times_power(V y, const ExpParts<V>& parts) noexcept {
#ifdef __AVX512F__
    if constexpr (std::is_same_v<V, Vector<float>>) return _mm512_scalef_ps(y, parts.n);
    if constexpr (std::is_same_v<V, Vector<double>>) return _mm512_scalef_pd(y, parts.n);
#endif
    // In two factors, since 2^n itself may be too large or too small; the last one rounds.
    const V magic = all<V>(ExpParts<V>::magic);
    const V first = mul_add(parts.n, all<V>(0.5), magic);
    const V second = parts.shifted - (first - magic);
    return y * ExpParts<V>::power(first) * ExpParts<V>::power(second);
}

/// exp(x) of an x that is not above 89 (f32) or 710 (f64), or NaN.
template <class V>
GLASSGRAD_INLINE V exp_below(V x) noexcept {
    // Beyond it is 0.
    using T = typename Parts<V>::Number;
    constexpr T lowest = ExpParts<V>::narrow ? T(-104) : T(-746);
    const ExpParts<V> parts(at_least(x, lowest));
    return times_power(exp_near_0(parts.r), parts);
}

/// exp(x) within 2 units in the last place. Gradual underflow, infinities and NaN as exp has them.
template <class V>
GLASSGRAD_INLINE V fast_exp(V x) noexcept {
    // Beyond it is infinity.
    using T = typename Parts<V>::Number;
    constexpr T highest = ExpParts<V>::narrow ? T(89) : T(710);
    return exp_below(at_most(x, highest));
}

/// exp(x) - 1 for -40 <= x <= 89 (f32) or 710 (f64), but for the sign of 0.
template <class V>
GLASSGRAD_INLINE V expm1_within(V x) noexcept {
    const ExpParts<V> parts(x);
    const V r = parts.r;
    const V sum = mul_add(exp_rest(r), r * r, r);
    // Half of 2^n, which itself may be too large.
    const V half = ExpParts<V>::power(parts.shifted - all<V>(1));
    return all<V>(2) * mul_add(half, sum, half - all<V>(0.5));
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
