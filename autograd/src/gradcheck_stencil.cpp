#include "gradcheck_stencil.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace glassgrad::proof {
namespace {

constexpr int levels = 3;
constexpr std::array first_steps = {0x1p-6, 0x1p-10, 0x1p-14, 0x1p-18, 0x1p-22};
/// Noise of the extrapolated difference over noise / h, with room for the noise being a measure
/// from few points.
constexpr double noise_weight = 8;
/// Truncation that is small enough to stop at, relative to the derivative itself and to the
/// largest at hand.
constexpr double small_truncation = 1e-8;
constexpr double least_truncation = 1e-12;
/// A difference of slopes that is not yet a kink, relative to the larger slope.
constexpr double small_kink = 1e-6;

/// The results on both sides of the point, for the three steps of a group.
struct Stencil {
    std::array<std::vector<double>, levels> above, below;
    std::array<double, levels> up{}, down{};  // the steps as they came out after rounding
    bool finite = true;
};

/// t as it really is, for a line of one element.
double real_step(const Line& line, double before, double after, double t) {
    return line.elements.size() == 1 ? (after - before) / line.steps[0] : t;
}

Stencil evaluate(Problem& problem, const Line& line, double first) {
    Stencil stencil;
    const Tensor& value = problem.slots()[line.slot].value;
    const auto at = [&](const Tensor& x) {
        return line.elements.size() == 1 ? x.data<double>()[line.elements[0]] : 0;
    };
    double h = first;
    for (std::size_t i = 0; i < levels; ++i, h /= 2) {
        const Tensor above = point_of(value, line, h);
        const Tensor below = point_of(value, line, -h);
        stencil.up[i] = real_step(line, at(value), at(above), h);
        stencil.down[i] = real_step(line, at(below), at(value), h);
        stencil.above[i] = problem.evaluate(line.slot, above);
        stencil.below[i] = problem.evaluate(line.slot, below);
    }
    return stencil;
}

struct Attempt {
    double value = 0, truncation = 0, noise = 0;
    double jump = 0, jump_before = 0;  // difference of the slopes, from smaller and larger steps
    double left = 0, right = 0;
    double steepest = 0;
    bool finite = true;

    double error() const { return truncation + noise; }
};

Attempt extrapolate(const Stencil& stencil, const Cotangent& cotangent,
                    std::span<const double> base, double noise) {
    Attempt result;
    const double middle = cotangent.apply(base);
    std::array<double, levels> slope{}, jump{};
    for (std::size_t i = 0; i < levels; ++i) {
        const double above = cotangent.apply(stencil.above[i]);
        const double below = cotangent.apply(stencil.below[i]);
        slope[i] = (above - below) / (stencil.up[i] + stencil.down[i]);
        result.right = (above - middle) / stencil.up[i];
        result.left = (middle - below) / stencil.down[i];
        jump[i] = result.right - result.left;
        result.steepest =
            std::max({result.steepest, std::abs(result.left), std::abs(result.right)});
        result.finite = result.finite && std::isfinite(slope[i]) && std::isfinite(jump[i]);
    }
    const double larger = (4 * slope[1] - slope[0]) / 3;
    const double smaller = (4 * slope[2] - slope[1]) / 3;
    result.value = (16 * smaller - larger) / 15;
    result.truncation = std::abs(result.value - smaller);
    result.noise = noise_weight * noise / stencil.up[levels - 1];
    result.jump = 2 * jump[2] - jump[1];
    result.jump_before = 2 * jump[1] - jump[0];
    return result;
}

/// What one cotangent has got from all groups of steps so far.
struct Record {
    Attempt best, last;
    double steepest = 0;  // slope of all steps
    bool any = false, any_smooth = false, last_smooth = false;

    void add(const Attempt& attempt) {
        last = attempt;
        if (!attempt.finite) return;
        steepest = std::max(steepest, attempt.steepest);
        // As the steps shrink a kink stays, everything smooth goes.
        last_smooth = std::abs(attempt.jump) <= std::max(3 * attempt.noise, small_kink * steepest);
        if (!any || (last_smooth && !any_smooth) ||
            (last_smooth == any_smooth && attempt.error() < best.error())) {
            best = attempt;
        }
        any = true;
        any_smooth = any_smooth || last_smooth;
    }
    /// Smaller steps can't help, since what is left is noise or small.
    bool done(double scale) const {
        return last.finite && last_smooth &&
               last.truncation <= std::max({last.noise, small_truncation * std::abs(last.value),
                                            least_truncation * scale});
    }
    bool kinked() const {
        const double ratio = last.jump_before / last.jump;
        return last.finite && !last_smooth && ratio > 0.6 && ratio < 1.6;
    }
    Estimate estimate(double scale) const {
        Estimate result{best.value, best.error(), Quality::good, last.left, last.right};
        if (!any) {
            result.quality = Quality::edge;
        } else if (!any_smooth) {
            result.quality = kinked() ? Quality::kink : Quality::coarse;
        } else if (best.truncation > 10 * best.noise && best.truncation > 1e-2 * scale) {
            result.quality = last.finite ? Quality::coarse : Quality::edge;
        }
        return result;
    }
};

}  // namespace

double Cotangent::apply(std::span<const double> results) const {
    if (hot >= 0) return results[static_cast<std::size_t>(hot)];
    double sum = 0;
    for (std::size_t i = 0; i < results.size(); ++i) sum += weights[i] * results[i];
    return sum;
}

double Cotangent::apply_to_errors(std::span<const double> errors) const {
    if (hot >= 0) return errors[static_cast<std::size_t>(hot)];
    double squares = 0;
    for (std::size_t i = 0; i < errors.size(); ++i) {
        squares += weights[i] * errors[i] * weights[i] * errors[i];
    }
    return std::sqrt(squares);
}

Tensor point_of(const Tensor& value, const Line& line, double t) {
    Tensor moved = value.clone();
    auto* out = moved.mutable_data<double>();
    for (std::size_t i = 0; i < line.elements.size(); ++i)
        out[line.elements[i]] += t * line.steps[i];
    return moved;
}

std::vector<Estimate> differentiate(Problem& problem, const Line& line,
                                    std::span<const Cotangent> cotangents,
                                    std::span<const double> base, std::span<const double> noise,
                                    bool& moved) {
    std::vector<Record> records(cotangents.size());
    std::vector<double> noises;
    for (const Cotangent& each : cotangents) noises.push_back(each.apply_to_errors(noise));
    std::vector<bool> settled(cotangents.size(), false);
    double scale = 0;
    for (const double first : first_steps) {
        const Stencil stencil = evaluate(problem, line, first);
        moved = moved || !std::equal(base.begin(), base.end(), stencil.above[0].begin()) ||
                !std::equal(base.begin(), base.end(), stencil.below[0].begin());
        // Larger steps stand when they settle it: a function that is nothing but rounding over the
        // smallest steps looks constant there.
        for (std::size_t k = 0; k < cotangents.size(); ++k) {
            if (settled[k]) continue;
            records[k].add(extrapolate(stencil, cotangents[k], base, noises[k]));
            if (records[k].any) scale = std::max(scale, std::abs(records[k].best.value));
        }
        bool all = true;
        for (std::size_t k = 0; k < cotangents.size(); ++k) {
            settled[k] = settled[k] || records[k].done(scale);
            all = all && settled[k];
        }
        if (all) break;
    }
    std::vector<Estimate> estimates;
    estimates.reserve(records.size());
    for (const Record& each : records) estimates.push_back(each.estimate(scale));
    return estimates;
}

}  // namespace glassgrad::proof
