#pragma once
// Tables of calls at special numbers. Each row is checked in f64 and f32, in the usual pass and in
// a recorded one. Any test file may hold a table of its own.

#include "autograd/support/checks.hpp"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace glassgrad::testing {

inline constexpr double inf = std::numeric_limits<double>::infinity();
inline constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

using Numbers = std::vector<double>;

struct SpecialValue {
    std::string call;
    std::function<Variable(std::span<const Variable>)> apply;
    std::vector<Numbers> inputs;  ///< one vector an input
    Numbers y;                    ///< one number: a result of rank 0 or of one element
    std::vector<Numbers> gx;      ///< of each input
    Numbers gy = {};              ///< ones where empty
    /// Where given: the derivatives of sum(gx), over all inputs, by each input.
    std::vector<Numbers> second = {};
    std::vector<DType> types = {f64, f32};
};

inline SpecialValue special(std::string call, Variable (*f)(const Variable&), Numbers x, Numbers y,
                            Numbers gx, std::vector<DType> types = {f64, f32}) {
    return {std::move(call),
            [f](std::span<const Variable> in) { return f(in[0]); },
            {std::move(x)},
            std::move(y),
            {std::move(gx)},
            {},
            {},
            std::move(types)};
}

/// NaN is NaN, infinities and zeros are exact (of either sign of zero), the others to rounding.
inline bool as_expected(const Tensor& got, const Numbers& expected, double tolerance) {
    const std::vector<double> values = numbers(got);
    if (values.size() != expected.size()) return false;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double a = values[i];
        const double b = expected[i];
        if (std::isnan(a) && std::isnan(b)) continue;
        if (a == b) continue;
        if (!std::isfinite(a) || !std::isfinite(b)) return false;
        if (!(std::abs(a - b) <= tolerance * std::abs(b) || (b == 0 && std::abs(a) < 1e-30))) {
            return false;
        }
    }
    return true;
}

inline void check_special_value(const SpecialValue& row, DType dtype) {
    const double tolerance = dtype == f64 ? 1e-12 : 2e-6;
    const auto vector = [&](const Numbers& x) {
        return from_values(std::span<const double>(x), {static_cast<std::int64_t>(x.size())},
                           dtype);
    };
    std::vector<Variable> leaves;
    for (const Numbers& each : row.inputs) leaves.push_back(parameter(vector(each)));
    const Variable y = row.apply(leaves);
    INFO(row.call << " in " << name(dtype) << ": y = " << y.value());
    CHECK(y.dtype() == dtype);
    CHECK(as_expected(y.value(), row.y, tolerance));
    const Tensor ones_of_y = ones(y.shape(), dtype);
    const Variable gy =
        row.gy.empty() ? Variable(ones_of_y) : Variable(reshape(vector(row.gy), y.shape()));
    const auto usual =
        grad({y}, leaves, {.grad_outputs = {gy}, .retain_graph = true, .allow_unused = true});
    const auto recorded =
        grad({y}, leaves, {.grad_outputs = {gy}, .create_graph = true, .allow_unused = true});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        INFO("gradient of input " << i << ": " << usual[i] << ", recorded: " << recorded[i]);
        CHECK(as_expected(usual[i].value(), row.gx[i], tolerance));
        CHECK(as_expected(recorded[i].value(), row.gx[i], tolerance));
    }
    if (row.second.empty()) return;
    Variable total = sum(recorded[0]);
    for (std::size_t i = 1; i < recorded.size(); ++i) total = total + sum(recorded[i]);
    std::vector<Variable> second(leaves.size());
    if (total.requires_grad()) second = grad({total}, leaves, {.allow_unused = true});
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const Tensor got = second[i].defined() ? second[i].value() : zeros_like(leaves[i].value());
        INFO("second derivative by input " << i << ": " << got);
        CHECK(as_expected(got, row.second[i], tolerance));
    }
}

inline void check_special_values(std::span<const SpecialValue> table) {
    for (const SpecialValue& row : table) {
        for (const DType dtype : row.types) check_special_value(row, dtype);
    }
}

}  // namespace glassgrad::testing
