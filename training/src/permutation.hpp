#pragma once
// A random order of 0 … size - 1 that is computed, not stored: memory and start cost nothing,
// whatever the size.

#include <glassgrad/tensor/counter_rng.hpp>

#include <array>
#include <bit>
#include <cstdint>

namespace glassgrad::detail {

/// A Feistel network over the next even power of two; what falls outside goes round again, four
/// times at most on average. Source: Black and Rogaway, "Ciphers with arbitrary finite domains",
/// 2002.
class Permutation {
  public:
    /// size >= 1. One seed and stream give one order.
    Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t stream) : size_(size) {
        CounterRng rng(seed, stream);
        for (std::uint64_t& key : keys_) key = rng.next();
        // Networks of few bits reach few orders: a turn of the circle before them adds some.
        turn_ = rng.next() % size;
        while (half_ < 31 && (std::uint64_t{1} << 2 * half_) < size) ++half_;
        mask_ = (std::uint64_t{1} << half_) - 1;
    }

    std::uint64_t operator()(std::uint64_t i) const noexcept {
        i = i < size_ - turn_ ? i + turn_ : i - (size_ - turn_);
        do {
            std::uint64_t left = i >> half_;
            std::uint64_t right = i & mask_;
            for (const std::uint64_t key : keys_) {
                const std::uint64_t next = left ^ (mix(right + key) & mask_);
                left = right;
                right = next;
            }
            i = left << half_ | right;
        } while (i >= size_);
        return i;
    }

  private:
    /// All bits of the result depend on all of x. Source: Steele, Lea and Flood 2014 (SplitMix).
    static std::uint64_t mix(std::uint64_t x) noexcept {
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
        x = (x ^ x >> 27) * 0x94D049BB133111EB;
        return x ^ x >> 31;
    }

    std::uint64_t size_;
    std::array<std::uint64_t, 8> keys_{};
    std::uint64_t turn_ = 0;
    unsigned half_ = 1;
    std::uint64_t mask_ = 1;
};

}  // namespace glassgrad::detail
