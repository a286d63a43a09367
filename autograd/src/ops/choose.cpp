// Choice between elements: by a condition, by size, by bounds. What is not chosen gets a gradient
// of exactly 0, whatever arrives.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::checkerboard;
using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;
using detail::two_sided;

namespace {

using Binary = Variable (*)(const Variable&, const Variable&);

/// Operands far enough apart, now one the larger, now the other.
Samples apart(Binary f, std::string_view torch) {
    Samples samples;
    const auto add = [&](const Tensor& a, const Tensor& b) {
        samples.push_back(detail::sample(to_string(a.shape()) + " with " + to_string(b.shape()) +
                                             ", " + std::to_string(samples.size()),
                                         a, b, f, torch));
    };
    add(spread({}, {1, 2}, 1), spread({}, {-2, 0}, 2));
    add(spread({}, {-2, 0}, 3), spread({}, {1, 2}, 4));
    add(two_sided({2, 3}, {0.5, 2}, 5), spread({2, 3}, {-0.1, 0.1}, 6));
    add(two_sided({2, 3}, {0.5, 2}, 7), spread({3}, {-0.1, 0.1}, 8));
    add(spread({2, 1}, {-0.1, 0.1}, 9), two_sided({1, 3}, {0.5, 2}, 10));
    add(two_sided({3}, {0.5, 2}, 11), spread({}, {-0.1, 0.1}, 12));
    add(spread({0, 3}, {-2, 2}, 13), spread({3}, {-2, 2}, 14));
    return samples;
}

OpSample clamped(std::string_view label, const Tensor& x, const ClampOptions& options,
                 std::string_view torch) {
    return detail::sample(
        label, x, [options](const Variable& v) { return clamp(v, options); }, torch);
}

constexpr OpRow rows[] = {
    {.name = "where",
     .forward = "y = a where condition, else b",
     .backward = "ga = gy where condition, else 0; gb = 0 where condition, else gy",
     .inputs = "condition a b",
     .torch = "torch.where",
     .samples =
         [] {
             return detail::binary_samples(
                 [](const Variable& a, const Variable& b) {
                     return where(checkerboard(broadcast_shapes("where", a.shape(), b.shape())), a,
                                  b);
                 },
                 {-2, 2}, {-2, 2},
                 "torch.where(torch.arange((a + b).numel()).reshape((a + b).shape) % 3 != 1, a, "
                 "b)");
         }},
    {.name = "masked_fill",
     .forward = "y = value where mask, else x",
     .backward = "gx = 0 where mask, else gy",
     .inputs = "x mask",
     .torch = "torch.masked_fill",
     .samples =
         [] {
             const std::string torch =
                 "a.masked_fill(~(" + std::string(detail::torch_checkerboard) + "), -1.5)";
             Samples samples;
             for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 3}, Shape{0, 3}}) {
                 samples.push_back(detail::sample(
                     to_string(shape), spread(shape, {-2, 2}, 1),
                     [](const Variable& x) {
                         return masked_fill(x, logical_not(checkerboard(x.shape())), -1.5);
                     },
                     torch));
             }
             samples.push_back(detail::sample(
                 "a mask of another shape", spread({3, 1}, {-2, 2}, 2),
                 [](const Variable& x) {
                     return masked_fill(x, checkerboard({2, 1, 4}), 3);
                 },
                 "a.masked_fill(torch.arange(8).reshape(2, 1, 4) % 3 != 1, 3.0)"));
             return samples;
         }},
    {.name = "maximum",
     .forward = "y = larger of a and b",
     .backward = "ga = gy where a > b, gy / 2 where a = b, else 0; gb = gy - ga",
     .domain = "NaN if either is NaN, which gets gy (a if both are)",
     .inputs = "a b",
     .torch = "torch.maximum",
     .samples = [] { return apart(maximum, "torch.maximum(a, b)"); }},
    {.name = "minimum",
     .forward = "y = smaller of a and b",
     .backward = "ga = gy where a < b, gy / 2 where a = b, else 0; gb = gy - ga",
     .domain = "NaN if either is NaN, which gets gy (a if both are)",
     .inputs = "a b",
     .torch = "torch.minimum",
     .samples = [] { return apart(minimum, "torch.minimum(a, b)"); }},
    {.name = "clamp",
     .forward = "y = min where x < min, max where x > max, else x",
     .backward = "gx = gy where min <= x <= max, else 0",
     .domain = "NaN stays NaN, with gradient 0",
     .torch = "torch.clamp",
     .samples =
         [] {
             const Tensor sides = two_sided({2, 3}, {0.5, 2}, 2);
             return Samples{
                 clamped("rank 0", spread({}, {-0.5, 0.5}, 1), {.min = -1, .max = 1},
                         "torch.clamp(a, min=-1, max=1)"),
                 clamped("both bounds", spread({7}, {-2, 2}, 3), {.min = -1.05, .max = 0.95},
                         "torch.clamp(a, min=-1.05, max=0.95)"),
                 clamped("min", sides, {.min = 0.1}, "torch.clamp(a, min=0.1)"),
                 clamped("max", sides, {.max = 0.1}, "torch.clamp(a, max=0.1)"),
                 clamped("no elements", spread({0, 3}, {-2, 2}, 4), {.min = 0},
                         "torch.clamp(a, min=0)")};
         }},
};

