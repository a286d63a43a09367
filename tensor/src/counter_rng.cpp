// Philox: ten rounds of two 64 by 64 bit products over a counter of 256 bits, of which the lowest
// 64 count blocks of four numbers. NumPy adds one to the counter before its first block, so do we.

#include <glassgrad/tensor/counter_rng.hpp>

#include "fail.hpp"
#include "parallel.hpp"

#include <cmath>

namespace glassgrad {

namespace {

using Block = std::array<std::uint64_t, 4>;
__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t multiplier_0 = 0xD2E7470EE14C6C93;
constexpr std::uint64_t multiplier_1 = 0xCA5A826395121157;
constexpr std::uint64_t weyl_0 = 0x9E3779B97F4A7C15;
constexpr std::uint64_t weyl_1 = 0xBB67AE8584CAA73B;
constexpr int rounds = 10;

Block block_at(std::uint64_t number, std::array<std::uint64_t, 2> key) {
    // Past 2^64 blocks the carry goes into the next word of the counter.
    Block x{number + 1, number + 1 == 0 ? std::uint64_t{1} : std::uint64_t{0}, 0, 0};
    for (int round = 0; round < rounds; ++round) {
        const Wide a = static_cast<Wide>(multiplier_0) * x[0];
        const Wide b = static_cast<Wide>(multiplier_1) * x[2];
        x = {static_cast<std::uint64_t>(b >> 64) ^ x[1] ^ key[0], static_cast<std::uint64_t>(b),
             static_cast<std::uint64_t>(a >> 64) ^ x[3] ^ key[1], static_cast<std::uint64_t>(a)};
        key[0] += weyl_0;
        key[1] += weyl_1;
    }
    return x;
}

double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

/// f(i, number i) for the `count` numbers from `position` on.
template <class F>
void for_numbers(std::uint64_t position, std::int64_t count, std::array<std::uint64_t, 2> key,
                 const F& f) {
    detail::for_elements(count, [&](std::int64_t begin, std::int64_t end) {
        Block block{};
        for (std::int64_t i = begin; i < end; ++i) {
            const std::uint64_t at = position + static_cast<std::uint64_t>(i);
            if (i == begin || at % 4 == 0) block = block_at(at / 4, key);
            f(i, block[at % 4]);
        }
    });
}

}  // namespace

std::uint64_t CounterRng::next() {
    const std::uint64_t at = position_++;
    return block_at(at / 4, key_)[at % 4];
}

double CounterRng::next_double() { return to_unit(next()); }

Tensor CounterRng::random(const Shape& shape, const RandomOptions& options) {
    if (!is_floating(options.dtype)) {
        detail::fail<TypeError>("random: draws f32 or f64, not {}", options.dtype);
    }
    Tensor result = Tensor::empty(shape, options.dtype);
    if (options.dtype == f64) {
        auto* out = result.mutable_data<double>();
        for_numbers(position_, result.numel(), key_,
                    [out](std::int64_t i, std::uint64_t bits) { out[i] = to_unit(bits); });
    } else {
        auto* out = result.mutable_data<float>();
        for_numbers(position_, result.numel(), key_, [out](std::int64_t i, std::uint64_t bits) {
            out[i] = static_cast<float>(bits >> 40) * 0x1p-24F;
        });
    }
    position_ += static_cast<std::uint64_t>(result.numel());
    return result;
}

Tensor CounterRng::bernoulli(double p, const Shape& shape) {
    if (!(p >= 0 && p <= 1)) {
        detail::fail<ValueError>("bernoulli: probability {} is outside 0 to 1", p);
    }
    Tensor result = Tensor::empty(shape, boolean);
    auto* out = result.mutable_data<bool>();
    for_numbers(position_, result.numel(), key_,
                [out, p](std::int64_t i, std::uint64_t bits) { out[i] = to_unit(bits) < p; });
    position_ += static_cast<std::uint64_t>(result.numel());
    return result;
}

void CounterRng::peek_bernoulli(double p, std::int64_t first, std::span<bool> out) const {
    for_numbers(position_ + static_cast<std::uint64_t>(first),
                static_cast<std::int64_t>(out.size()), key_,
                [out, p](std::int64_t i, std::uint64_t bits) {
                    out[static_cast<std::size_t>(i)] = to_unit(bits) < p;
                });
}

}  // namespace glassgrad
