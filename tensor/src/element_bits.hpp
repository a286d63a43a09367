#pragma once
// Elements of array files from their bytes.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace glassgrad::detail {

/// `size` bytes as a number.
inline std::uint64_t integer_at(const std::byte* bytes, int size, bool big_endian) noexcept {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) {
        const std::byte next = bytes[big_endian ? i : size - 1 - i];
        value = value << 8 | std::to_integer<std::uint64_t>(next);
    }
    return value;
}

/// The float of IEEE's 16 bits.
inline float widen_half(std::uint64_t bits) noexcept {
    const auto sign = static_cast<std::uint32_t>(bits >> 15 << 31);
    const auto exponent = static_cast<std::uint32_t>(bits >> 10 & 0x1f);
    const auto fraction = static_cast<std::uint32_t>(bits & 0x3ff);
    if (exponent == 0) {
        const float size = static_cast<float>(fraction) * 0x1p-24f;
        return sign ? -size : size;
    }
    const std::uint32_t wide = exponent == 31 ? 0xff : exponent + (127 - 15);
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// The float whose upper half these 16 bits are.
inline float widen_bfloat(std::uint64_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
}

}  // namespace glassgrad::detail
