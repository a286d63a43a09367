// Softmax, its logarithm, and the fused derivative that the usual backward pass runs.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/composed.hpp>

#include "family.hpp"

#include <limits>

namespace glassgrad {

using detail::any;
using detail::find;
using detail::Samples;
using detail::spread;

namespace {

template <Variable (*F)(const Variable&, std::int64_t)>
Samples over_axes(std::string_view torch_name) {
    Samples samples;
    const auto add = [&](const Shape& shape, std::int64_t axis, int seed) {
        samples.push_back(detail::sample(
            to_string(shape) + " along " + std::to_string(axis), spread(shape, {-2, 2}, seed),
            [axis](const Variable& x) { return F(x, axis); },
            std::string(torch_name) + "(a, " + std::to_string(axis) + ")"));
    };
    add({4}, -1, 1);
    add({2, 3}, 1, 2);
    add({2, 3}, 0, 3);
    add({2, 4, 3}, 1, 4);
    add({0, 3}, -1, 5);
    add({}, -1, 6);
    add({}, 0, 7);
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "softmax",
     .forward = "y[i] = exp(x[i] - max(x)) / sum_k exp(x[k] - max(x)); 0 if every x is -inf",
     .backward = "gx = y (gy - sum_k gy[k] y[k])",
     .holds = "sum(y, axis) = 1; y >= 0",
     .domain = "a row of -inf gives zeros and takes zero gradient; a row with +inf is NaN",
     .torch = "torch.softmax",
     .samples = [] { return over_axes<softmax>("torch.softmax"); }},
    {.name = "log_softmax",
     .forward = "y[i] = x[i] - max(x) - log sum_k exp(x[k] - max(x))",
     .backward = "gx = gy - exp(y) sum_k gy[k]",
     .holds = "sum(exp(y), axis) = 1; y <= 0",
     .domain = "a row of -inf gives -inf and takes zero gradient; a row with +inf is NaN",
     .torch = "torch.log_softmax",
     .samples = [] { return over_axes<log_softmax>("torch.log_softmax"); }},
};

}  // namespace

std::span<const OpRow> detail::normalize_rows() { return rows; }

namespace {

/// Of one axis, or of the one element that there is at rank 0.
ReduceOptions along(std::int64_t axis, const Variable& x) {
    return {.axes = x.rank() == 0 ? Axes() : Axes(axis), .keepdims = true};
}

}  // namespace

Variable softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis) {
    if (!grad_enabled()) return Variable(softmax_vjp(y.value(), gy.value(), axis));
    const Tensor zero = zeros({}, y.dtype());
    const Tensor hidden = equal(y.value(), zero);
    const Variable g = any(hidden) ? where(hidden, zero, gy) : gy;
    return y * (g - sum(g * y, along(axis, y)));
}

Variable log_softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis) {
    if (!grad_enabled()) return Variable(log_softmax_vjp(y.value(), gy.value(), axis));
    const double infinity = std::numeric_limits<double>::infinity();
    Variable gx = gy - exp(y) * sum(gy, along(axis, y));
    if (y.numel() == 0) return gx;
    const Tensor dead = equal(max(y.value(), along(axis, y)), full({}, -infinity, y.dtype()));
    return any(dead) ? where(dead, zeros({}, y.dtype()), gx) : gx;
}

Variable softmax(const Variable& x, std::int64_t axis) {
    return record(
        find(rows, "softmax"), [&] { return softmax(x.value(), axis); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(
            x, [axis](const auto& gy, const auto& y) { return softmax_vjp(y, gy, axis); }, result));
}

Variable log_softmax(const Variable& x, std::int64_t axis) {
    return record(
        find(rows, "log_softmax"), [&] { return log_softmax(x.value(), axis); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(
            x, [axis](const auto& gy, const auto& y) { return log_softmax_vjp(y, gy, axis); },
            result));
}

}  // namespace glassgrad
