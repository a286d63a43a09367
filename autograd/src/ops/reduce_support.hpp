#pragma once
// What the files of reductions share: shapes with the reduced axes kept, attributes, samples.

#include "family.hpp"

#include <glassgrad/autograd/ops/reduce.hpp>

#include <string>
#include <string_view>

namespace glassgrad::detail {

/// Shape of the result of a reduction with the reduced axes kept as 1.
inline Shape kept_shape(std::string_view op, const Shape& shape, const Axes& axes) {
    const std::uint32_t mask = normalize_axes(op, axes, shape);
    Shape kept = shape;
    for (int i = 0; i < kept.rank(); ++i) {
        if (mask >> i & 1u) kept[i] = 1;
    }
    return kept;
}

inline Attributes reduce_attributes(const Axes& axes, bool keepdims) {
    Attributes list;
    if (!axes.all()) list.emplace_back("axes", Shape(axes.values()));
    list.emplace_back("keepdims", keepdims);
    return list;
}

struct Reduction {
    std::string_view label;
    Shape shape;
    ReduceOptions options;
};
inline const Reduction reductions[] = {
    {"all of ()", {}, {}},
    {"all of (2, 3)", {2, 3}, {}},
    {"axis 0 of (3, 2)", {3, 2}, {.axes = {0}}},
    {"axis -1 of (2, 3), kept", {2, 3}, {.axes = {-1}, .keepdims = true}},
    {"axes 0 and 2 of (2, 4, 3)", {2, 4, 3}, {.axes = {0, 2}}},
    {"axis 0 of (5,)", {5}, {.axes = {0}}},
    {"axis 1 of (0, 3)", {0, 3}, {.axes = {1}}},
};

/// PyTorch's words for the options: `dim=(0, 2, ), keepdim=False`.
std::string torch_dims(const Shape& shape, const ReduceOptions& options);

/// Samples of a reduction f(x, options). In the text, `dims` stands for PyTorch's dim and keepdim.
template <class F>
Samples over_axes(F f, std::string_view torch, Interval interval = {-2, 2}) {
    Samples samples;
    for (const Reduction& each : reductions) {
        const int seed = static_cast<int>(samples.size()) + 1;
        std::string text(torch);
        text.replace(text.find("dims"), 4, torch_dims(each.shape, each.options));
        const ReduceOptions options = each.options;
        samples.push_back(sample(
            each.label, spread(each.shape, interval, seed),
            [f, options](const Variable& x) { return f(x, options); }, text));
    }
    return samples;
}

}  // namespace glassgrad::detail
