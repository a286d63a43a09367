#pragma once
// log and log1p without branches.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// log(x) within 2 units in the last place; -inf at 0, NaN below. x is 2^n m with m between the
/// roots of 1/2 and 2, and log(m) = 2 artanh(s), s = (m - 1) / (m + 1).
template <class T>
GLASSGRAD_INLINE T fast_log(T x) noexcept {
    using Bits = typename Parts<T>::Bits;
    using Limits = std::numeric_limits<T>;
    constexpr bool narrow = sizeof(T) == sizeof(float);
    constexpr int digits = Limits::digits - 1;
    constexpr Bits one = std::bit_cast<Bits>(T{1});
    constexpr Bits root_half = std::bit_cast<Bits>(static_cast<T>(0.70710678118654752440));
    constexpr Bits fraction = (Bits{1} << digits) - 1;
    constexpr T raised = static_cast<T>(Bits{1} << digits);
    constexpr T ln2_high = narrow ? T(0.693359375) : T(0x1.62e42fee00000p-1);
    constexpr T ln2_low = narrow ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);

    const bool tiny = x < Limits::min();
    const Bits bits = std::bit_cast<Bits>(tiny ? x * raised : x) + (one - root_half);
    // The exponent as a number: in the lowest digits of 2^digits.
    const T biased = std::bit_cast<T>((bits >> digits) | std::bit_cast<Bits>(raised)) - raised;
    const T n =
        biased - (tiny ? T(Limits::max_exponent - 1 + digits) : T(Limits::max_exponent - 1));
    const T f = std::bit_cast<T>((bits & fraction) + root_half) - T{1};
    const T s = f / (T{2} + f);
    const T z = s * s;
    T rest;
    if constexpr (narrow) {
        rest = T(2.0 / 9);
    } else {
        rest = T(2.0 / 21);
        rest = mul_add(rest, z, T(2.0 / 19));
        rest = mul_add(rest, z, T(2.0 / 17));
        rest = mul_add(rest, z, T(2.0 / 15));
        rest = mul_add(rest, z, T(2.0 / 13));
        rest = mul_add(rest, z, T(2.0 / 11));
        rest = mul_add(rest, z, T(2.0 / 9));
    }
    rest = mul_add(rest, z, T(2.0 / 7));
    rest = mul_add(rest, z, T(2.0 / 5));
    rest = mul_add(rest, z, T(2.0 / 3)) * z;
    // 2 s = f - s f, and s f = f² / 2 - s f² / 2: f itself is exact.
    const T half_square = T(0.5) * f * f;
    const T low = half_square - mul_add(s, half_square + rest, n * ln2_low);
    const T y = mul_add(n, ln2_high, f - low);
    const T over = x == Limits::infinity() ? x : y;
    const T under = x == 0 ? -Limits::infinity() : Limits::quiet_NaN();
    return x > 0 ? over : under;
}

/// log(1 + x) within 3 units in the last place, near 0 as well.
template <class T>
GLASSGRAD_INLINE T fast_log1p(T x) noexcept {
    const T u = T{1} + x;
    const T lost = (x - (u - T{1})) / u;  // NaN at -1 and infinity
    const T y = fast_log(u) + (lost == lost ? lost : T{0});
    return x == 0 ? x : y;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
