#pragma once
// Derivatives from values of the function alone, each with an estimate of its own error.

#include "gradcheck_problem.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace glassgrad::proof {

/// Weights of the results: what is differentiated is their weighted sum.
struct Cotangent {
    std::vector<double> weights;  ///< empty when one-hot
    std::int64_t hot = -1;        ///< the one result with weight 1

    double apply(std::span<const double> results) const;
    /// Errors of the results, which are independent, carried over to the sum.
    double apply_to_errors(std::span<const double> errors) const;
};

/// A line through the point of the check, along one slot: element `elements[i]` moves by
/// t * steps[i].
struct Line {
    std::size_t slot = 0;
    std::vector<std::int64_t> elements;
    std::vector<double> steps;
};

enum class Quality : std::uint8_t {
    good,
    kink,    ///< the slopes on the two sides differ, however small the step
    edge,    ///< the function isn't finite nearby
    coarse,  ///< differences of different steps do not agree
};

struct Estimate {
    double value = 0;
    double error = 0;  ///< what is left of truncation, and the function's own noise
    Quality quality = Quality::good;
    double left = 0;  ///< slopes on either side at the smallest step tried; of a kink
    double right = 0;
};

/// The rounding error of each result at the point, measured from differences of high order over
/// tiny steps (Moré and Wild, Estimating computational noise, 2011).
std::vector<double> measure_noise(Problem& problem, std::span<const double> base);

/// d(cotangent · results)/dt along the line, for each cotangent. Sets `moved` if any result
/// changed at all.
///
/// Central differences over h, h/2, h/4 are extrapolated twice (Richardson); the last two
/// extrapolations give the error of truncation. Where they disagree the steps are made 16 times
/// smaller, down to 2^-24 of the natural step, and the best of all is kept.
std::vector<Estimate> differentiate(Problem& problem, const Line& line,
                                    std::span<const Cotangent> cotangents,
                                    std::span<const double> base, std::span<const double> noise,
                                    bool& moved);

/// The point of the line at `t`.
Tensor point_of(const Tensor& value, const Line& line, double t);

/// A sequence of signed numbers that depends on the seed alone.
class Draw {
  public:
    explicit Draw(std::uint64_t seed) noexcept : state_(seed * 2 + 1) {}
    std::uint64_t bits() noexcept;
    std::int64_t below(std::int64_t n) noexcept {
        return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(n));
    }
    double sign() noexcept { return bits() >> 63 ? 1 : -1; }
    /// Between 0.5 and 1.5, of either sign.
    double weight() noexcept;

  private:
    std::uint64_t state_;
};

}  // namespace glassgrad::proof
