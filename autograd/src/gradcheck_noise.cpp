// The function's own rounding, measured.

#include "gradcheck_stencil.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace glassgrad::proof {
namespace {

constexpr int points = 8;
using Values = std::array<double, points>;

/// Noise in values at equal distances: differences of order k of a smooth function vanish, those of
/// noise grow by (2k)! / (k!)². 0 where the orders do not agree: what is seen is not noise.
double noise_in(Values values, bool must_agree) {
    double smallest = std::numeric_limits<double>::infinity();
    double largest = 0, growth = 1;
    for (int k = 1; k <= 6; ++k) {
        growth *= (4.0 * k - 2) / k;
        double squares = 0;
        for (int i = 0; i < points - k; ++i) {
            const auto at = static_cast<std::size_t>(i);
            values[at] = values[at + 1] - values[at];
            squares += values[at] * values[at];
        }
        if (k < 4) continue;
        const double measured = std::sqrt(squares / (points - k) / growth);
        smallest = std::min(smallest, measured);
        largest = std::max(largest, measured);
        if (k == 4 && !must_agree) return measured;
    }
    return largest <= 4 * smallest ? largest : 0;
}

/// Noise of each result, from values at from * spacing, (from + 1) * spacing, … along a random
/// direction through all slots.
std::vector<double> along_a_line(Problem& problem, Draw& draw, double spacing, int from,
                                 bool must_agree) {
    std::vector<Line> lines;
    for (std::size_t s = 0; s < problem.slots().size(); ++s) {
        Line line{s, {}, problem.slots()[s].scale};
        const auto* x = problem.slots()[s].value.data<double>();
        for (std::size_t i = 0; i < line.steps.size(); ++i) {
            line.elements.push_back(static_cast<std::int64_t>(i));
            if (x[i] != 0) line.steps[i] = std::abs(x[i]);
            line.steps[i] *= draw.weight();
        }
        lines.push_back(std::move(line));
    }
    std::array<std::vector<double>, points> rows;
    for (int p = 0; p < points; ++p) {
        std::vector<Tensor> values;
        values.reserve(lines.size());
        for (const Line& line : lines) {
            values.push_back(
                point_of(problem.slots()[line.slot].value, line, (from + p) * spacing));
        }
        rows[static_cast<std::size_t>(p)] = problem.evaluate(values);
    }
    std::vector<double> noise;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
        Values values{};
        for (std::size_t p = 0; p < points; ++p) values[p] = rows[p][i];
        const double measured = noise_in(values, must_agree);
        noise.push_back(std::isfinite(measured) ? measured : 0);
    }
    return noise;
}

}  // namespace

std::vector<double> measure_noise(Problem& problem, std::span<const double> base) {
    Draw draw(11);
    std::vector<double> noise;
    for (const double each : base) {
        noise.push_back(std::numeric_limits<double>::epsilon() * std::abs(each));
    }
    // Around the point.
    for (int repeat = 0; repeat < 2; ++repeat) {
        const std::vector<double> seen = along_a_line(problem, draw, 0x1p-40, -3, false);
        for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = std::max(noise[i], seen[i]);
    }
    // A result that is the small rest of large terms moves in jumps, and looks constant over the
    // steps above. Over larger ones a kink would look like noise, but not in most directions.
    for (const double spacing : {0x1p-22, 0x1p-15}) {
        std::vector<std::array<double, 4>> seen(noise.size());
        for (std::size_t repeat = 0; repeat < 4; ++repeat) {
            const std::vector<double> line = along_a_line(problem, draw, spacing, 1, true);
            for (std::size_t i = 0; i < noise.size(); ++i) seen[i][repeat] = line[i];
        }
        for (std::size_t i = 0; i < noise.size(); ++i) {
            std::sort(seen[i].begin(), seen[i].end());
            noise[i] = std::max(noise[i], seen[i][1]);
        }
    }
    return noise;
}

std::uint64_t Draw::bits() noexcept {
    // splitmix64 (Steele, Lea and Flood, 2014)
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double Draw::weight() noexcept {
    const double s = sign();
    return s * (0.5 + static_cast<double>(bits() >> 11) * 0x1p-53);
}

}  // namespace glassgrad::proof
