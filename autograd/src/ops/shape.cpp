// Functions that move elements without changing them.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

#include <numeric>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

constexpr OpRow rows[] = {
    {.name = "reshape",
     .forward = "y = x in another shape, row by row",
     .backward = "gx = gy in the shape of x",
     .torch = "torch.reshape",
     .samples =
         [] {
             return Samples{
                 detail::moved(
                     "(2, 3) to (3, 2)", {2, 3},
                     [](const Variable& x) {
                         return reshape(x, {3, 2});
                     },
                     "a.reshape(3, 2)"),
                 detail::moved(
                     "(2, 3) to (-1,)", {2, 3}, [](const Variable& x) { return reshape(x, {-1}); },
                     "a.reshape(-1)"),
                 detail::moved(
                     "() to (1, 1)", {},
                     [](const Variable& x) {
                         return reshape(x, {1, 1});
                     },
                     "a.reshape(1, 1)"),
                 detail::moved(
                     "(0, 3) to (3, 0)", {0, 3},
                     [](const Variable& x) {
                         return reshape(x, {3, 0});
                     },
                     "a.reshape(3, 0)")};
         }},
    {.name = "permute",
     .forward = "axis i of y is axis axes[i] of x",
     .backward = "gx = gy with the axes put back",
     .torch = "torch.permute",
     .samples =
         [] {
             return Samples{detail::moved(
                                "(2, 3, 4) by (2, 0, 1)", {2, 3, 4},
                                [](const Variable& x) {
                                    return permute(x, {2, 0, 1});
                                },
                                "a.permute(2, 0, 1)"),
                            detail::moved(
                                "(2, 0, 4) by (1, 2, 0)", {2, 0, 4},
                                [](const Variable& x) {
                                    return permute(x, {1, 2, 0});
                                },
                                "a.permute(1, 2, 0)")};
         }},
    {.name = "transpose",
     .forward = "y = x with two axes exchanged",
     .backward = "gx = gy with the same axes exchanged",
     .torch = "torch.transpose",
     .samples =
         [] {
             return Samples{
                 detail::moved(
                     "(2, 3)", {2, 3}, [](const Variable& x) { return transpose(x); }, "a.mT"),
                 detail::moved(
                     "(2, 3, 4), axes 0 and 2", {2, 3, 4},
                     [](const Variable& x) { return transpose(x, 0, 2); }, "a.transpose(0, 2)")};
         }},
    {.name = "slice",
     .forward = "y = x[start:stop:step] along an axis",
     .backward = "gx = zeros with gy where y was read",
     .torch = "x[start:stop:step]",
     .samples =
         [] {
             return Samples{
                 detail::moved(
                     "rows 1: of (3, 4)", {3, 4},
                     [](const Variable& x) { return slice(x, 0, {.start = 1}); }, "a[1:]"),
                 detail::moved(
                     "columns ::-2 of (3, 5)", {3, 5},
                     [](const Variable& x) { return slice(x, -1, {.step = -2}); },
                     "a[:, [4, 2, 0]]"),
                 detail::moved(
                     "middle 1:-1 of (2, 4, 3)", {2, 4, 3},
                     [](const Variable& x) { return slice(x, 1, {.start = 1, .stop = -1}); },
                     "a[:, 1:-1]"),
                 detail::moved(
                     "all rows of (3, 4), back to front", {3, 4},
                     [](const Variable& x) { return slice(x, 0, {.step = -1}); }, "a.flip(0)"),
                 detail::moved(
                     "all of (3, 4)", {3, 4}, [](const Variable& x) { return slice(x, 0, {}); },
                     "a[:]"),
                 detail::moved(
                     "nothing of (3, 4)", {3, 4},
                     [](const Variable& x) { return slice(x, 0, {.start = 2, .stop = 2}); },
                     "a[2:2]")};
         }},
    {.name = "slice_scatter",
     .forward = "y = zeros with x where the slice would read",
     .backward = "gx = the slice of gy",
     .torch = "torch.slice_scatter",
     .samples =
         [] {
             return Samples{detail::moved(
                 "into columns ::2 of (3, 5)", {3, 3},
                 [](const Variable& x) {
                     return slice_scatter(x, {3, 5}, 1, {.step = 2});
                 },
                 "torch.zeros(3, 5, dtype=a.dtype).index_add(1, torch.tensor([0, 2, 4]), a)")};
         }},
    {.name = "concat",
     .forward = "y = the inputs one after the other along an axis",
     .backward = "gradient of each input = its part of gy",
     .torch = "torch.cat",
     .samples =
         [] {
             return Samples{detail::sample(
                                "(2, 3) and (2, 4) along 1", spread({2, 3}, {-2, 2}, 1),
                                spread({2, 4}, {-2, 2}, 2),
                                [](const Variable& a, const Variable& b) {
                                    return concat({a, b}, 1);
                                },
                                "torch.cat([a, b], 1)"),
                            detail::sample(
                                "(1, 3), (0, 3), (1, 3) along 0", spread({1, 3}, {-2, 2}, 3),
                                spread({0, 3}, {-2, 2}, 4),
                                [](const Variable& a, const Variable& b) {
                                    return concat({a, b, a}, 0);
                                },
                                "torch.cat([a, b, a], 0)")};
         }},
    {.name = "broadcast_to",
     .forward = "y = x repeated to a shape",
     .backward = "gx = sum_to(gy, shape of x)",
     .torch = "torch.broadcast_to",
     .samples =
         [] {
             return Samples{detail::moved(
                                "(2, 1) to (4, 2, 3)", {2, 1},
                                [](const Variable& x) {
                                    return broadcast_to(x, {4, 2, 3});
                                },
                                "a.expand(4, 2, 3)"),
                            detail::moved(
                                "() to (2, 3)", {},
                                [](const Variable& x) {
                                    return broadcast_to(x, {2, 3});
                                },
                                "a.expand(2, 3)")};
         }},
};

