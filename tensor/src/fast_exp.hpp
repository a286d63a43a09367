#pragma once
// exp without branches, so that compilers turn loops of it into vector code.

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace glassgrad::detail {

/// exp(x) for x up to 16, -inf and NaN, within 2 units in the last place: 2^n times a Taylor
/// polynomial of the rest, |r| <= ln(2) / 2. Gradual underflow as exp has it.
template <class T>
inline T fast_exp(T x) noexcept {
    constexpr bool narrow = std::is_same_v<T, float>;
    using Bits = std::conditional_t<narrow, std::uint32_t, std::uint64_t>;
    constexpr int digits = std::numeric_limits<T>::digits - 1;
    constexpr T log2e = static_cast<T>(1.4426950408889634074);
    // ln(2) in two parts: products of the first with n are exact.
    constexpr T ln2_high = narrow ? T(0.693359375) : T(0x1.62e42fee00000p-1);
    constexpr T ln2_low = narrow ? T(-2.12194440054690583e-4) : T(0x1.a39ef35793c76p-33);
    constexpr T lowest = narrow ? T(-104) : T(-746);
    // Adding 1.5 2^digits leaves the nearest whole number in the lowest bits.
    constexpr T magic = static_cast<T>(Bits{3} << (digits - 1));
    // Powers of two are built 2^lift too large, since 2^n itself may underflow.
    constexpr int lift = narrow ? 100 : 1000;
    constexpr int exponent_bias = std::numeric_limits<T>::max_exponent - 1;
    constexpr T lowered = std::bit_cast<T>(static_cast<Bits>(exponent_bias - lift) << digits);

    const T bounded = x < lowest ? lowest : x;
    const T shifted = bounded * log2e + magic;
    const T n = shifted - magic;
    const T r = (bounded - n * ln2_high) - n * ln2_low;
    T sum;
    if constexpr (narrow) {
        sum = T(1.0 / 5040);
    } else {
        sum = T(1.0 / 6227020800.0);
        sum = sum * r + T(1.0 / 479001600);
        sum = sum * r + T(1.0 / 39916800);
        sum = sum * r + T(1.0 / 3628800);
        sum = sum * r + T(1.0 / 362880);
        sum = sum * r + T(1.0 / 40320);
        sum = sum * r + T(1.0 / 5040);
    }
    sum = sum * r + T(1.0 / 720);
    sum = sum * r + T(1.0 / 120);
    sum = sum * r + T(1.0 / 24);
    sum = sum * r + T(1.0 / 6);
    sum = sum * r + T(0.5);
    sum = sum * r + T(1);
    sum = sum * r + T(1);
    const Bits power = (std::bit_cast<Bits>(shifted) + static_cast<Bits>(exponent_bias + lift))
                       << digits;
    const T result = sum * std::bit_cast<T>(power) * lowered;
    return x < lowest ? T(0) : result;
}

}  // namespace glassgrad::detail
