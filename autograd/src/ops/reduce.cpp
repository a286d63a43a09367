// Reductions.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;

namespace {

/// Shape of the result of a reduction with the reduced axes kept as 1.
Shape kept_shape(std::string_view op, const Shape& shape, const Axes& axes) {
    const std::uint32_t mask = normalize_axes(op, axes, shape);
    Shape kept = shape;
    for (int i = 0; i < kept.rank(); ++i) {
        if (mask >> i & 1u) kept[i] = 1;
    }
    return kept;
}

/// Samples of a reduction that PyTorch calls a.name(dim, keepdim).
template <Variable (*F)(const Variable&, const ReduceOptions&)>
Samples over_axes(std::string_view torch_name) {
    Samples samples;
    const auto add = [&](std::string_view label, const Shape& shape, const ReduceOptions& options) {
        const int seed = static_cast<int>(samples.size()) + 1;
        std::string dims;
        for (const std::int64_t axis : options.axes.values()) dims += std::to_string(axis) + ", ";
        const std::string torch =
            "a." + std::string(torch_name) +
            (options.axes.all()
                 ? std::string("()")
                 : "((" + dims + "), keepdim=" + (options.keepdims ? "True)" : "False)"));
        samples.push_back(detail::sample(
            label, spread(shape, {-2, 2}, seed),
            [options](const Variable& x) { return F(x, options); }, torch));
    };
    add("all of ()", {}, {});
    add("all of (2, 3)", {2, 3}, {});
    add("axis 0 of (2, 3)", {2, 3}, {.axes = {0}});
    add("axis -1 of (2, 3), kept", {2, 3}, {.axes = {-1}, .keepdims = true});
    add("axes 0 and 2 of (2, 4, 3)", {2, 4, 3}, {.axes = {0, 2}});
    add("axis 0 of (5,)", {5}, {.axes = {0}});
    add("axis 1 of (0, 3)", {0, 3}, {.axes = {1}});
    return samples;
}

/// 1 / k at each of the k largest elements along the axes, 0 elsewhere.
Tensor shares_of_largest(const Tensor& x, const Tensor& largest, const Axes& axes) {
    const Tensor ties = equal(x, largest).astype(x.dtype());
    return ties / sum(ties, {.axes = axes, .keepdims = true});
}

Attributes attributes(const ReduceOptions& options) {
    Attributes list;
    if (!options.axes.all()) list.emplace_back("axes", Shape(options.axes.values()));
    list.emplace_back("keepdims", options.keepdims);
    return list;
}

constexpr OpRow rows[] = {
    {.name = "sum",
     .forward = "y = sum of x over the axes",
     .backward = "gx = gy, spread over the axes",
     .torch = "torch.sum",
     .samples = [] { return over_axes<sum>("sum"); }},
    {.name = "mean",
     .forward = "y = sum of x over the axes / n",
     .backward = "gx = gy / n, spread over the axes",
     .torch = "torch.mean",
     .samples = [] { return over_axes<mean>("mean"); }},
    {.name = "max",
     .forward = "y = largest x over the axes",
     .backward = "gx = gy / k at each of the k largest, else 0",
     .torch = "torch.amax",
     .samples = [] { return over_axes<max>("amax"); }},
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

}  // namespace

std::span<const OpRow> detail::reduce_rows() { return rows; }

Variable sum(const Variable& x, const ReduceOptions& options) {
    const Shape shape = x.shape();
    const Shape kept = kept_shape("sum", shape, options.axes);
    return record(
        find(rows, "sum"), sum(x.value(), options), [&] { return attributes(options); },
        edge(x, [shape, kept](const auto& gy) { return broadcast_to(reshape(gy, kept), shape); }));
}

Variable mean(const Variable& x, const ReduceOptions& options) {
    const Shape shape = x.shape();
    const Shape kept = kept_shape("mean", shape, options.axes);
    Tensor value = mean(x.value(), options);
    const double share = value.numel() == 0
                             ? 1
                             : static_cast<double>(value.numel()) / static_cast<double>(x.numel());
    return record(
        find(rows, "mean"), std::move(value), [&] { return attributes(options); },
        edge(x, [shape, kept, share](const auto& gy) {
            return broadcast_to(reshape(scale(gy, share), kept), shape);
        }));
}

Variable max(const Variable& x, const ReduceOptions& options) {
    const Shape kept = kept_shape("max", x.shape(), options.axes);
    const Axes axes = options.axes;
    return record(
        find(rows, "max"), max(x.value(), options), [&] { return attributes(options); },
        edge(
            x,
            [axes, kept](const auto& gy, const auto& y, const auto& in) {
                const Tensor largest = reshape(tensor_of(y), kept);
                return reshape(gy, kept) * shares_of_largest(tensor_of(in), largest, axes);
            },
            result, x));
}

Variable sum_to(const Variable& x, const Shape& shape) {
    const Shape wide = x.shape();
    return record(
        find(rows, "sum_to"), sum_to(x.value(), shape),
        [&] {
            return Attributes{{"shape", shape}};
        },
        edge(x, [wide](const auto& gy) { return broadcast_to(gy, wide); }));
}

}  // namespace glassgrad
