#include "gradcheck_diagnosis.hpp"

#include "gradcheck_pattern.hpp"

#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace glassgrad::proof {
namespace {

using Found = std::optional<Diagnosis>;

Found not_finite(const Pattern& pattern) {
    for (const Entry& entry : pattern.table().entries) {
        if (std::isfinite(entry.analytic)) continue;
        return Diagnosis{GradFault::not_finite,
                         fmt::format("the gradient holds {}", number(entry.analytic))};
    }
    return {};
}

Found no_path(const Pattern& pattern, bool second) {
    const auto& entries = pattern.table().entries;
    if (std::any_of(entries.begin(), entries.end(),
                    [](const Entry& e) { return e.analytic != 0; })) {
        return {};
    }
    return Diagnosis{
        GradFault::missing_path,
        second
            ? "no gradient arrives, though the first derivative depends on it: its rule reads "
              "it outside the graph (value(), detach() or a number that was kept)"
            : "no gradient arrives, though the function depends on it: the path is cut (value(), "
              "detach(), NoGrad) or the op has no edge for it"};
}

Found constant_ratio(const Pattern& pattern, const Problem& problem) {
    const double ratio = pattern.ratio();
    if (ratio == 0 || !pattern.analytic_is([&](std::size_t k, std::size_t c) {
            return ratio * pattern.table().at(k, c).numeric;
        })) {
        return {};
    }
    if (std::abs(ratio + 1) < 1e-5) {
        return Diagnosis{GradFault::sign, "analytic = -numeric everywhere: the sign is wrong"};
    }
    return Diagnosis{GradFault::factor, explain_ratio(ratio, problem)};
}

Found moved_elements(const Pattern& pattern, const Shape& shape) {
    for (int i = 0; i < shape.rank(); ++i) {
        for (int j = i + 1; j < shape.rank(); ++j) {
            if (pattern.analytic_is_moved([&](const Tensor& n) { return transpose(n, i, j); })) {
                return Diagnosis{GradFault::transposed,
                                 fmt::format("the numbers are right but transposed: axes {} and {} "
                                             "are exchanged",
                                             i, j)};
            }
        }
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
        for (std::int64_t by = 1; by < shape[axis]; ++by) {
            if (pattern.analytic_is_moved([&](const Tensor& n) {
                    return concat({slice(n, axis, {.start = shape[axis] - by}),
                                   slice(n, axis, {.stop = shape[axis] - by})},
                                  axis);
                })) {
                return Diagnosis{
                    GradFault::shifted,
                    fmt::format("the numbers are right but shifted by {} along axis {}", by, axis)};
            }
        }
        if (pattern.analytic_is_moved(
                [&](const Tensor& n) { return slice(n, axis, {.step = -1}); })) {
            return Diagnosis{
                GradFault::reversed,
                fmt::format("the numbers are right but back to front along axis {}", axis)};
        }
    }
    return {};
}

Found exchanged(const Pattern& pattern, std::span<const Table> tables, const Problem& problem) {
    for (const Table& other : tables) {
        if (&other == &pattern.table() || other.columns() != pattern.table().columns()) continue;
        if (!other.complete || !pattern.table().complete) continue;
        if (pattern.analytic_is(
                [&](std::size_t k, std::size_t c) { return other.at(k, c).numeric; })) {
            return Diagnosis{GradFault::exchanged,
                             fmt::format("this is the gradient of {}: operands are exchanged",
                                         problem.slots()[other.slot].name)};
        }
    }
    return {};
}

/// Broadcasting repeated the input along an axis of the result, and only one place of it counts.
Found missing_sum(const Pattern& pattern, const Problem& problem, const Shape& shape) {
    if (problem.shapes().size() != 1) return {};
    const Shape& result = problem.shapes().front();
    for (int axis = 0; axis < result.rank(); ++axis) {
        const int own = axis - (result.rank() - shape.rank());
        if (result[axis] < 2 || (own >= 0 && shape[own] != 1)) continue;
        for (std::int64_t place = 0; place < result[axis]; ++place) {
            if (pattern.hot_analytic_is([&](std::size_t k, std::size_t c, std::int64_t hot) {
                    return index_of(hot, result)[axis] == place ? pattern.table().at(k, c).numeric
                                                                : 0.0;
                })) {
                return Diagnosis{
                    GradFault::missing_sum,
                    fmt::format("it was repeated along axis {} of the result, but only place {} of "
                                "{} is counted: a sum over that axis is missing",
                                axis, place, result[axis])};
            }
        }
    }
    return {};
}

Found partial_path(const Pattern& pattern, bool second) {
    const std::int64_t wrong = pattern.table().count(Status::wrong);
    const auto size = static_cast<std::int64_t>(pattern.table().columns());
    if (pattern.wrong_entries_are([](const Entry& e) { return e.analytic == 0; })) {
        return Diagnosis{
            GradFault::missing_path,
            fmt::format("a path is missing: analytic is 0 where numeric is not, at {} "
                        "of {} elements{}",
                        wrong, size, second ? "; the rule reads something outside the graph" : "")};
    }
    if (pattern.wrong_entries_are(
            [](const Entry& e) { return std::abs(e.numeric) <= e.tolerance; })) {
        return Diagnosis{GradFault::extra_path,
                         fmt::format("a gradient arrives where the function does not depend on it, "
                                     "at {} of {} elements",
                                     wrong, size)};
    }
    return {};
}

/// A ratio that depends on the element but not on the cotangent.
Found wrong_factor(const Pattern& pattern, const Problem& problem,
                   std::span<const double> results) {
    const std::optional<std::vector<double>> ratios = pattern.ratios_by_element();
    if (!ratios) return {};
    const Table& table = pattern.table();
    const auto* x = problem.slots()[table.slot].value.data<double>();
    const auto is = [&](auto candidate) {
        for (std::size_t c = 0; c < ratios->size(); ++c) {
            const double r = (*ratios)[c];
            const auto e = static_cast<std::size_t>(table.elements[c]);
            if (!std::isnan(r) && !(std::abs(r - candidate(e)) <= 1e-4 * std::abs(r))) return false;
        }
        return true;
    };
    std::string guess;
    const bool same_size =
        static_cast<std::int64_t>(results.size()) == problem.slots()[table.slot].value.numel();
    if (is([&](std::size_t e) { return x[e]; })) guess = "a factor x too much";
    if (is([&](std::size_t e) { return 1 / x[e]; })) guess = "a factor x is missing";
    if (same_size && is([&](std::size_t e) { return results[e]; })) guess = "a factor y too much";
    if (same_size && is([&](std::size_t e) { return 1 / results[e]; }))
        guess = "a factor y is missing";
    if (same_size && is([&](std::size_t e) { return x[e] / results[e]; }))
        guess = "x in place of y";
    if (same_size && is([&](std::size_t e) { return results[e] / x[e]; }))
        guess = "y in place of x";
    return Diagnosis{
        GradFault::wrong_factor,
        fmt::format("analytic / numeric depends on the element but not on the cotangent: a factor "
                    "is taken from a wrong value{}",
                    guess.empty() ? "" : " (" + guess + ")")};
}

Found dropped_term(const Pattern& pattern, const Shape& shape) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (shape[axis] < 2) continue;
        if (pattern.residual_is_constant_along(axis)) {
            return Diagnosis{
                GradFault::dropped_term,
                fmt::format("analytic - numeric is the same all along axis {}: a sum or mean over "
                            "that axis is missing, or counted twice",
                            axis)};
        }
    }
    for (int axis = 0; axis < shape.rank(); ++axis) {
        if (shape[axis] < 2) continue;
        if (pattern.residuals_are_parallel_along(axis)) {
            return Diagnosis{
                GradFault::dropped_term,
                fmt::format("along axis {} analytic - numeric is one vector times a number for "
                            "every cotangent: a term with a sum over that axis is missing, or "
                            "counted twice",
                            axis)};
        }
    }
    return {};
}

}  // namespace

Diagnosis diagnose(const Problem& problem, std::span<const Cotangent> cotangents,
                   std::span<const double> results, std::span<const Table> tables,
                   std::size_t which, bool second) {
    const Table& table = tables[which];
    const Shape& shape = problem.slots()[table.slot].value.shape();
    const Pattern pattern(table, cotangents, shape);
    if (Found found = not_finite(pattern)) return *found;
    if (Found found = no_path(pattern, second)) return *found;
    if (Found found = constant_ratio(pattern, problem)) return *found;
    if (table.complete) {
        if (Found found = moved_elements(pattern, shape)) return *found;
        if (Found found = exchanged(pattern, tables, problem)) return *found;
        if (Found found = missing_sum(pattern, problem, shape)) return *found;
    }
    if (Found found = partial_path(pattern, second)) return *found;
    if (problem.total() > 1) {
        if (Found found = wrong_factor(pattern, problem, results)) return *found;
    }
    if (table.complete) {
        if (Found found = dropped_term(pattern, shape)) return *found;
    }
    return {GradFault::unknown, "no pattern that is known"};
}

}  // namespace glassgrad::proof
