#pragma once
// What the tests of autograd/ share: inputs without equal sizes or repeated values, and shorthands.

#include <glassgrad/autograd.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace glassgrad::testing {

/// f64 values in [low, high] that neither repeat nor follow an order.
inline Tensor uneven(const Shape& shape, double low = -2, double high = 2, int seed = 1) {
    Tensor values = Tensor::empty(shape, f64);
    auto* out = values.mutable_data<double>();
    for (std::int64_t i = 0; i < values.numel(); ++i) {
        const double turn = 0.7548776662466927 * static_cast<double>(i + 1) + 0.3141 * seed;
        out[i] = low + (high - low) * (turn - std::floor(turn));
    }
    return values;
}

inline Variable x64(const NestedList& values, std::string_view name = "x") {
    return parameter(tensor(values, f64), name);
}

inline std::vector<double> numbers(const Tensor& x) {
    const Tensor wide = x.astype(f64);
    const auto values = wide.values<double>();
    return {values.begin(), values.end()};
}

/// Equal shapes, types and elements; NaN equals NaN.
inline bool same_bits(const Tensor& a, const Tensor& b) {
    if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
    const std::size_t bytes = static_cast<std::size_t>(a.numel()) * item_size(a.dtype());
    return std::equal(a.bytes(), a.bytes() + bytes, b.bytes());
}

/// |a - b| <= tolerance times the larger, or `tolerance` near zero.
inline bool close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
    return a.shape() == b.shape() &&
           allclose(a, b, {.rtol = tolerance, .atol = tolerance, .equal_nan = true});
}

template <class E = Error>
std::string message_of(const auto& call) {
    try {
        call();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        return std::string("another type of error: ") + error.what();
    }
    return "no error";
}

/// An op with one input and one rule, for derivatives that are wrong on purpose.
inline constexpr OpRow seeded_row{.name = "seeded", .forward = "y = f(x)", .backward = "gx = ?"};

template <class Rule, class... Saved>
Variable seeded(Tensor value, const Variable& x, Rule rule, const Saved&... saved) {
    return record(seeded_row, std::move(value), edge(x, rule, saved...));
}

}  // namespace glassgrad::testing
