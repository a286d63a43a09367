// Whether a function can be checked at all.

#include "gradcheck_analytic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace glassgrad::proof {
namespace {

/// Throws Refusal when the function rounds to f32 on its way. Moved by numbers of 53 bits, one that
/// computes in f64 does not land on numbers of 24.
void check_precision(Problem& problem, std::vector<Tensor> values, std::span<const double> base) {
    Draw draw(5);
    for (std::size_t s = 0; s < values.size(); ++s) {
        Line line{s, {}, problem.slots()[s].scale};
        for (std::size_t e = 0; e < line.steps.size(); ++e) {
            line.elements.push_back(static_cast<std::int64_t>(e));
            line.steps[e] *= draw.weight();
        }
        values[s] = point_of(values[s], line, 0x1p-20);
    }
    const std::vector<double> moved = problem.evaluate(values);
    double largest = 0;
    for (const double each : base) largest = std::max(largest, std::abs(each));
    bool changed = false, all_narrow = true;
    const auto narrow = [](double x) { return static_cast<double>(static_cast<float>(x)) == x; };
    for (std::size_t k = 0; k < base.size(); ++k) {
        // Small results may be a few last places of larger ones, and small changes are rounding.
        if (std::abs(base[k]) < 1e-3 * largest) continue;
        if (!(std::abs(moved[k] - base[k]) > 0x1p-30 * std::abs(base[k]))) continue;
        changed = true;
        all_narrow = all_narrow && narrow(moved[k]) && narrow(base[k]);
    }
    if (changed && all_narrow) {
        throw Refusal{Verdict::invalid, GradFault::none,
                      "the function computes in f32 inside: all its results are f32 numbers, "
                      "though gradients are checked in f64"};
    }
}

}  // namespace

void check_function(Problem& problem, const Recorded& run, std::span<const double> base,
                    bool second) {
    for (std::size_t i = 0; i < base.size(); ++i) {
        if (std::isfinite(base[i])) continue;
        throw Refusal{Verdict::invalid, GradFault::none,
                      fmt::format("the function is {} {}: check it inside its domain",
                                  number(base[i]), problem.place(static_cast<std::int64_t>(i)))};
    }
    std::vector<Tensor> values;
    for (const Slot& slot : problem.slots()) values.push_back(slot.value);
    const std::vector<double> again = problem.evaluate(values);
    for (std::size_t i = 0; i < base.size(); ++i) {
        if (base[i] == again[i]) continue;
        throw Refusal{Verdict::invalid, GradFault::none,
                      fmt::format("the function isn't repeatable: {} it gave {}, then {}; fix its "
                                  "seed, or turn dropout off",
                                  problem.place(static_cast<std::int64_t>(i)), number(base[i]),
                                  number(again[i]))};
    }
    double largest = 0;
    for (const double each : base) largest = std::max(largest, std::abs(each));
    std::size_t i = 0;
    for (const Variable& y : run.results) {
        for (const double value : y.value().values<double>()) {
            if (std::abs(value - base[i]) > 1e-9 * largest) {
                throw Refusal{
                    Verdict::failed, GradFault::passes_differ,
                    fmt::format("{} {} is {} {}, {} {}",
                                problem.place(static_cast<std::int64_t>(i)),
                                second ? "the gradient" : "the function", number(value),
                                second ? "in the pass that create_graph records" : "in grad mode",
                                number(base[i]), second ? "in the usual one" : "without")};
            }
            ++i;
        }
    }
    if (!second) check_precision(problem, std::move(values), base);
}

}  // namespace glassgrad::proof
