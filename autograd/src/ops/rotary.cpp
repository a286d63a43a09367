// Rotary positions.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "family.hpp"

#include <string>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

std::string torch_call(RotaryPairing pairing) {
    const bool halves = pairing == RotaryPairing::halves;
    const std::string first = halves ? "a[..., :a.shape[-1] // 2]" : "a[..., 0::2]";
    const std::string second = halves ? "a[..., a.shape[-1] // 2:]" : "a[..., 1::2]";
    const std::string y1 = first + " * b - " + second + " * c";
    const std::string y2 = second + " * b + " + first + " * c";
    return halves ? "torch.cat([" + y1 + ", " + y2 + "], -1)"
                  : "torch.stack([" + y1 + ", " + y2 + "], -1).flatten(-2)";
}

Samples rotary_samples() {
    Samples samples;
    const auto add = [&](const Shape& x, const Shape& table, RotaryPairing pairing) {
        const bool halves = pairing == RotaryPairing::halves;
        samples.push_back(detail::sample(
            to_string(x) + " by " + to_string(table) + (halves ? ", halves" : ""),
            spread(x, {-2, 2}, 1), spread(table, {-1, 1}, 2), spread(table, {-1, 1}, 3),
            [pairing](const Variable& a, const Variable& cos, const Variable& sin) {
                return rotary(a, cos, sin, pairing);
            },
            torch_call(pairing)));
    };
    for (const RotaryPairing pairing : {RotaryPairing::neighbours, RotaryPairing::halves}) {
        add({6}, {3}, pairing);
        add({2, 3, 4}, {3, 2}, pairing);
        add({2, 5, 3, 4}, {2, 1, 3, 2}, pairing);
        add({0, 3, 4}, {3, 2}, pairing);
    }
    add({2, 3, 0}, {3, 0}, RotaryPairing::halves);
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "rotary",
     .forward = "y = (a cos - b sin, b cos + a sin) for each pair (a, b) of x",
     .backward = "gx = rotary(gy, cos, -sin); gcos = gy·x, gsin = gy·(-b, a), summed over a pair",
     .domain = "pairs are neighbours (2i, 2i + 1) or, asked for, halves (i, i + width / 2)",
     .samples = rotary_samples},
};

/// The pairs of x, whose last axis becomes the two axes of pairs, added up.
template <class V>
V sum_pairs(const V& x, RotaryPairing pairing) {
    const bool halves = pairing == RotaryPairing::halves;
    Shape shape = x.shape();
    const std::int64_t pairs = shape.back() / 2;
    shape[shape.rank() - 1] = halves ? 2 : pairs;
    shape.push_back(halves ? pairs : 2);
    return sum(reshape(x, shape), {.axes = halves ? -2 : -1});
}

}  // namespace

std::span<const OpRow> detail::rotary_rows() { return rows; }

Variable rotary(const Variable& x, const Variable& cos, const Variable& sin,
                RotaryPairing pairing) {
    const auto to_x = [pairing](const auto& gy, const auto& c, const auto& s) {
        return rotary(gy, c, neg(s), pairing);
    };
    const auto to_cos = [pairing](const auto& gy, const auto& in) {
        return sum_pairs(gy * in, pairing);
    };
    const auto to_sin = [pairing](const auto& gy, const auto& in) {
        using V = std::remove_cvref_t<decltype(gy)>;
        const Shape pairs{in.shape().back() / 2};
        const V quarter =
            rotary(in, V(zeros(pairs, in.dtype())), V(ones(pairs, in.dtype())), pairing);
        return sum_pairs(gy * quarter, pairing);
    };
    return record(
        find(rows, "rotary"), [&] { return rotary(x.value(), cos.value(), sin.value(), pairing); },
        [=] {
            return Attributes{{"halves", pairing == RotaryPairing::halves}};
        },
        edge(x, to_x, cos, sin), edge(cos, to_cos, x), edge(sin, to_sin, x));
}

}  // namespace glassgrad
