// MT19937 after Matsumoto and Nishimura, "Mersenne Twister: a 623-dimensionally equidistributed
// uniform pseudo-random number generator" (1998, seeding of 2002), normals by Marsaglia's polar
// method; which word feeds which number follows NumPy's RandomState, whose streams are frozen.

#include <glassgrad/tensor/random.hpp>

#include "fail.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::hint;

namespace {

constexpr int words = 624;
constexpr int middle = 397;
using Key = std::array<std::uint32_t, words>;

/// Word i of the key from word i - 1, mixed with `multiplier`.
std::uint32_t spread(std::uint32_t previous, std::uint32_t multiplier) {
    return (previous ^ (previous >> 30)) * multiplier;
}

void seed_word(Key& key, std::uint32_t seed) {
    key[0] = seed;
    for (std::uint32_t i = 1; i < words; ++i) key[i] = spread(key[i - 1], 1812433253u) + i;
}

void seed_words(Key& key, const std::vector<std::uint32_t>& seeds) {
    seed_word(key, 19650218u);
    std::size_t i = 1;
    const auto step = [&] {
        if (++i == words) {
            key[0] = key[words - 1];
            i = 1;
        }
    };
    std::size_t j = 0;
    for (std::size_t k = std::max<std::size_t>(words, seeds.size()); k > 0; --k) {
        key[i] = (key[i] ^ spread(key[i - 1], 1664525u)) + seeds[j] + static_cast<std::uint32_t>(j);
        step();
        if (++j == seeds.size()) j = 0;
    }
    for (int k = words - 1; k > 0; --k) {
        key[i] = (key[i] ^ spread(key[i - 1], 1566083941u)) - static_cast<std::uint32_t>(i);
        step();
    }
    key[0] = 0x80000000u;
}

std::uint32_t checked_seed(std::int64_t seed) {
    if (seed < 0 || seed > std::numeric_limits<std::uint32_t>::max()) {
        fail<ValueError>("RandomState: seed {} is not between 0 and 4294967295", seed);
    }
    return static_cast<std::uint32_t>(seed);
}

void check_pos(int pos) {
    if (pos < 0 || pos > words) {
        fail<ValueError>("RandomState: position {} of the state is not between 0 and 624", pos);
    }
}

/// A tensor of `draw()`, drawn in f64 whatever its type.
template <class Draw>
Tensor filled(const char* op, const Shape& shape, DType dtype, Draw draw) {
    if (!is_floating(dtype)) {
        fail<TypeError>(hint("use randint for integers"), "{}: draws f64 or f32, not {}", op,
                        dtype);
    }
    checked_numel(op, shape, dtype);
    Tensor result = Tensor::empty(shape, dtype);
    const std::int64_t n = result.numel();
    if (dtype == f64) {
        auto* out = result.mutable_data<double>();
        for (std::int64_t i = 0; i < n; ++i) out[i] = draw();
    } else {
        auto* out = result.mutable_data<float>();
        for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(draw());
    }
    return result;
}

}  // namespace

RandomState::RandomState(std::int64_t seed) { seed_word(state_.key, checked_seed(seed)); }

RandomState::RandomState(std::span<const std::int64_t> seeds) {
    if (seeds.empty()) fail<ValueError>("RandomState: the list of seeds is empty");
    std::vector<std::uint32_t> checked;
    checked.reserve(seeds.size());
    for (const std::int64_t seed : seeds) checked.push_back(checked_seed(seed));
    seed_words(state_.key, checked);
}

RandomState::RandomState(const State& state) { set_state(state); }

void RandomState::set_state(const State& state) {
    check_pos(state.pos);
    state_ = state;
}

void RandomState::refill() {
    Key& key = state_.key;
    const auto twist = [&](std::size_t i, std::size_t next, std::size_t other) {
        const std::uint32_t joined = (key[i] & 0x80000000u) | (key[next] & 0x7fffffffu);
        key[i] = key[other] ^ (joined >> 1) ^ ((joined & 1u) * 0x9908b0dfu);
    };
    std::size_t i = 0;
    for (; i < words - middle; ++i) twist(i, i + 1, i + middle);
    for (; i < words - 1; ++i) twist(i, i + 1, i + middle - words);
    twist(i, 0, middle - 1);
    state_.pos = 0;
}

std::uint32_t RandomState::next_word() {
    if (state_.pos == words) refill();
    std::uint32_t y = state_.key[static_cast<std::size_t>(state_.pos++)];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
}

double RandomState::next_double() {
    const double high = next_word() >> 5;  // 27 bits
    const double low = next_word() >> 6;   // 26 bits
    return (high * 0x1p26 + low) / 0x1p53;
}

