// Functions that put elements elsewhere or leave some out: pad, flip, roll, triangles, repeat.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples pad_samples() {
    return {detail::moved(
                "(2, 3) by (1, 2) and (0, 1)", {2, 3},
                [](const Variable& x) {
                    return pad(x, {{1, 2}, {0, 1}});
                },
                "F.pad(a, (0, 1, 1, 2))"),
            detail::moved(
                "(2, 1, 3) with 1.5", {2, 1, 3},
                [](const Variable& x) {
                    return pad(x, {{0, 0}, {2, 0}, {1, 1}}, {.value = 1.5});
                },
                "F.pad(a, (1, 1, 2, 0), value=1.5)"),
            detail::moved(
                "()", {}, [](const Variable& x) { return pad(x, {}); }, "a * 1"),
            detail::moved(
                "(0, 2) by (2, 1) and (1, 0)", {0, 2},
                [](const Variable& x) {
                    return pad(x, {{2, 1}, {1, 0}});
                },
                "F.pad(a, (1, 0, 2, 1))")};
}

Samples flip_samples() {
    return {
        detail::moved(
            "(2, 3, 4), all", {2, 3, 4}, [](const Variable& x) { return flip(x); },
            "a.flip(0, 1, 2)"),
        detail::moved(
            "(2, 3, 4), axes 0 and -1", {2, 3, 4},
            [](const Variable& x) {
                return flip(x, {0, -1});
            },
            "a.flip(0, -1)"),
        detail::moved(
            "(2, 3), axis 1", {2, 3}, [](const Variable& x) { return flip(x, 1); }, "a.flip(1)"),
        detail::moved(
            "()", {}, [](const Variable& x) { return flip(x); }, "a * 1"),
        detail::moved(
            "(0, 3)", {0, 3}, [](const Variable& x) { return flip(x); }, "a.flip(0, 1)")};
}

Samples roll_samples() {
    return {detail::moved(
                "(2, 5) by 2 along 1", {2, 5}, [](const Variable& x) { return roll(x, 2, 1); },
                "a.roll(2, 1)"),
            detail::moved(
                "(2, 5) by -7 along -1", {2, 5}, [](const Variable& x) { return roll(x, -7, -1); },
                "a.roll(-7, -1)"),
            detail::moved(
                "(3, 2, 4) by 1 and -1 along 0 and 2", {3, 2, 4},
                [](const Variable& x) {
                    return roll(x, {1, -1}, {0, 2});
                },
                "a.roll((1, -1), (0, 2))"),
            detail::moved(
                "(5,) by 1 and 2 along the same axis", {5},
                [](const Variable& x) {
                    return roll(x, {1, 2}, {0, 0});
                },
                "a.roll((1, 2), (0, 0))"),
            detail::moved(
                "()", {}, [](const Variable& x) { return roll(x, {}, {}); }, "a * 1"),
            detail::moved(
                "(0, 3) by 1 along 0", {0, 3}, [](const Variable& x) { return roll(x, 1, 0); },
                "a.roll(1, 0)")};
}

Samples triangle_samples(Variable (*f)(const Variable&, std::int64_t), std::string_view name,
                         std::int64_t everything) {
    Samples samples;
    for (const Shape& shape : {Shape{3, 4}, Shape{4, 3}, Shape{2, 3, 3}, Shape{0, 3}}) {
        for (const std::int64_t diagonal :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, everything}) {
            const std::string call = std::string(name) + "(a, " + std::to_string(diagonal) + ")";
            samples.push_back(detail::moved(
                to_string(shape) + ", diagonal " + std::to_string(diagonal), shape,
                [=](const Variable& x) { return f(x, diagonal); }, call));
        }
    }
    return samples;
}

Samples repeat_samples() {
    return {detail::moved(
                "(2, 3) by (2, 1)", {2, 3},
                [](const Variable& x) {
                    return repeat(x, {2, 1});
                },
                "a.repeat(2, 1)"),
            detail::moved(
                "(2, 3) by (2, 3, 2)", {2, 3},
                [](const Variable& x) {
                    return repeat(x, {2, 3, 2});
                },
                "a.repeat(2, 3, 2)"),
            detail::moved(
                "() by ()", {}, [](const Variable& x) { return repeat(x, {}); }, "a * 1"),
            detail::moved(
                "() by (3)", {}, [](const Variable& x) { return repeat(x, {3}); }, "a.repeat(3)"),
            detail::moved(
                "(2, 3) by (0, 2)", {2, 3},
                [](const Variable& x) {
                    return repeat(x, {0, 2});
                },
                "a.repeat(0, 2)"),
            detail::moved(
                "(0, 3) by (2, 2)", {0, 3},
                [](const Variable& x) {
                    return repeat(x, {2, 2});
                },
                "a.repeat(2, 2)")};
}

constexpr OpRow rows[] = {
    {.name = "pad",
     .forward = "y = x with a constant before and after, along each axis",
     .backward = "gx = the part of gy that x became",
     .domain = "widths >= 0, the first axis first (F.pad: the last axis first)",
     .torch = "torch.nn.functional.pad",
     .samples = pad_samples},
    {.name = "flip",
     .forward = "y = x[::-1] along axes",
     .backward = "gx = gy[::-1] along the same axes",
     .torch = "torch.flip",
     .samples = flip_samples},
    {.name = "roll",
     .forward = "y[(i + shift) mod size] = x[i] along axes",
     .backward = "gx = gy rolled by -shift",
     .torch = "torch.roll",
     .samples = roll_samples},
    {.name = "tril",
     .forward = "y[i, j] = x[i, j] where j <= i + diagonal, else 0",
     .backward = "gx[i, j] = gy[i, j] where j <= i + diagonal, else 0",
     .torch = "torch.tril",
     .samples = [] { return triangle_samples(tril, "torch.tril", 7); }},
    {.name = "triu",
     .forward = "y[i, j] = x[i, j] where j >= i + diagonal, else 0",
     .backward = "gx[i, j] = gy[i, j] where j >= i + diagonal, else 0",
     .torch = "torch.triu",
     .samples = [] { return triangle_samples(triu, "torch.triu", -7); }},
    {.name = "repeat",
     .forward = "y = counts[i] copies of x along each axis i",
     .backward = "gx = sum of gy over the copies",
     .torch = "torch.Tensor.repeat",
     .samples = repeat_samples},
};

