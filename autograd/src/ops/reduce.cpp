// Sums, means, spread and norms along axes, and sums up to each element.

#include <glassgrad/autograd/ops.hpp>

#include "reduce_support.hpp"

#include <limits>
#include <string>

namespace glassgrad {

using detail::find;
using detail::kept_shape;
using detail::reduce_attributes;
using detail::Samples;
using detail::spread;
using detail::tensor_of;

namespace {

using Reduce = Variable (*)(const Variable&, const ReduceOptions&);

VarOptions var_options(const ReduceOptions& options, double correction) {
    return {.axes = options.axes, .keepdims = options.keepdims, .correction = correction};
}

/// Samples of var and std, without those that leave one element to a result.
template <Variable (*F)(const Variable&, const VarOptions&)>
Samples spreads(std::string_view torch) {
    Samples samples;
    for (const int correction : {0, 1}) {
        std::string text(torch);
        text.replace(text.find("correction"), 10, "correction=" + std::to_string(correction));
        for (OpSample& each : detail::over_axes(
                 [correction](const Variable&x, const ReduceOptions&options) {
                     return F(x, var_options(options, correction));
                 },
                 text)) {
            if (each.inputs[0].rank() == 0) continue;
            each.label += ", correction " + std::to_string(correction);
            samples.push_back(std::move(each));
        }
    }
    return samples;
}

/// Samples of one ord: on both sides of 0, sizes apart where the largest counts.
Samples norms(double ord, std::string_view ord_text) {
    Samples samples;
    std::string text = "torch.linalg.vector_norm(a, " + std::string(ord_text) + ", dims)";
    for (OpSample& each : detail::over_axes(
             [ord](const Variable&x, const ReduceOptions&options) {
                 return norm(x, {.axes = options.axes, .keepdims = options.keepdims, .ord = ord});
             },
             text, {0.3, 4})) {
        each.inputs[0] =
            where(detail::checkerboard(each.inputs[0].shape()), each.inputs[0], -each.inputs[0]);
        each.label += ", ord " + std::string(ord_text);
        samples.push_back(std::move(each));
    }
    return samples;
}

Samples all_norms() {
    Samples samples = norms(2, "2");
    for (OpSample& each : norms(1, "1")) samples.push_back(std::move(each));
    for (OpSample& each : norms(std::numeric_limits<double>::infinity(), "math.inf")) {
        samples.push_back(std::move(each));
    }
    return samples;
}

Samples cumsums() {
    Samples samples;
    const auto add = [&](const Shape& shape, std::int64_t axis, bool reverse) {
        const std::string at = std::to_string(axis);
        samples.push_back(detail::sample(
            to_string(shape) + " along " + at + (reverse ? ", reversed" : ""),
            spread(shape, {-2, 2}, static_cast<int>(samples.size()) + 1),
            [axis, reverse](const Variable& x) { return cumsum(x, axis, {.reverse = reverse}); },
            reverse ? "a.flip(" + at + ").cumsum(" + at + ").flip(" + at + ")"
                    : "a.cumsum(" + at + ")"));
    };
    add({5}, 0, false);
    add({2, 3}, 1, false);
    add({2, 3}, -2, true);
    add({2, 4, 3}, 1, false);
    add({2, 4, 3}, -1, true);
    add({0, 3}, 1, false);
    add({3, 0}, 1, false);
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "sum",
     .forward = "y = sum of x over the axes",
     .backward = "gx = gy, spread over the axes",
     .torch = "torch.sum",
     .samples = [] { return detail::over_axes(Reduce(sum), "a.sum(dims)"); }},
    {.name = "mean",
     .forward = "y = sum of x over the axes / n",
     .backward = "gx = gy / n, spread over the axes",
     .torch = "torch.mean",
     .samples = [] { return detail::over_axes(Reduce(mean), "a.mean(dims)"); }},
    {.name = "var",
     .forward = "y = sum of (x - mean)² over the axes / (n - correction)",
     .backward = "gx = 2 gy (x - mean) / (n - correction)",
     .holds = "y >= 0",
     .domain = "correction is 0 unless given; n > correction",
     .torch = "torch.var",
     .samples = [] { return spreads<var>("a.var(dims, correction)"); }},
    {.name = "std",
     .forward = "y = sqrt(sum of (x - mean)² over the axes / (n - correction))",
     .backward = "gx = gy (x - mean) / ((n - correction) y), 0 where y = 0",
     .holds = "y >= 0",
     .domain =
         "correction is 0 unless given; n > correction; the derivative of a constant row is 0",
     .torch = "torch.std",
     .samples = [] { return spreads<std>("a.std(dims, correction)"); }},
    {.name = "norm",
     .forward = "y = sqrt(sum of x² over the axes); ord 1: sum of |x|; ord inf: largest |x|",
     .backward = "gx = gy x / y, 0 where x = 0; ord 1: gy sign(x); ord inf: gy sign(x) / k at each "
                 "of the k largest, else 0",
     .holds = "y >= 0",
     .domain = "the derivative at the zero vector is 0",
     .torch = "torch.linalg.vector_norm",
     .records = "norm abs sum max",
     .samples = [] { return all_norms(); }},
    {.name = "cumsum",
     .forward = "y[i] = sum of x[k] for k <= i along the axis; reversed: for k >= i",
     .backward = "gx[i] = sum of gy[k] for k >= i; reversed: for k <= i",
     .torch = "torch.cumsum",
     .samples = [] { return cumsums(); }},
    {.name = "sum_to",
     .forward = "y = sum of x over the axes that broadcasting had repeated",
     .backward = "gx = broadcast_to(gy)",
     .torch = "torch.Tensor.sum_to_size",
     .samples =
         [] {
             return Samples{
                 detail::sample(
                     "(2, 4, 3) to (4, 1)", spread({2, 4, 3}, {-2, 2}, 1),
                     [](const Variable& x) {
                         return sum_to(x, {4, 1});
                     },
                     "a.sum_to_size((4, 1))"),
                 detail::sample(
                     "(2, 3) to ()", spread({2, 3}, {-2, 2}, 2),
                     [](const Variable& x) { return sum_to(x, {}); }, "a.sum_to_size(())")};
         }},
};

/// Elements that go into one result.
double reduced_count(const Tensor& x, const Tensor& y) {
    if (y.numel() == 0) return 1;
    return static_cast<double>(x.numel()) / static_cast<double>(y.numel());
}

Shape kept_of(const OpRow& row, const Variable& x, const Axes& axes) {
    return detail::computed(
        row, [&] { return kept_shape(row.name, x.shape(), axes); }, x);
}

}  // namespace

