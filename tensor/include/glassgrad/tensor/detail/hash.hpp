#pragma once
// Checksums of bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace glassgrad::detail {

/// XXH64 (Collet, xxHash specification 0.1.1). A hash as seed of the next one chains pieces.
std::uint64_t xxh64(const std::byte* bytes, std::size_t size, std::uint64_t seed = 0) noexcept;
std::uint64_t xxh64(std::string_view text, std::uint64_t seed = 0) noexcept;

/// A hash as 16 hexadecimal digits, lower case.
std::string hash_text(std::uint64_t hash);

}  // namespace glassgrad::detail
