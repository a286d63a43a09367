#include <glassgrad/tensor/detail/hash.hpp>

#include <bit>
#include <cstring>

namespace glassgrad::detail {
namespace {

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5;

template <class Word>
std::uint64_t load(const std::byte* p) noexcept {
    Word word = 0;
    std::memcpy(&word, p, sizeof(word));
    return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) noexcept {
    return std::rotl(lane + word * prime2, 31) * prime1;
}

}  // namespace

std::uint64_t xxh64(const std::byte* bytes, std::size_t size, std::uint64_t seed) noexcept {
    const std::byte* p = bytes;
    const std::byte* const end = p + size;
    std::uint64_t hash = seed + prime5;
    if (size >= 32) {
        std::uint64_t lanes[4] = {seed + prime1 + prime2, seed + prime2, seed, seed - prime1};
        for (; end - p >= 32; p += 32) {
            for (int i = 0; i < 4; ++i) {
                lanes[i] = round(lanes[i], load<std::uint64_t>(p + 8 * i));
            }
        }
        hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
               std::rotl(lanes[3], 18);
        for (const std::uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * prime1 + prime4;
    }
    hash += size;
    for (; end - p >= 8; p += 8) {
        hash = std::rotl(hash ^ round(0, load<std::uint64_t>(p)), 27) * prime1 + prime4;
    }
    if (end - p >= 4) {
        hash = std::rotl(hash ^ load<std::uint32_t>(p) * prime1, 23) * prime2 + prime3;
        p += 4;
    }
    for (; p != end; ++p) {
        hash = std::rotl(hash ^ static_cast<std::uint64_t>(*p) * prime5, 11) * prime1;
    }
    hash = (hash ^ hash >> 33) * prime2;
    hash = (hash ^ hash >> 29) * prime3;
    return hash ^ hash >> 32;
}

std::uint64_t xxh64(std::string_view text, std::uint64_t seed) noexcept {
    return xxh64(reinterpret_cast<const std::byte*>(text.data()), text.size(), seed);
}

std::string hash_text(std::uint64_t hash) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[hash >> shift & 15];
    return text;
}

}  // namespace glassgrad::detail
