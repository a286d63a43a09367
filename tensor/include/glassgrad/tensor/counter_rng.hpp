#pragma once
// A generator whose n-th number is a function of seed, stream and n alone: dropout and
// initialisation then give the same numbers for any number of threads, and a run goes on where it
// stopped by storing one number.

#include <glassgrad/tensor/random.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace glassgrad {

/// Philox4x64-10; the numbers of `np.random.Philox(key=[seed, stream])`, bit for bit.
/// Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.
class CounterRng {
  public:
    explicit CounterRng(std::uint64_t seed, std::uint64_t stream = 0) noexcept
        : key_{seed, stream} {}

    std::uint64_t seed() const noexcept { return key_[0]; }
    std::uint64_t stream() const noexcept { return key_[1]; }
    /// How many numbers were drawn; the next one depends on it and the key only.
    std::uint64_t position() const noexcept { return position_; }
    void set_position(std::uint64_t position) noexcept { position_ = position; }

    /// 64 random bits.
    std::uint64_t next();
    /// Uniform on [0, 1), 53 bits, as `np.random.Generator(Philox(…)).random()`.
    double next_double();

    /// Uniform on [0, 1), one number an element. f32 rounds the f64 numbers downwards, so that 1
    /// never comes.
    Tensor random(const Shape& shape, const RandomOptions& options = {});
    /// boolean: true with probability `p`, one number an element. Throws ValueError unless
    /// 0 <= p <= 1.
    Tensor bernoulli(double p, const Shape& shape);

    /// What `bernoulli` would give for the elements from number `first` on, counted from here;
    /// draws nothing.
    void peek_bernoulli(double p, std::int64_t first, std::span<bool> out) const;

    friend bool operator==(const CounterRng&, const CounterRng&) = default;

  private:
    std::array<std::uint64_t, 2> key_;
    std::uint64_t position_ = 0;
};

}  // namespace glassgrad