std::span<const OpRow> detail::reduce_rows() { return rows; }

Variable sum(const Variable& x, const ReduceOptions& options) {
    const Shape shape = x.shape();
    const Shape kept = kept_of(find(rows, "sum"), x, options.axes);
    return record(
        find(rows, "sum"), [&] { return sum(x.value(), options); },
        [&] { return reduce_attributes(options.axes, options.keepdims); },
        edge(x, [shape, kept](const auto& gy) { return broadcast_to(reshape(gy, kept), shape); }));
}

Variable mean(const Variable& x, const ReduceOptions& options) {
    const Shape shape = x.shape();
    const Shape kept = kept_of(find(rows, "mean"), x, options.axes);
    Tensor value = detail::computed(
        find(rows, "mean"), [&] { return mean(x.value(), options); }, x);
    const double share = 1 / reduced_count(x.value(), value);
    return record(
        find(rows, "mean"), std::move(value),
        [&] { return reduce_attributes(options.axes, options.keepdims); },
        edge(x, [shape, kept, share](const auto& gy) {
            return broadcast_to(reshape(scale(gy, share), kept), shape);
        }));
}

Variable var(const Variable& x, const VarOptions& options) {
    const Shape kept = kept_of(find(rows, "var"), x, options.axes);
    const ReduceOptions means{.axes = options.axes, .keepdims = true};
    Tensor value = detail::computed(
        find(rows, "var"), [&] { return var(x.value(), options); }, x);
    const double share = 2 / (reduced_count(x.value(), value) - options.correction);
    return record(
        find(rows, "var"), std::move(value),
        [&] {
            Attributes list = reduce_attributes(options.axes, options.keepdims);
            list.emplace_back("correction", options.correction);
            return list;
        },
        edge(
            x,
            [kept, means, share](const auto& gy, const auto& in) {
                return chain_mul(reshape(scale(gy, share), kept), in - mean(in, means));
            },
            x));
}

Variable std(const Variable& x, const VarOptions& options) {
    const Shape kept = kept_of(find(rows, "std"), x, options.axes);
    const ReduceOptions means{.axes = options.axes, .keepdims = true};
    Tensor value = detail::computed(
        find(rows, "std"), [&] { return std(x.value(), options); }, x);
    const double divisor = reduced_count(x.value(), value) - options.correction;
    return record(
        find(rows, "std"), std::move(value),
        [&] {
            Attributes list = reduce_attributes(options.axes, options.keepdims);
            list.emplace_back("correction", options.correction);
            return list;
        },
        edge(
            x,
            [kept, means, divisor](const auto& gy, const auto& y, const auto& in) {
                const auto width = reshape(y, kept);
                const auto slope = chain_div(in - mean(in, means), scale(width, divisor));
                const Tensor zero = zeros({}, y.dtype());
                const auto steady = where(equal(tensor_of(width), zero), zero, slope);
                return chain_mul(reshape(gy, kept), steady);
            },
            result, x));
}

Variable norm(const Variable& x, const VectorNormOptions& options) {
    const Shape kept = kept_of(find(rows, "norm"), x, options.axes);
    const ReduceOptions common{.axes = options.axes, .keepdims = options.keepdims};
    const bool composed = is_floating(x.dtype()) && x.numel() > 0;
    if (composed && options.ord == 1) return sum(abs(x), common);
    const bool largest = options.ord == std::numeric_limits<double>::infinity();
    if (composed && largest) return max(abs(x), common);
    Tensor value = detail::computed(
        find(rows, "norm"), [&] { return norm(x.value(), options); }, x);
    return record(
        find(rows, "norm"), std::move(value),
        [&] {
            Attributes list = reduce_attributes(options.axes, options.keepdims);
            list.emplace_back("ord", options.ord);
            return list;
        },
        edge(
            x,
            [kept](const auto& gy, const auto& y, const auto& in) {
                return chain_mul(reshape(gy, kept), chain_div(in, reshape(y, kept)));
            },
            result, x));
}

Variable cumsum(const Variable& x, std::int64_t axis, const CumsumOptions& options) {
    const CumsumOptions back{.reverse = !options.reverse};
    return record(
        find(rows, "cumsum"), [&] { return cumsum(x.value(), axis, options); },
        [&] {
            return Attributes{{"axis", axis}, {"reverse", options.reverse}};
        },
        edge(x, [axis, back](const auto& gy) { return cumsum(gy, axis, back); }));
}

Variable sum_to(const Variable& x, const Shape& shape) {
    const Shape wide = x.shape();
    return record(
        find(rows, "sum_to"), [&] { return sum_to(x.value(), shape); },
        [&] {
            return Attributes{{"shape", shape}};
        },
        edge(x, [wide](const auto& gy) { return broadcast_to(gy, wide); }));
}

}  // namespace glassgrad
