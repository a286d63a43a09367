// Elements picked and put by index. Picking and adding are each other's adjoint, so that each is
// the derivative of the other at any order.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;

namespace {

template <class F>
OpSample of(std::string_view label, const Shape& shape, F f, std::string_view torch) {
    return detail::sample(label, spread(shape, {-2, 2}, 1), f, torch);
}
template <class F>
OpSample of(std::string_view label, const Shape& a, const Shape& b, F f, std::string_view torch) {
    return detail::sample(label, spread(a, {-2, 2}, 1), spread(b, {-2, 2}, 2), f, torch);
}

Tensor indices(const NestedList& values) { return tensor(values, i64); }
Tensor no_indices(const Shape& shape) { return zeros(shape, i64); }

Samples select_samples() {
    return {
        of(
            "(2, 3, 4), 1 of axis 1", {2, 3, 4}, [](const Variable& x) { return select(x, 1, 1); },
            "a.select(1, 1)"),
        of(
            "(2, 3), -1 of axis -1", {2, 3}, [](const Variable& x) { return select(x, -1, -1); },
            "a.select(-1, -1)"),
        of(
            "(3,), 0 of axis 0", {3}, [](const Variable& x) { return select(x, 0, 0); }, "a[0]"),
        of(
            "(2, 0), 1 of axis 0", {2, 0}, [](const Variable& x) { return select(x, 0, 1); },
            "a[1]")};
}

Samples index_samples() {
    return {of(
                "(4, 2) at (2, 3), repeated", {4, 2},
                [](const Variable& x) {
                    return index(x, indices({{0, 3, 0}, {2, 0, 3}}));
                },
                "a[torch.tensor([[0, 3, 0], [2, 0, 3]])]"),
            of(
                "(4,) at ()", {4}, [](const Variable& x) { return index(x, indices(2)); },
                "a[torch.tensor(2)]"),
            of(
                "(3, 2, 2) at (2,)", {3, 2, 2},
                [](const Variable& x) {
                    return index(x, indices({2, 0}));
                },
                "a[torch.tensor([2, 0])]"),
            of(
                "(3, 2) at (0, 2)", {3, 2},
                [](const Variable& x) {
                    return index(x, no_indices({0, 2}));
                },
                "a[torch.zeros(0, 2, dtype=torch.int64)]")};
}

Samples index_select_samples() {
    return {of(
                "(2, 4, 3) along 1, repeated", {2, 4, 3},
                [](const Variable& x) {
                    return index_select(x, 1, indices({3, 0, 3, 3, 1}));
                },
                "a.index_select(1, torch.tensor([3, 0, 3, 3, 1]))"),
            of(
                "(2, 3) along -1", {2, 3},
                [](const Variable& x) { return index_select(x, -1, indices({2})); },
                "a.index_select(-1, torch.tensor([2]))"),
            of(
                "(3, 2) along 0, nothing", {3, 2},
                [](const Variable& x) { return index_select(x, 0, no_indices({0})); },
                "a.index_select(0, torch.zeros(0, dtype=torch.int64))"),
            of(
                "(0, 2) along 1", {0, 2},
                [](const Variable& x) {
                    return index_select(x, 1, indices({1, 1}));
                },
                "a.index_select(1, torch.tensor([1, 1]))")};
}

Samples index_add_samples() {
    return {of(
                "(4, 2) along 0, repeated", {4, 2}, {3, 2},
                [](const Variable& x, const Variable& src) {
                    return index_add(x, 0, indices({1, 3, 1}), src);
                },
                "a.index_add(0, torch.tensor([1, 3, 1]), b)"),
            of(
                "(2, 3, 2) along 1", {2, 3, 2}, {2, 2, 2},
                [](const Variable& x, const Variable& src) {
                    return index_add(x, 1, indices({2, 2}), src);
                },
                "a.index_add(1, torch.tensor([2, 2]), b)"),
            of(
                "(3, 2) along 0, nothing", {3, 2}, {0, 2},
                [](const Variable& x, const Variable& src) {
                    return index_add(x, 0, no_indices({0}), src);
                },
                "a.index_add(0, torch.zeros(0, dtype=torch.int64), b)")};
}

Samples gather_samples() {
    return {of(
                "(3, 4) along 1, repeated", {3, 4},
                [](const Variable& x) {
                    return gather(x, 1, indices({{0, 0}, {3, 1}, {2, 2}}));
                },
                "a.gather(1, torch.tensor([[0, 0], [3, 1], [2, 2]]))"),
            of(
                "(3, 4) along 0, index (5, 2)", {3, 4},
                [](const Variable& x) {
                    return gather(x, 0, indices({{0, 2}, {1, 2}, {0, 1}, {2, 2}, {0, 0}}));
                },
                "a.gather(0, torch.tensor([[0, 2], [1, 2], [0, 1], [2, 2], [0, 0]]))"),
            of(
                "(2, 2, 3) along -1, index (1, 2, 1)", {2, 2, 3},
                [](const Variable& x) {
                    return gather(x, -1, indices({{{2}, {0}}}));
                },
                "a.gather(-1, torch.tensor([[[2], [0]]]))"),
            of(
                "(3, 4) along 1, nothing", {3, 4},
                [](const Variable& x) {
                    return gather(x, 1, no_indices({3, 0}));
                },
                "a.gather(1, torch.zeros(3, 0, dtype=torch.int64))")};
}

Samples scatter_add_samples() {
    return {of(
                "(3, 4) along 1 from (2, 2)", {3, 4}, {2, 2},
                [](const Variable& x, const Variable& src) {
                    return scatter_add(x, 1, indices({{0, 3}, {3, 1}}), src);
                },
                "a.scatter_add(1, torch.tensor([[0, 3], [3, 1]]), b)"),
            of(
                "(3, 2) along 0, repeated", {3, 2}, {4, 2},
                [](const Variable& x, const Variable& src) {
                    return scatter_add(x, 0, indices({{0, 2}, {0, 2}, {1, 2}, {0, 0}}), src);
                },
                "a.scatter_add(0, torch.tensor([[0, 2], [0, 2], [1, 2], [0, 0]]), b)"),
            of(
                "(2, 3) along -1, one a row", {2, 3}, {2, 1},
                [](const Variable& x, const Variable& src) {
                    return scatter_add(x, -1, indices({{2}, {2}}), src);
                },
                "a.scatter_add(-1, torch.tensor([[2], [2]]), b)"),
            of(
                "(3, 4) along 1, nothing", {3, 4}, {0, 4},
                [](const Variable& x, const Variable& src) {
                    return scatter_add(x, 1, no_indices({0, 4}), src);
                },
                "a.scatter_add(1, torch.zeros(0, 4, dtype=torch.int64), b)")};
}

Samples embedding_samples() {
    return {of(
                "(4, 2), ids (4,), repeated", {4, 2},
                [](const Variable& weight) {
                    return embedding(weight, indices({0, 0, 2, 0}));
                },
                "F.embedding(torch.tensor([0, 0, 2, 0]), a)"),
            of(
                "(5, 3), ids (2, 3)", {5, 3},
                [](const Variable& weight) {
                    return embedding(weight, indices({{4, 1, 1}, {0, 4, 3}}));
                },
                "F.embedding(torch.tensor([[4, 1, 1], [0, 4, 3]]), a)"),
            of(
                "(4, 2), one id", {4, 2},
                [](const Variable& weight) { return embedding(weight, indices(3)); },
                "F.embedding(torch.tensor(3), a)"),
            of(
                "(4, 2), no ids", {4, 2},
                [](const Variable& weight) {
                    return embedding(weight, no_indices({2, 0}));
                },
                "a[torch.zeros(2, 0, dtype=torch.int64)]")};
}

constexpr OpRow rows[] = {
    {.name = "select",
     .forward = "y = x[..., index, ...] along an axis, which goes",
     .backward = "gx = zeros with gy at the index",
     .domain = "-size <= index < size",
     .torch = "torch.select",
     .samples = select_samples},
    {.name = "index",
     .forward = "y = x[indices] along the first axis",
     .backward = "gx = zeros, to whose part i each part of gy is added that was read from i",
     .domain = "0 <= indices < size; negative ones are refused (NumPy counts them from the end)",
     .inputs = "x indices",
     .torch = "x[indices]",
     .samples = index_samples},
    {.name = "index_select",
     .forward = "y = the parts of x at indices along an axis",
     .backward = "gx = zeros, to whose part i each part of gy is added that was read from i",
     .domain = "0 <= indices < size",
     .inputs = "x indices",
     .torch = "torch.index_select",
     .samples = index_select_samples},
    {.name = "index_add",
     .forward = "y = x, to whose part indices[i] part i of src is added, along an axis",
     .backward = "gx = gy; gsrc = the parts of gy at indices",
     .domain = "0 <= indices < size",
     .inputs = "x indices src",
     .torch = "torch.index_add",
     .samples = index_add_samples},
    {.name = "gather",
     .forward = "y[..., i, ...] = x[..., index[..., i, ...], ...] along an axis",
     .backward = "gx = zeros, to which each element of gy is added where it was read",
     .domain = "0 <= index < size; negative ones are refused, as in PyTorch",
     .inputs = "x index",
     .torch = "torch.gather",
     .samples = gather_samples},
    {.name = "scatter_add",
     .forward = "y = x, to whose [..., index[..., i, ...], ...] src[..., i, ...] is added",
     .backward = "gx = gy; gsrc[..., i, ...] = gy[..., index[..., i, ...], ...]",
     .domain = "0 <= index < size; src has the shape of the index",
     .inputs = "x index src",
     .torch = "torch.scatter_add",
     .samples = scatter_add_samples},
    {.name = "embedding",
     .forward = "y[..., :] = weight[ids[...], :]",
     .backward = "gweight = zeros, to whose row i each row of gy is added that was read from i",
     .domain = "0 <= ids < rows",
     .inputs = "weight ids",
     .torch = "torch.nn.functional.embedding",
     .samples = embedding_samples},
};

/// For the indices, which no gradient is ever wanted for: they are i64.
constexpr auto nothing = [](const auto& gy) { return gy; };

/// The gradient of a table whose parts `ids`, along its first axis, became `gy`.
template <class V>
V add_at(const V& gy, const Shape& table, const Tensor& ids) {
    const std::int64_t count = ids.numel();
    Shape parts = table;
    parts[0] = count;
    return index_add(V(zeros(table, gy.dtype())), 0, reshape(ids, {count}), reshape(gy, parts));
}

}  // namespace

