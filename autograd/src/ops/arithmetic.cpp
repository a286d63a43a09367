// Arithmetic of two Variables, or of one and a number.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

#include <cmath>

namespace glassgrad {

using detail::binary_samples;
using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;

namespace {

using Binary = Variable (*)(const Variable&, const Variable&);

constexpr OpRow rows[] = {
    {.name = "add",
     .forward = "y = a + b",
     .backward = "ga = gy; gb = gy",
     .torch = "torch.add",
     .samples =
         [] {
             Samples samples = binary_samples(Binary(add), {-2, 2}, {-2, 2}, "a + b");
             samples.push_back(detail::sample(
                 "with a number", spread({2, 3}, {-2, 2}, 1),
                 [](const Variable& x) { return x + 1.5; }, "a + 1.5"));
             return samples;
         }},
    {.name = "sub",
     .forward = "y = a - b",
     .backward = "ga = gy; gb = -gy",
     .torch = "torch.sub",
     .samples =
         [] {
             Samples samples = binary_samples(Binary(sub), {-2, 2}, {-2, 2}, "a - b");
             samples.push_back(detail::sample(
                 "a number less x", spread({2, 3}, {-2, 2}, 1),
                 [](const Variable& x) { return 1.5 - x; }, "1.5 - a"));
             return samples;
         }},
    {.name = "mul",
     .forward = "y = a b, element by element",
     .backward = "ga = gy b; gb = gy a",
     .torch = "torch.mul",
     .samples =
         [] {
             return binary_samples(Binary(mul), {-2, 2}, {-2, 2}, "a * b");
         }},
    {.name = "div",
     .forward = "y = a / b",
     .backward = "ga = gy / b; gb = -gy y / b",
     .domain = "b != 0; inf or NaN at 0",
     .torch = "torch.div",
     .samples =
         [] {
             Samples samples = binary_samples(Binary(div), {-2, 2}, {0.5, 2}, "a / b");
             samples.push_back(detail::sample(
                 "by a number", spread({2, 3}, {-2, 2}, 1),
                 [](const Variable& x) { return x / 1.5; }, "a / 1.5"));
             samples.push_back(detail::sample(
                 "a number by x", spread({2, 3}, {0.5, 2}, 1),
                 [](const Variable& x) { return 1.5 / x; }, "1.5 / a"));
             return samples;
         }},
    {.name = "neg",
     .forward = "y = -x",
     .backward = "gx = -gy",
     .torch = "torch.neg",
     .samples =
         [] {
             return detail::unary_samples(neg, {-2, 2}, "-a");
         }},
    {.name = "scale",
     .forward = "y = factor x",
     .backward = "gx = factor gy",
     .torch = "torch.mul",
     .samples =
         [] {
             return Samples{detail::sample(
                                "by -1.7", spread({2, 3}, {-2, 2}, 1),
                                [](const Variable& x) { return scale(x, -1.7); }, "-1.7 * a"),
                            detail::sample(
                                "rank 0", spread({}, {-2, 2}, 2),
                                [](const Variable& x) { return scale(x, 0.3); }, "0.3 * a"),
                            detail::sample(
                                "no elements", spread({0, 3}, {-2, 2}, 3),
                                [](const Variable& x) { return scale(x, 0.3); }, "0.3 * a")};
         }},
    {.name = "pow",
     .forward = "y = a^b",
     .backward = "ga = gy b a^(b-1), 0 where b = 0; gb = gy y log(a), 0 where a = 0 <= b",
     .domain = "a > 0, or b a whole number; NaN for other powers of a negative a; 1 for b = 0",
     .torch = "torch.pow",
     .samples =
         [] {
             Samples samples =
                 binary_samples(Binary(pow), {0.5, 2}, {-1.5, 2.5}, "torch.pow(a, b)");
             for (const double p : {3.0, 2.0, 1.0, 0.5, -1.0, -2.5}) {
                 samples.push_back(detail::sample(
                     "to the power " + std::to_string(p), spread({2, 3}, {0.5, 2}, 1),
                     [p](const Variable& x) { return pow(x, p); }, "a ** " + std::to_string(p)));
             }
             samples.push_back(detail::sample(
                 "negative to the power 3", spread({3}, {-2, -0.5}, 1),
                 [](const Variable& x) { return pow(x, 3.0); }, "a ** 3.0"));
             return samples;
         }},
    {.name = "chain_mul",
     .forward = "y = a b, 0 where a = 0",
     .backward = "ga = gy b; gb = gy a; 0 where gy = 0",
     .domain = "for derivatives, a the gradient: 0 times inf or NaN is 0",
     .torch = "torch.mul",
     .samples =
         [] {
             return binary_samples(Binary(chain_mul), {-2, 2}, {-2, 2}, "a * b");
         }},
    {.name = "chain_div",
     .forward = "y = a / b, 0 where a = 0",
     .backward = "ga = gy / b; gb = -gy y / b; 0 where gy = 0 or y = 0",
     .domain = "for derivatives, a the gradient: 0 / 0 is 0",
     .torch = "torch.div",
     .samples =
         [] {
             return binary_samples(Binary(chain_div), {-2, 2}, {0.5, 2}, "a / b");
         }},
};

/// log(a), and 0 where a = 0 <= b: there a^b stays 0 (or 1) as b moves.
template <class V>
V power_log(const V& a, const V& b) {
    const Tensor& base = tensor_of(a);
    const Tensor& exponent = tensor_of(b);
    const Tensor flat =
        logical_and(equal(base, zeros_like(base)), greater_equal(exponent, zeros_like(exponent)));
    return where(flat, V(zeros_like(base)), log(a));
}

// Both derivatives of a quotient.
constexpr auto over_divisor = [](const auto& gy, const auto& divisor) {
    return chain_div(gy, divisor);
};
constexpr auto of_divisor = [](const auto& gy, const auto& y, const auto& divisor) {
    return -chain_mul(gy, chain_div(y, divisor));
};

}  // namespace

std::span<const OpRow> detail::arithmetic_rows() { return rows; }

Variable add(const Variable& a, const Variable& b) {
    constexpr auto pass = [](const auto& gy) { return gy; };
    return record(
        find(rows, "add"), [&] { return add(a.value(), b.value()); }, edge(a, pass), edge(b, pass));
}

Variable add(const Variable& a, double b) {
    return record(
        find(rows, "add"), [&] { return add(a.value(), b); },
        [=] {
            return Attributes{{"b", b}};
        },
        edge(a, [](const auto& gy) { return gy; }));
}

Variable sub(const Variable& a, const Variable& b) {
    return record(
        find(rows, "sub"), [&] { return sub(a.value(), b.value()); },
        edge(a, [](const auto& gy) { return gy; }), edge(b, [](const auto& gy) { return -gy; }));
}

Variable mul(const Variable& a, const Variable& b) {
    constexpr auto times = [](const auto& gy, const auto& other) { return gy * other; };
    return record(
        find(rows, "mul"), [&] { return mul(a.value(), b.value()); }, edge(a, times, b),
        edge(b, times, a));
}

Variable div(const Variable& a, const Variable& b) {
    return record(
        find(rows, "div"), [&] { return div(a.value(), b.value()); }, edge(a, over_divisor, b),
        edge(b, of_divisor, result, b));
}

Variable chain_mul(const Variable& gy, const Variable& slope) {
    constexpr auto times = [](const auto& g, const auto& other) { return chain_mul(g, other); };
    return record(
        find(rows, "chain_mul"), [&] { return chain_mul(gy.value(), slope.value()); },
        edge(gy, times, slope), edge(slope, times, gy));
}

Variable chain_div(const Variable& gy, const Variable& divisor) {
    return record(
        find(rows, "chain_div"), [&] { return chain_div(gy.value(), divisor.value()); },
        edge(gy, over_divisor, divisor), edge(divisor, of_divisor, result, divisor));
}

Variable neg(const Variable& x) {
    return record(
        find(rows, "neg"), [&] { return neg(x.value()); },
        edge(x, [](const auto& gy) { return -gy; }));
}

Variable scale(const Variable& x, double factor) {
    return record(
        find(rows, "scale"), [&] { return scale(x.value(), factor); },
        [=] {
            return Attributes{{"factor", factor}};
        },
        edge(x, [factor](const auto& gy) { return scale(gy, factor); }));
}

Variable pow(const Variable& x, double p) {
    return record(
        find(rows, "pow"), [&] { return pow(x.value(), p); },
        [=] {
            return Attributes{{"b", p}};
        },
        edge(
            x,
            [p](const auto& gy, const auto& base) {
                if (p == 0) return detail::nothing_of(gy);
                if (p == 1) return gy;
                if (p == 2) return chain_mul(gy, scale(base, 2));
                return chain_mul(gy, scale(pow(base, p - 1), p));
            },
            x));
}

Variable pow(const Variable& a, const Variable& b) {
    return record(
        find(rows, "pow"), [&] { return pow(a.value(), b.value()); },
        edge(
            a,
            [](const auto& gy, const auto& base, const auto& exponent) {
                // chain_mul: b a^(b-1) is 0 for b = 0 whatever a is
                return chain_mul(gy, chain_mul(exponent, pow(base, exponent - 1.0)));
            },
            a, b),
        edge(
            b,
            [](const auto& gy, const auto& y, const auto& base, const auto& exponent) {
                return chain_mul(gy, chain_mul(y, power_log(base, exponent)));
            },
            result, a, b));
}

Variable operator+(const Variable& a, const Variable& b) { return add(a, b); }
Variable operator-(const Variable& a, const Variable& b) { return sub(a, b); }
Variable operator*(const Variable& a, const Variable& b) { return mul(a, b); }
Variable operator/(const Variable& a, const Variable& b) { return div(a, b); }
Variable operator+(const Variable& a, double b) { return add(a, b); }
Variable operator-(const Variable& a, double b) { return add(a, -b); }
Variable operator*(const Variable& a, double b) { return scale(a, b); }
Variable operator+(double a, const Variable& b) { return add(b, a); }
Variable operator*(double a, const Variable& b) { return scale(b, a); }
Variable operator-(const Variable& x) { return neg(x); }

Variable operator-(double a, const Variable& b) {
    return record(
        find(rows, "sub"), [&] { return a - b.value(); },
        [=] {
            return Attributes{{"a", a}};
        },
        edge(b, [](const auto& gy) { return -gy; }));
}

Variable operator/(const Variable& a, double b) {
    return record(
        find(rows, "div"), [&] { return a.value() / b; },
        [=] {
            return Attributes{{"b", b}};
        },
        edge(a, [b](const auto& gy) { return chain_div(gy, full({}, b, gy.dtype())); }));
}

Variable operator/(double a, const Variable& b) {
    return record(
        find(rows, "div"), [&] { return a / b.value(); },
        [=] {
            return Attributes{{"a", a}};
        },
        edge(b, of_divisor, result, b));
}

}  // namespace glassgrad
