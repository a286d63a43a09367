#pragma once
// NumPy's legacy generator: the numbers of `np.random.RandomState(seed)` and of
// `np.random.seed(seed)`, bit for bit, so that programs that start from them can be repeated.

#include <glassgrad/tensor/tensor.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace glassgrad {

/// Numbers are drawn in f64, as NumPy draws them; f32 rounds each of them afterwards (so a draw
/// from [0, 1) may round to 1).
struct RandomOptions {
    DType dtype = f64;  ///< f64 or f32
};
struct ChoiceOptions {
    bool replace = true;
    Tensor p = {};  ///< probabilities (n,), f32 or f64; undefined: all equal
};

/// MT19937 with NumPy's distributions. A value: copies go on from the same point independently.
class RandomState {
  public:
    /// All that the next draws depend on.
    struct State {
        std::array<std::uint32_t, 624> key{};
        int pos = 624;           ///< words of `key` used up
        bool has_gauss = false;  ///< the second number of the last pair is waiting
        double cached_gaussian = 0;

        friend bool operator==(const State&, const State&) = default;
    };

    /// As `np.random.RandomState(seed)`. Throws ValueError unless 0 <= seed < 2^32.
    explicit RandomState(std::int64_t seed);
    /// As `np.random.RandomState([a, b, ...])`; one seed in a list is not that seed alone.
    explicit RandomState(std::span<const std::int64_t> seeds);
    /// Throws ValueError when `pos` is outside 0 to 624.
    explicit RandomState(const State& state);

    const State& state() const noexcept { return state_; }
    /// Throws ValueError when `pos` is outside 0 to 624; the generator then stays as it was.
    void set_state(const State& state);

    /// Uniform on [0, 1), 53 bits.
    double next_double();
    /// Standard normal, by the polar method; every second call returns the cached half of a pair.
    double next_gauss();
    /// Uniform on [0, max], as NumPy's shuffles draw it.
    std::uint64_t next_interval(std::uint64_t max);

    /// Uniform on [0, 1).
    Tensor rand(const Shape& shape, const RandomOptions& options = {});
    /// Standard normal.
    Tensor randn(const Shape& shape, const RandomOptions& options = {});
    /// low + (high - low) rand. Throws ValueError unless high - low is finite.
    Tensor uniform(double low, double high, const Shape& shape, const RandomOptions& options = {});
    /// loc + scale randn. Throws ValueError when scale is negative.
    Tensor normal(double loc, double scale, const Shape& shape, const RandomOptions& options = {});
    /// i64 from low to high - 1. Throws ValueError unless low < high.
    Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape);

    /// 0 … n - 1 in random order (i64).
    Tensor permutation(std::int64_t n);
    /// The rows of x in random order.
    Tensor permutation(const Tensor& x);
    /// As `permutation`, in place.
    void shuffle(Tensor& x);
    /// Indices (i64) below n. Throws ValueError for bad probabilities, and when more are drawn
    /// without replacement than there are.
    Tensor choice(std::int64_t n, const Shape& shape, const ChoiceOptions& options = {});

  private:
    std::uint32_t next_word();
    std::uint64_t next_masked(std::uint64_t max);
    void refill();

    State state_;
};

/// One line of text: `MT19937 pos has_gauss gauss key`, numbers in hexadecimal.
std::string to_text(const RandomState::State& state);
/// The inverse of `to_text`. Throws ValueError that says what is wrong with `text`.
RandomState::State random_state_from_text(std::string_view text);

}  // namespace glassgrad