double RandomState::next_gauss() {
    if (state_.has_gauss) {
        state_.has_gauss = false;
        return std::exchange(state_.cached_gaussian, 0.0);
    }
    double x = 0;
    double y = 0;
    double square = 0;
    do {
        x = 2.0 * next_double() - 1.0;
        y = 2.0 * next_double() - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square == 0.0);
    const double factor = std::sqrt(-2.0 * std::log(square) / square);
    state_.cached_gaussian = factor * x;
    state_.has_gauss = true;
    return factor * y;
}

/// Words cut to the bits of `max` until one is not above it: one word up to 2^32 - 1, else two.
std::uint64_t RandomState::next_masked(std::uint64_t max) {
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(max);
    const bool wide = max > std::numeric_limits<std::uint32_t>::max();
    std::uint64_t value = 0;
    do {
        value = next_word();
        if (wide) value = value << 32 | next_word();
        value &= mask;
    } while (value > max);
    return value;
}

std::uint64_t RandomState::next_interval(std::uint64_t max) {
    return max == 0 ? 0 : next_masked(max);  // one value needs no draw
}

Tensor RandomState::rand(const Shape& shape, const RandomOptions& options) {
    return filled("rand", shape, options.dtype, [&] { return next_double(); });
}

Tensor RandomState::randn(const Shape& shape, const RandomOptions& options) {
    return filled("randn", shape, options.dtype, [&] { return next_gauss(); });
}

Tensor RandomState::uniform(double low, double high, const Shape& shape,
                            const RandomOptions& options) {
    const double range = high - low;
    if (!std::isfinite(range)) {
        fail<ValueError>("uniform: the range from {} to {} is not finite", low, high);
    }
    return filled("uniform", shape, options.dtype, [&] { return low + range * next_double(); });
}

Tensor RandomState::normal(double loc, double scale, const Shape& shape,
                           const RandomOptions& options) {
    if (!(scale >= 0)) {
        fail<ValueError>(hint("scale is the standard deviation"),
                         "normal: scale {} is not a number at or above 0", scale);
    }
    return filled("normal", shape, options.dtype, [&] { return loc + scale * next_gauss(); });
}

Tensor RandomState::randint(std::int64_t low, std::int64_t high, const Shape& shape) {
    if (low >= high) fail<ValueError>("randint: low {} is not below high {}", low, high);
    checked_numel("randint", shape, i64);
    const std::uint64_t range =
        static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
    Tensor result = Tensor::empty(shape, i64);
    auto* out = result.mutable_data<std::int64_t>();
    const std::int64_t n = result.numel();
    for (std::int64_t i = 0; i < n; ++i) {
        out[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + next_interval(range));
    }
    return result;
}

std::string to_text(const RandomState::State& state) {
    std::string text = fmt::format("MT19937 {} {:d} {:016x} ", state.pos, state.has_gauss,
                                   std::bit_cast<std::uint64_t>(state.cached_gaussian));
    for (const std::uint32_t word : state.key) text += fmt::format("{:08x}", word);
    return text;
}

namespace {

[[noreturn]] void fail_text(std::string_view what) {
    fail<ValueError>(hint("give a line of to_text(state)"), "random_state_from_text: {}", what);
}

/// Cuts the next word, up to a space, off `text`.
std::string_view next_field(std::string_view& text) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view field = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return field;
}

template <class T>
T number(std::string_view digits, int base, std::string_view what) {
    T value{};
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
    if (error != std::errc() || stop != end) fail_text(what);
    return value;
}

}  // namespace

RandomState::State random_state_from_text(std::string_view text) {
    if (next_field(text) != "MT19937") fail_text("the text does not start with MT19937");
    RandomState::State state;
    state.pos = number<int>(next_field(text), 10, "the position is not a number");
    check_pos(state.pos);
    const std::string_view flag = next_field(text);
    if (flag != "0" && flag != "1") fail_text("the flag of a waiting normal is not 0 or 1");
    state.has_gauss = flag == "1";
    state.cached_gaussian = std::bit_cast<double>(
        number<std::uint64_t>(next_field(text), 16, "the waiting normal is not hexadecimal"));
    if (text.size() != 8 * words) {
        fail_text(fmt::format("the key has {} characters, not {}", text.size(), 8 * words));
    }
    for (std::uint32_t& word : state.key) {
        word = number<std::uint32_t>(text.substr(0, 8), 16, "the key is not hexadecimal");
        text.remove_prefix(8);
    }
    return state;
}

}  // namespace glassgrad
