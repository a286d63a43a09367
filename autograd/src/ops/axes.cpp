// Axes put in, taken out and spread, and a tensor cut along one.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/pieces.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples squeeze_samples() {
    return {detail::moved(
                "(1, 3, 1, 2), all", {1, 3, 1, 2}, [](const Variable& x) { return squeeze(x); },
                "a.squeeze()"),
            detail::moved(
                "(1, 3, 1, 2), axis -2", {1, 3, 1, 2},
                [](const Variable& x) { return squeeze(x, -2); }, "a.squeeze(-2)"),
            detail::moved(
                "(1, 3, 1), axes 0 and 2", {1, 3, 1},
                [](const Variable& x) {
                    return squeeze(x, {0, 2});
                },
                "a.squeeze(2).squeeze(0)"),
            detail::moved(
                "()", {}, [](const Variable& x) { return squeeze(x); }, "a.squeeze()"),
            detail::moved(
                "(0, 1)", {0, 1}, [](const Variable& x) { return squeeze(x); }, "a.squeeze()")};
}

Samples unsqueeze_samples() {
    return {detail::moved(
                "() at 0", {}, [](const Variable& x) { return unsqueeze(x, 0); }, "a.unsqueeze(0)"),
            detail::moved(
                "(2, 3) at 1", {2, 3}, [](const Variable& x) { return unsqueeze(x, 1); },
                "a.unsqueeze(1)"),
            detail::moved(
                "(2, 3) at -1", {2, 3}, [](const Variable& x) { return unsqueeze(x, -1); },
                "a.unsqueeze(-1)"),
            detail::moved(
                "(0, 3) at 0", {0, 3}, [](const Variable& x) { return unsqueeze(x, 0); },
                "a.unsqueeze(0)")};
}

Samples expand_samples() {
    return {detail::moved(
                "(2, 1) to (4, -1, 3)", {2, 1},
                [](const Variable& x) {
                    return expand(x, {4, -1, 3});
                },
                "a.expand(4, -1, 3)"),
            detail::moved(
                "(2, 3) to (-1, -1)", {2, 3},
                [](const Variable& x) {
                    return expand(x, {-1, -1});
                },
                "a.expand(-1, -1)"),
            detail::moved(
                "() to (2, 3)", {},
                [](const Variable& x) {
                    return expand(x, {2, 3});
                },
                "a.expand(2, 3)"),
            detail::moved(
                "(1, 3) to (0, -1)", {1, 3},
                [](const Variable& x) {
                    return expand(x, {0, -1});
                },
                "a.expand(0, -1)")};
}

Samples stack_samples() {
    return {detail::sample(
                "two of () at 0", spread({}, {-2, 2}, 1), spread({}, {-2, 2}, 2),
                [](const Variable& a, const Variable& b) {
                    return stack({a, b});
                },
                "torch.stack([a, b])"),
            detail::sample(
                "(2, 3) twice with another at 1", spread({2, 3}, {-2, 2}, 3),
                spread({2, 3}, {-2, 2}, 4),
                [](const Variable& a, const Variable& b) {
                    return stack({a, b, a}, 1);
                },
                "torch.stack([a, b, a], 1)"),
            detail::sample(
                "(2, 3) at -1", spread({2, 3}, {-2, 2}, 5), spread({2, 3}, {-2, 2}, 6),
                [](const Variable& a, const Variable& b) {
                    return stack({a, b}, -1);
                },
                "torch.stack([a, b], -1)"),
            detail::sample(
                "(0, 2) at 0", spread({0, 2}, {-2, 2}, 7), spread({0, 2}, {-2, 2}, 8),
                [](const Variable& a, const Variable& b) {
                    return stack({a, b});
                },
                "torch.stack([a, b])")};
}

Samples split_samples() {
    return {detail::moved(
                "(5, 2) by 2, first", {5, 2}, [](const Variable& x) { return split(x, 2)[0]; },
                "a.split(2)[0]"),
            detail::moved(
                "(5, 2) by 2, last", {5, 2}, [](const Variable& x) { return split(x, 2)[2]; },
                "a.split(2)[2]"),
            detail::moved(
                "(2, 5) into 1, 4, 0 along 1, middle", {2, 5},
                [](const Variable& x) {
                    return split(x, {1, 4, 0}, 1)[1];
                },
                "a.split([1, 4, 0], 1)[1]"),
            detail::moved(
                "(2, 5) into 1, 4, 0 along -1, last", {2, 5},
                [](const Variable& x) {
                    return split(x, {1, 4, 0}, -1)[2];
                },
                "a.split([1, 4, 0], -1)[2]"),
            detail::moved(
                "(0, 2) by 3", {0, 2}, [](const Variable& x) { return split(x, 3)[0]; },
                "a.split(3)[0]")};
}

Samples chunk_samples() {
    return {detail::moved(
                "(5, 2) in 3, last", {5, 2}, [](const Variable& x) { return chunk(x, 3)[2]; },
                "a.chunk(3)[2]"),
            detail::moved(
                "(2, 6) in 4 along 1: only 3, last", {2, 6},
                [](const Variable& x) { return chunk(x, 4, 1).back(); }, "a.chunk(4, 1)[2]"),
            detail::moved(
                "(2, 3) in 1", {2, 3}, [](const Variable& x) { return chunk(x, 1, -1)[0]; },
                "a.chunk(1, -1)[0]"),
            detail::moved(
                "(0, 2) in 2, last", {0, 2}, [](const Variable& x) { return chunk(x, 2)[1]; },
                "a.chunk(2)[1]")};
}

