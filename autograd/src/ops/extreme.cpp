// Largest and smallest elements along axes, where they are, the smooth maximum, and products.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/trailing.hpp>

#include "reduce_support.hpp"

#include <limits>
#include <string>
#include <utility>

namespace glassgrad {

using detail::find;
using detail::kept_shape;
using detail::reduce_attributes;
using detail::Samples;
using detail::spread;
using detail::tensor_of;

namespace {

using Reduce = Variable (*)(const Variable&, const ReduceOptions&);

/// `a.prod(2, keepdim=True).prod(0, keepdim=True)`: PyTorch multiplies along one axis at a time.
std::string torch_prod(const Shape& shape, const ReduceOptions& options) {
    std::string text = "a";
    if (options.axes.all()) return text + ".prod()";
    const std::uint32_t mask = normalize_axes("prod", options.axes, shape);
    for (int i = shape.rank() - 1; i >= 0; --i) {
        if ((mask >> i & 1u) == 0) continue;
        text +=
            ".prod(" + std::to_string(i) + ", keepdim=" + (options.keepdims ? "True)" : "False)");
    }
    return text;
}

Samples products() {
    Samples samples;
    const auto add = [&](std::string_view label, const Tensor& x, const ReduceOptions& options) {
        samples.push_back(detail::sample(
            label, x, [options](const Variable& v) { return prod(v, options); },
            torch_prod(x.shape(), options)));
    };
    for (const detail::Reduction& each : detail::reductions) {
        add(each.label, spread(each.shape, {-2, 2}, static_cast<int>(samples.size()) + 1),
            each.options);
    }
    const Tensor gaps = tensor({{1.5, -0.5, 2.0, 0.7},
                                {1.25, 0.0, -1.0, 0.3},
                                {0.0, -1.5, 0.0, 0.9},
                                {0.0, 0.0, 1.75, 0.0}},
                               f64);
    add("none to three zeros a row", gaps, {.axes = {1}});
    add("zeros in columns", gaps, {.axes = {0}, .keepdims = true});
    add("no factors", Tensor::empty({3, 0}, f64), {.axes = {1}});
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "max",
     .forward = "y = largest x over the axes",
     .backward = "gx = gy / k at each of the k largest, else 0",
     .domain = "NaN if any x is NaN, and NaNs share gy",
     .torch = "torch.amax",
     .samples = [] { return detail::over_axes(Reduce(max), "a.amax(dims)"); }},
    {.name = "min",
     .forward = "y = smallest x over the axes",
     .backward = "gx = gy / k at each of the k smallest, else 0",
     .domain = "NaN if any x is NaN, and NaNs share gy",
     .torch = "torch.amin",
     .samples = [] { return detail::over_axes(Reduce(min), "a.amin(dims)"); }},
    {.name = "amax",
     .forward = "y = largest x over the axes",
     .backward = "gx = gy / k at each of the k largest, else 0",
     .domain = "another name of max",
     .torch = "torch.amax",
     .records = "max",
     .samples = [] { return detail::over_axes(Reduce(amax), "a.amax(dims)"); }},
    {.name = "amin",
     .forward = "y = smallest x over the axes",
     .backward = "gx = gy / k at each of the k smallest, else 0",
     .domain = "another name of min",
     .torch = "torch.amin",
     .records = "min",
     .samples = [] { return detail::over_axes(Reduce(amin), "a.amin(dims)"); }},
    {.name = "argmax",
     .forward = "y = index of the first largest x along the axis",
     .backward = "",
     .domain = "the first NaN counts as largest; no derivative",
     .inputs = "x",
     .torch = "torch.argmax"},
    {.name = "argmin",
     .forward = "y = index of the first smallest x along the axis",
     .backward = "",
     .domain = "the first NaN counts as smallest; no derivative",
     .inputs = "x",
     .torch = "torch.argmin"},
    {.name = "logsumexp",
     .forward = "y = m + log(sum of exp(x - m) over the axes), m the largest x",
     .backward = "gx = gy exp(x - y), 0 where y = -inf",
     .domain = "-inf if every x is -inf or there is none; inf, with a gradient that is NaN, if any "
               "x is inf",
     .torch = "torch.logsumexp",
     .samples =
         [] {
             Samples samples = detail::over_axes(Reduce(logsumexp), "a.logsumexp(dims)");
             samples.push_back(detail::sample(
                 "far from 0",
                 tensor({{9999.5, 10001.0, 9998.25, 10000.0}, {-1e4, -10001.5, -10000.5, -9999.0}},
                        f64),
                 [](const Variable& x) { return logsumexp(x, {.axes = {-1}}); },
                 "a.logsumexp(-1)"));
             return samples;
         }},
    {.name = "prod",
     .forward = "y = product of x over the axes",
     .backward = "gx[i] = gy times the product of x[k] for k != i",
     .torch = "torch.prod",
     .samples = [] { return products(); }},
};

/// gy shared by the elements that equal the result, 0 elsewhere; NaN equals NaN.
template <class V>
V to_chosen(const V& gy, const V& y, const V& x, const Shape& kept, const Axes& axes) {
    const Tensor& in = tensor_of(x);
    const Tensor ties = logical_or(equal(in, reshape(tensor_of(y), kept)), not_equal(in, in));
    const Tensor count = sum(ties.astype(in.dtype()), {.axes = axes, .keepdims = true});
    return where(ties, chain_div(reshape(gy, kept), count), zeros({}, in.dtype()));
}

Variable extreme(const OpRow& row, Tensor value, const Variable& x, const ReduceOptions& options) {
    const Shape kept = kept_shape(row.name, x.shape(), options.axes);
    const Axes axes = options.axes;
    return record(
        row, std::move(value), [&] { return reduce_attributes(options.axes, options.keepdims); },
        edge(
            x,
            [axes, kept](const auto& gy, const auto& y, const auto& in) {
                return to_chosen(gy, y, in, kept, axes);
            },
            result, x));
}

}  // namespace