std::span<const OpRow> detail::index_rows() { return rows; }

Variable select(const Variable& x, std::int64_t axis, std::int64_t index) {
    const Shape shape = x.shape();
    Tensor value = detail::computed(
        find(rows, "select"), [&] { return select(x.value(), axis, index); }, x);
    const int at = normalize_axis("select", axis, shape);
    const std::int64_t start = index < 0 ? index + shape[at] : index;
    return record(
        find(rows, "select"), std::move(value),
        [=] {
            return Attributes{{"axis", axis}, {"index", index}};
        },
        edge(x, [shape, at, start](const auto& gy) {
            return slice_scatter(unsqueeze(gy, at), shape, at, {.start = start, .stop = start + 1});
        }));
}

Variable index(const Variable& x, const Variable& indices) {
    const Shape shape = x.shape();
    return record(
        find(rows, "index"), [&] { return index(x.value(), indices.value()); },
        edge(
            x, [shape](const auto& gy, const auto& at) { return add_at(gy, shape, tensor_of(at)); },
            indices),
        edge(indices, nothing));
}

Variable index_select(const Variable& x, std::int64_t axis, const Variable& indices) {
    const Shape shape = x.shape();
    return record(
        find(rows, "index_select"), [&] { return index_select(x.value(), axis, indices.value()); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(
            x,
            [shape, axis](const auto& gy, const auto& at) {
                using V = std::remove_cvref_t<decltype(gy)>;
                return index_add(V(zeros(shape, gy.dtype())), axis, at, gy);
            },
            indices),
        edge(indices, nothing));
}

Variable index_add(const Variable& x, std::int64_t axis, const Variable& indices,
                   const Variable& src) {
    return record(
        find(rows, "index_add"),
        [&] { return index_add(x.value(), axis, indices.value(), src.value()); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(x, nothing), edge(indices, nothing),
        edge(
            src, [axis](const auto& gy, const auto& at) { return index_select(gy, axis, at); },
            indices));
}

Variable gather(const Variable& x, std::int64_t axis, const Variable& index) {
    const Shape shape = x.shape();
    return record(
        find(rows, "gather"), [&] { return gather(x.value(), axis, index.value()); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(
            x,
            [shape, axis](const auto& gy, const auto& at) {
                using V = std::remove_cvref_t<decltype(gy)>;
                return scatter_add(V(zeros(shape, gy.dtype())), axis, at, gy);
            },
            index),
        edge(index, nothing));
}

Variable scatter_add(const Variable& x, std::int64_t axis, const Variable& index,
                     const Variable& src) {
    return record(
        find(rows, "scatter_add"),
        [&] { return scatter_add(x.value(), axis, index.value(), src.value()); },
        [=] {
            return Attributes{{"axis", axis}};
        },
        edge(x, nothing), edge(index, nothing),
        edge(
            src, [axis](const auto& gy, const auto& at) { return gather(gy, axis, at); }, index));
}

Variable embedding(const Variable& weight, const Variable& ids) {
    const Shape shape = weight.shape();
    return record(
        find(rows, "embedding"), [&] { return embedding(weight.value(), ids.value()); },
        edge(
            weight,
            [shape](const auto& gy, const auto& at) { return add_at(gy, shape, tensor_of(at)); },
            ids),
        edge(ids, nothing));
}

}  // namespace glassgrad