Attributes slice_attributes(std::int64_t axis, const SliceOptions& options) {
    Attributes list{{"axis", axis}};
    if (options.start) list.emplace_back("start", *options.start);
    if (options.stop) list.emplace_back("stop", *options.stop);
    list.emplace_back("step", options.step);
    return list;
}

}  // namespace

std::span<const OpRow> detail::shape_rows() { return rows; }

Variable reshape(const Variable& x, const Shape& shape) {
    const Shape before = x.shape();
    return record(
        find(rows, "reshape"), [&] { return reshape(x.value(), shape); },
        [&] {
            return Attributes{{"shape", shape}};
        },
        edge(x, [before](const auto& gy) { return reshape(gy, before); }));
}

Variable permute(const Variable& x, std::span<const std::int64_t> axes) {
    Tensor value = detail::computed(
        find(rows, "permute"), [&] { return permute(x.value(), axes); }, x);
    const Shape order(axes);
    Shape inverse = order;
    for (int i = 0; i < order.rank(); ++i) {
        inverse[normalize_axis("permute", order[i], x.shape())] = i;
    }
    return record(
        find(rows, "permute"), std::move(value),
        [&] {
            return Attributes{{"axes", order}};
        },
        edge(x, [inverse](const auto& gy) {
            return permute(gy, std::span<const std::int64_t>(inverse.begin(), inverse.end()));
        }));
}

Variable permute(const Variable& x, std::initializer_list<std::int64_t> axes) {
    return permute(x, std::span<const std::int64_t>(axes.begin(), axes.size()));
}

Variable transpose(const Variable& x, std::int64_t axis0, std::int64_t axis1) {
    return record(
        find(rows, "transpose"), [&] { return transpose(x.value(), axis0, axis1); },
        [=] {
            return Attributes{{"axis0", axis0}, {"axis1", axis1}};
        },
        edge(x, [axis0, axis1](const auto& gy) { return transpose(gy, axis0, axis1); }));
}

Variable slice(const Variable& x, std::int64_t axis, const SliceOptions& options) {
    const Shape shape = x.shape();
    return record(
        find(rows, "slice"), [&] { return slice(x.value(), axis, options); },
        [&] { return slice_attributes(axis, options); },
        edge(x, [shape, axis, options](const auto& gy) {
            return slice_scatter(gy, shape, axis, options);
        }));
}

Variable slice_scatter(const Variable& x, const Shape& shape, std::int64_t axis,
                       const SliceOptions& options) {
    return record(
        find(rows, "slice_scatter"), [&] { return slice_scatter(x.value(), shape, axis, options); },
        [&] { return slice_attributes(axis, options); },
        edge(x, [axis, options](const auto& gy) { return slice(gy, axis, options); }));
}

Variable concat(std::span<const Variable> parts, std::int64_t axis) {
    std::vector<Tensor> values;
    values.reserve(parts.size());
    for (const Variable& part : parts) values.push_back(part.value());
    Tensor value = detail::computed(
        find(rows, "concat"), [&] { return concat(std::span<const Tensor>(values), axis); }, parts);
    const int at = normalize_axis("concat", axis, value.shape());
    std::vector<std::int64_t> bounds{0};  // part i lies between bounds i and i + 1
    for (const Variable& part : parts) bounds.push_back(bounds.back() + part.shape()[at]);
    return record_many(
        find(rows, "concat"), std::move(value),
        [=] {
            return Attributes{{"axis", axis}};
        },
        parts,
        [at, bounds = std::move(bounds)](std::size_t i, const auto& gy) {
            return slice(gy, at, {.start = bounds[i], .stop = bounds[i + 1]});
        });
}

Variable concat(std::initializer_list<Variable> parts, std::int64_t axis) {
    return concat(std::span<const Variable>(parts.begin(), parts.size()), axis);
}

Variable broadcast_to(const Variable& x, const Shape& shape) {
    const Shape narrow = x.shape();
    return record(
        find(rows, "broadcast_to"), [&] { return broadcast_to(x.value(), shape); },
        [&] {
            return Attributes{{"shape", shape}};
        },
        edge(x, [narrow](const auto& gy) { return sum_to(gy, narrow); }));
}

}  // namespace glassgrad