std::span<const OpRow> detail::extreme_rows() { return rows; }

Variable max(const Variable& x, const ReduceOptions& options) {
    return extreme(find(rows, "max"),
                   detail::computed(
                       find(rows, "max"), [&] { return max(x.value(), options); }, x),
                   x, options);
}
Variable min(const Variable& x, const ReduceOptions& options) {
    return extreme(find(rows, "min"),
                   detail::computed(
                       find(rows, "min"), [&] { return min(x.value(), options); }, x),
                   x, options);
}
Variable amax(const Variable& x, const ReduceOptions& options) { return max(x, options); }
Variable amin(const Variable& x, const ReduceOptions& options) { return min(x, options); }

Variable argmax(const Variable& x, const ArgOptions& options) {
    const OpRow& row = find(rows, "argmax");
    Tensor value = detail::computed(
        row, [&] { return argmax(x.value(), options); }, x);
    return record_without_derivative(row, std::move(value), {&x, 1});
}
Variable argmin(const Variable& x, const ArgOptions& options) {
    const OpRow& row = find(rows, "argmin");
    Tensor value = detail::computed(
        row, [&] { return argmin(x.value(), options); }, x);
    return record_without_derivative(row, std::move(value), {&x, 1});
}

Variable logsumexp(const Variable& x, const ReduceOptions& options) {
    const Shape kept = detail::computed(
        find(rows, "logsumexp"), [&] { return kept_shape("logsumexp", x.shape(), options.axes); },
        x);
    const Axes axes = options.axes;
    return record(
        find(rows, "logsumexp"), [&] { return logsumexp(x.value(), options); },
        [&] { return reduce_attributes(options.axes, options.keepdims); },
        edge(
            x,
            [kept, axes](const auto& gy, const auto& y, const auto& in) {
                // y is rounded, and infinite at times: it is only what keeps exp in range.
                const Tensor total = reshape(tensor_of(y), kept);
                const Tensor endless =
                    equal(abs(total), full({}, std::numeric_limits<double>::infinity(), y.dtype()));
                const auto parts = exp(in - where(endless, zeros({}, y.dtype()), total));
                const auto whole = sum(parts, {.axes = axes, .keepdims = true});
                const Tensor empty = equal(tensor_of(whole), zeros({}, y.dtype()));
                const auto share = parts / where(empty, ones({}, y.dtype()), whole);
                return chain_mul(reshape(gy, kept), share);
            },
            result, x));
}

Variable prod_vjp(const Variable& x, const Variable& gy, const Axes& axes) {
    if (!grad_enabled()) return Variable(prod_vjp(x.value(), gy.value(), axes));
    // Row i of a square holds x with 1 at place i: its product is that of the others.
    const detail::Trailing order = detail::trailing("prod", x.shape(), axes);
    const Variable last = permute(x, detail::list(order.order));
    const std::int64_t count = gy.numel();
    std::int64_t n = 1;
    for (int i = 1; i <= order.count; ++i) n *= last.shape()[last.rank() - i];
    const Variable square =
        where(eye(n).astype(boolean), ones({}, x.dtype()), reshape(last, {count, 1, n}));
    const Variable others = prod(square, {.axes = {-1}});
    const Variable gx = chain_mul(reshape(gy, {count, 1}), others);
    return permute(reshape(gx, last.shape()), detail::list(order.inverse));
}

Variable prod(const Variable& x, const ReduceOptions& options) {
    const Axes axes = options.axes;
    return record(
        find(rows, "prod"), [&] { return prod(x.value(), options); },
        [&] { return reduce_attributes(options.axes, options.keepdims); },
        edge(
            x, [axes](const auto& gy, const auto& in) { return prod_vjp(in, gy, axes); }, x));
}

}  // namespace glassgrad