/// Where the larger (or smaller) of two comes from a alone; a NaN wins.
Tensor first_wins(const Tensor& a, const Tensor& b, bool larger) {
    return logical_or(larger ? greater(a, b) : less(a, b), not_equal(a, a));
}

Variable extreme(const OpRow& row, const Variable& a, const Variable& b, bool larger) {
    const auto value = [&] {
        return larger ? maximum(a.value(), b.value()) : minimum(a.value(), b.value());
    };
    const auto of_a = [larger](const auto& gy, const auto& x, const auto& y) {
        const Tensor& left = tensor_of(x);
        const Tensor& right = tensor_of(y);
        const auto ties = where(equal(left, right), scale(gy, 0.5), zeros({}, gy.dtype()));
        return where(first_wins(left, right, larger), gy, ties);
    };
    const auto of_b = [larger](const auto& gy, const auto& x, const auto& y) {
        const Tensor& left = tensor_of(x);
        const Tensor& right = tensor_of(y);
        const auto rest = where(equal(left, right), scale(gy, 0.5), gy);
        return where(first_wins(left, right, larger), zeros({}, gy.dtype()), rest);
    };
    return record(row, value, edge(a, of_a, a, b), edge(b, of_b, a, b));
}

}  // namespace

std::span<const OpRow> detail::choose_rows() { return rows; }

Variable where(const Variable& condition, const Variable& a, const Variable& b) {
    return record(
        find(rows, "where"), [&] { return where(condition.value(), a.value(), b.value()); },
        detail::constant(condition),
        edge(
            a,
            [](const auto& gy, const auto& chosen) {
                return where(tensor_of(chosen), gy, zeros({}, gy.dtype()));
            },
            condition),
        edge(
            b,
            [](const auto& gy, const auto& chosen) {
                return where(tensor_of(chosen), zeros({}, gy.dtype()), gy);
            },
            condition));
}

Variable masked_fill(const Variable& x, const Variable& mask, double value) {
    return record(
        find(rows, "masked_fill"), [&] { return masked_fill(x.value(), mask.value(), value); },
        [=] {
            return Attributes{{"value", value}};
        },
        edge(
            x,
            [](const auto& gy, const auto& filled) {
                return where(tensor_of(filled), zeros({}, gy.dtype()), gy);
            },
            mask),
        detail::constant(mask));
}

Variable maximum(const Variable& a, const Variable& b) {
    return extreme(find(rows, "maximum"), a, b, true);
}

Variable minimum(const Variable& a, const Variable& b) {
    return extreme(find(rows, "minimum"), a, b, false);
}

Variable clamp(const Variable& x, const ClampOptions& options) {
    return record(
        find(rows, "clamp"), [&] { return clamp(x.value(), options); },
        [&] {
            Attributes list;
            if (options.min) list.emplace_back("min", *options.min);
            if (options.max) list.emplace_back("max", *options.max);
            return list;
        },
        // Inside the bounds, and at them, the result is x.
        edge(
            x,
            [](const auto& gy, const auto& y, const auto& in) {
                return where(equal(tensor_of(in), tensor_of(y)), gy, zeros({}, gy.dtype()));
            },
            result, x));
}

}  // namespace glassgrad
