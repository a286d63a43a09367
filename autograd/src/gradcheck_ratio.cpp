// Names for the constant by which a gradient is off.

#include "gradcheck_diagnosis.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace glassgrad::proof {
namespace {

/// A size that formulas divide by, with what it is the size of.
struct Size {
    std::int64_t n;
    std::string what;
};

std::vector<Size> sizes_of(const Problem& problem) {
    std::vector<Size> sizes;
    const auto add = [&](std::int64_t n, std::string what) {
        if (n < 2) return;
        for (const Size& each : sizes) {
            if (each.n == n) return;
        }
        sizes.push_back({n, std::move(what)});
    };
    const auto add_axes = [&](const Shape& shape, const std::string& title) {
        for (int axis = 0; axis < shape.rank(); ++axis) {
            add(shape[axis], fmt::format("the size of axis {} of {}", axis, title));
        }
    };
    const auto add_count = [&](const Shape& shape, const std::string& title) {
        add(shape.numel(), fmt::format("the number of elements of {}", title));
        for (int axis = 0; axis < shape.rank(); ++axis) {
            for (int other = axis + 1; other < shape.rank(); ++other) {
                add(shape[axis] * shape[other],
                    fmt::format("the sizes of axes {} and {} of {}", axis, other, title));
            }
        }
    };
    for (const Slot& slot : problem.slots()) add_axes(slot.value.shape(), slot.name);
    for (const Shape& shape : problem.shapes()) add_axes(shape, "the result");
    for (const Slot& slot : problem.slots()) add_count(slot.value.shape(), slot.name);
    for (const Shape& shape : problem.shapes()) add_count(shape, "the result");
    return sizes;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-5 * std::abs(b); }

}  // namespace

std::string explain_ratio(double ratio, const Problem& problem) {
    std::vector<std::string> readings;
    const double size = std::abs(ratio);
    if (close(size, 2)) readings.emplace_back("a factor 2 too much");
    if (close(size, 0.5)) readings.emplace_back("a factor 2 is missing");
    for (const auto& [n, what] : sizes_of(problem)) {
        const auto whole = static_cast<double>(n);
        const double root = std::sqrt(whole);
        if (close(size, whole)) readings.push_back(fmt::format("1/{} is missing, {}", n, what));
        if (close(size, 1 / whole)) readings.push_back(fmt::format("1/{} too much, {}", n, what));
        if (close(size, root)) {
            readings.push_back(fmt::format("1/sqrt({}) is missing, {}", n, what));
        }
        if (close(size, 1 / root)) {
            readings.push_back(fmt::format("1/sqrt({}) too much, {}", n, what));
        }
        if (close(size, whole / (whole - 1)) && n > 2) {
            readings.push_back(fmt::format("1/({} - 1) in place of 1/{}, {}", n, n, what));
        }
        if (close(size, (whole - 1) / whole) && n > 2) {
            readings.push_back(fmt::format("1/{} in place of 1/({} - 1), {}", n, n, what));
        }
    }
    std::string text = fmt::format("analytic = {} numeric everywhere", number(ratio));
    if (ratio < 0) readings.insert(readings.begin(), "the sign is wrong");
    for (std::size_t i = 0; i < readings.size() && i < 4; ++i) {
        text += (i == 0 ? ": " : i == 1 && ratio < 0 ? ", and " : ", or ") + readings[i];
    }
    return text;
}

}  // namespace glassgrad::proof
