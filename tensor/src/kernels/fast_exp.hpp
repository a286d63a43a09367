#pragma once
// exp without branches, so that compilers turn loops of it into vector code.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace glassgrad::detail::GLASSGRAD_ISA {

/// exp(x) within 2 units in the last place: 2^n times a Taylor polynomial of the rest, |r| <=
/// ln(2) / 2. Gradual underflow, infinities and NaN as exp has them.
template <class T>
inline T fast_exp(T x) noexcept {
    constexpr bool narrow = std::is_same_v<T, float>;
    using Bits = std::conditional_t<narrow, std::uint32_t, std::uint64_t>;
    constexpr int digits = std::numeric_limits<T>::digits - 1;
    constexpr T log2e = static_cast<T>(1.4426950408889634074);
    // ln(2) in two parts: products of the first with n are exact.
    constexpr T ln2_high = narrow ? T(0.693359375) : T(0x1.62e42fee00000p-1);
    constexpr T ln2_low = narrow ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);
    // Beyond these the result is 0 and infinity.
    constexpr T lowest = narrow ? T(-104) : T(-746);
    constexpr T highest = narrow ? T(89) : T(710);
    // Adding 1.5 2^digits leaves the nearest whole number in the lowest bits.
    constexpr T magic = static_cast<T>(Bits{3} << (digits - 1));
    constexpr Bits exponent_bias = std::numeric_limits<T>::max_exponent - 1;

    const T low = x < lowest ? lowest : x;
    const T bounded = low > highest ? highest : low;
    const T n = (bounded * log2e + magic) - magic;
    const T r = mul_add(-n, ln2_low, mul_add(-n, ln2_high, bounded));
    T sum;
    if constexpr (narrow) {
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
    sum = mul_add(sum, r, T(0.5));
    sum = mul_add(sum, r, T(1));
    sum = mul_add(sum, r, T(1));
    // In two factors, since 2^n itself may be too large or too small; the last one rounds.
    const T first = n * T(0.5) + magic;
    const T second = n - (first - magic) + magic;
    const auto power = [](T shifted) {
        return std::bit_cast<T>((std::bit_cast<Bits>(shifted) + exponent_bias) << digits);
    };
    return sum * power(first) * power(second);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