constexpr OpRow rows[] = {
    {.name = "squeeze",
     .forward = "y = x without axes of size 1",
     .backward = "gx = gy in the shape of x",
     .domain = "axes of size 1; a named axis of another size is refused (PyTorch leaves it)",
     .torch = "torch.squeeze",
     .samples = squeeze_samples},
    {.name = "unsqueeze",
     .forward = "y = x with an axis of size 1 put in",
     .backward = "gx = gy in the shape of x",
     .torch = "torch.unsqueeze",
     .samples = unsqueeze_samples},
    {.name = "expand",
     .forward = "y = x repeated to a shape, in which -1 keeps a size",
     .backward = "gx = sum_to(gy, shape of x)",
     .torch = "torch.Tensor.expand",
     .samples = expand_samples},
    {.name = "stack",
     .forward = "y = the inputs one after the other along a new axis",
     .backward = "gradient of each input = its part of gy",
     .torch = "torch.stack",
     .samples = stack_samples},
    {.name = "split",
     .forward = "piece i = x[start_i : start_i + size_i] along an axis",
     .backward = "gx = zeros with the gradients of the pieces where they were read",
     .torch = "torch.split",
     .records = "slice",
     .samples = split_samples},
    {.name = "chunk",
     .forward = "piece i = x[i k : (i + 1) k] along an axis, k = size / count rounded up",
     .backward = "gx = zeros with the gradients of the pieces where they were read",
     .domain = "may give fewer pieces than asked for, as PyTorch does",
     .torch = "torch.chunk",
     .records = "slice",
     .samples = chunk_samples},
};

}  // namespace

std::span<const OpRow> detail::axes_rows() { return rows; }

Variable squeeze(const Variable& x, const Axes& axes) {
    const Shape before = x.shape();
    return record(
        find(rows, "squeeze"), [&] { return squeeze(x.value(), axes); },
        [&] {
            return axes.all() ? Attributes{} : Attributes{{"axes", Shape(axes.values())}};
        },
        edge(x, [before](const auto& gy) { return reshape(gy, before); }));
}

Variable unsqueeze(const Variable& x, std::int64_t axis) {
    const Shape before = x.shape();
    return record(
        find(rows, "unsqueeze"), [&] { return unsqueeze(x.value(), axis); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(x, [before](const auto& gy) { return reshape(gy, before); }));
}

Variable expand(const Variable& x, const Shape& shape) {
    const Shape narrow = x.shape();
    return record(
        find(rows, "expand"), [&] { return expand(x.value(), shape); },
        [&] {
            return Attributes{{"shape", shape}};
        },
        edge(x, [narrow](const auto& gy) { return sum_to(gy, narrow); }));
}

Variable stack(std::span<const Variable> parts, std::int64_t axis) {
    std::vector<Tensor> values;
    values.reserve(parts.size());
    for (const Variable& part : parts) values.push_back(part.value());
    Tensor value = detail::computed(
        find(rows, "stack"), [&] { return stack(std::span<const Tensor>(values), axis); }, parts);
    const Shape one = values.front().shape();
    const int at = normalize_axis("stack", axis, value.shape());
    return record_many(
        find(rows, "stack"), std::move(value),
        [=] {
            return Attributes{{"axis", axis}};
        },
        parts,
        [at, one](std::size_t i, const auto& gy) {
            const auto place = static_cast<std::int64_t>(i);
            return reshape(slice(gy, at, {.start = place, .stop = place + 1}), one);
        });
}

Variable stack(std::initializer_list<Variable> parts, std::int64_t axis) {
    return stack(std::span<const Variable>(parts.begin(), parts.size()), axis);
}

std::vector<Variable> split(const Variable& x, std::int64_t size, std::int64_t axis) {
    const auto sizes = detail::computed(
        find(rows, "split"), [&] { return detail::split_sizes(x.shape(), size, axis); }, x);
    return detail::pieces(x, sizes, axis);
}

std::vector<Variable> split(const Variable& x, std::span<const std::int64_t> sizes,
                            std::int64_t axis) {
    const auto checked = detail::computed(
        find(rows, "split"), [&] { return detail::split_sizes(x.shape(), sizes, axis); }, x);
    return detail::pieces(x, checked, axis);
}

std::vector<Variable> split(const Variable& x, std::initializer_list<std::int64_t> sizes,
                            std::int64_t axis) {
    return split(x, std::span<const std::int64_t>(sizes.begin(), sizes.size()), axis);
}

std::vector<Variable> chunk(const Variable& x, std::int64_t count, std::int64_t axis) {
    const auto sizes = detail::computed(
        find(rows, "chunk"), [&] { return detail::chunk_sizes(x.shape(), count, axis); }, x);
    return detail::pieces(x, sizes, axis);
}

}  // namespace glassgrad