/// The part of gy that lies `widths` from its edges.
template <class V>
V without_edges(const V& gy, const std::vector<PadWidth>& widths, const Shape& shape) {
    V part = gy;
    for (std::size_t i = 0; i < widths.size(); ++i) {
        if (widths[i].before == 0 && widths[i].after == 0) continue;
        const std::int64_t start = widths[i].before;
        part = slice(part, static_cast<std::int64_t>(i),
                     {.start = start, .stop = start + shape[static_cast<int>(i)]});
    }
    return part;
}

/// Sums over the copies that `repeat` made of a tensor of `shape`.
template <class V>
V sum_of_copies(const V& gy, const Shape& counts, const Shape& shape) {
    const int lead = counts.rank() - shape.rank();
    Shape current = gy.shape();
    V total = gy;
    for (int i = 0; i < counts.rank(); ++i) {
        if (counts[i] == 1) continue;
        // Axes before it, copies, the rest: a view of rank 3.
        std::int64_t outer = 1;
        for (int k = 0; k < i; ++k) outer *= current[k];
        current[i] = i < lead ? 1 : shape[i - lead];
        std::int64_t inner = 1;
        for (int k = i; k < current.rank(); ++k) inner *= current[k];
        total = reshape(sum(reshape(total, {outer, counts[i], inner}), {.axes = {1}}), current);
    }
    return reshape(total, shape);
}

}  // namespace

std::span<const OpRow> detail::rearrange_rows() { return rows; }

Variable pad(const Variable& x, std::span<const PadWidth> widths, const PadOptions& options) {
    const Shape shape = x.shape();
    const std::vector<PadWidth> list(widths.begin(), widths.end());
    return record(
        find(rows, "pad"), [&] { return pad(x.value(), widths, options); },
        [&] {
            Shape before;
            Shape after;
            for (const PadWidth& width : list) {
                before.push_back(width.before);
                after.push_back(width.after);
            }
            return Attributes{{"before", before}, {"after", after}, {"value", options.value}};
        },
        edge(x, [list, shape](const auto& gy) { return without_edges(gy, list, shape); }));
}

Variable pad(const Variable& x, std::initializer_list<PadWidth> widths, const PadOptions& options) {
    return pad(x, std::span<const PadWidth>(widths.begin(), widths.size()), options);
}

Variable flip(const Variable& x, const Axes& axes) {
    return record(
        find(rows, "flip"), [&] { return flip(x.value(), axes); },
        [&] {
            return axes.all() ? Attributes{} : Attributes{{"axes", Shape(axes.values())}};
        },
        edge(x, [axes](const auto& gy) { return flip(gy, axes); }));
}

Variable roll(const Variable& x, std::span<const std::int64_t> shifts,
              std::span<const std::int64_t> axes) {
    Tensor value = roll(x.value(), shifts, axes);
    const std::vector<std::int64_t> along(axes.begin(), axes.end());
    std::vector<std::int64_t> back;
    for (std::size_t i = 0; i < along.size(); ++i) {
        // Within the size first: the smallest i64 has no opposite.
        const std::int64_t size = x.size(along[i]);
        back.push_back(size == 0 ? 0 : -(shifts[i] % size));
    }
    return record(
        find(rows, "roll"), std::move(value),
        [&] {
            Attributes list;
            if (shifts.size() <= max_rank) {
                list = {{"shifts", Shape(shifts)}, {"axes", Shape(axes)}};
            }
            return list;
        },
        edge(x, [back, along](const auto& gy) {
            return roll(gy, std::span<const std::int64_t>(back),
                        std::span<const std::int64_t>(along));
        }));
}

Variable roll(const Variable& x, std::initializer_list<std::int64_t> shifts,
              std::initializer_list<std::int64_t> axes) {
    return roll(x, std::span<const std::int64_t>(shifts.begin(), shifts.size()),
                std::span<const std::int64_t>(axes.begin(), axes.size()));
}

Variable roll(const Variable& x, std::int64_t shift, std::int64_t axis) {
    return roll(x, {shift}, {axis});
}

Variable tril(const Variable& x, std::int64_t diagonal) {
    return record(
        find(rows, "tril"), [&] { return tril(x.value(), diagonal); },
        [=] {
            return Attributes{{"diagonal", diagonal}};
        },
        edge(x, [diagonal](const auto& gy) { return tril(gy, diagonal); }));
}

Variable triu(const Variable& x, std::int64_t diagonal) {
    return record(
        find(rows, "triu"), [&] { return triu(x.value(), diagonal); },
        [=] {
            return Attributes{{"diagonal", diagonal}};
        },
        edge(x, [diagonal](const auto& gy) { return triu(gy, diagonal); }));
}

Variable repeat(const Variable& x, const Shape& counts) {
    const Shape shape = x.shape();
    return record(
        find(rows, "repeat"), [&] { return repeat(x.value(), counts); },
        [&] {
            return Attributes{{"counts", counts}};
        },
        edge(x, [counts, shape](const auto& gy) { return sum_of_copies(gy, counts, shape); }));
}

}  // namespace glassgrad
