// Functions of one Variable, element by element.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::two_sided;
using detail::unary_samples;

namespace {

constexpr double two_over_root_pi = 1.12837916709551257390;

/// Samples on both sides of 0, which itself is left out.
Samples around_zero(Variable (*f)(const Variable&), std::string_view torch) {
    Samples samples = unary_samples(f, {0.2, 2}, torch);
    samples.push_back(detail::sample("both sides of 0", two_sided({2, 3}, {0.2, 2}, 5), f, torch));
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "abs",
     .forward = "y = |x|",
     .backward = "gx = gy sign(x)",
     .holds = "y >= 0",
     .domain = "the derivative is 0 at 0",
     .torch = "torch.abs",
     .samples = [] { return around_zero(abs, "torch.abs(a)"); }},
    {.name = "sign",
     .forward = "y = -1, 0 or 1",
     .backward = "gx = 0",
     .holds = "|y| <= 1",
     .domain = "the derivative is 0, also at 0",
     .torch = "torch.sign",
     .samples = [] { return around_zero(sign, "torch.sign(a)"); }},
    {.name = "exp",
     .forward = "y = exp(x)",
     .backward = "gx = gy y",
     .holds = "y >= 0",
     .torch = "torch.exp",
     .samples =
         [] {
             return unary_samples(exp, {-2, 2}, "torch.exp(a)");
         }},
    {.name = "expm1",
     .forward = "y = exp(x) - 1",
     .backward = "gx = gy exp(x)",
     .holds = "y >= -1",
     .torch = "torch.expm1",
     .samples =
         [] {
             Samples samples = unary_samples(expm1, {-2, 2}, "torch.expm1(a)");
             samples.push_back(detail::sample(
                 "tiny", spread({3}, {-1e-6, 1e-6}, 5), [](const Variable& x) { return expm1(x); },
                 "torch.expm1(a)"));
             return samples;
         }},
    {.name = "log",
     .forward = "y = log(x)",
     .backward = "gx = gy / x",
     .domain = "x > 0; -inf at 0, NaN below",
     .torch = "torch.log",
     .samples =
         [] {
             return unary_samples(log, {0.3, 3}, "torch.log(a)");
         }},
    {.name = "log1p",
     .forward = "y = log(1 + x)",
     .backward = "gx = gy / (1 + x)",
     .domain = "x > -1; -inf at -1, NaN below",
     .torch = "torch.log1p",
     .samples =
         [] {
             return unary_samples(log1p, {-0.6, 2}, "torch.log1p(a)");
         }},
    {.name = "sqrt",
     .forward = "y = sqrt(x)",
     .backward = "gx = gy / (2 y)",
     .holds = "y >= 0",
     .domain = "x >= 0; NaN below; the derivative is inf at 0",
     .torch = "torch.sqrt",
     .samples =
         [] {
             return unary_samples(sqrt, {0.3, 3}, "torch.sqrt(a)");
         }},
    {.name = "rsqrt",
     .forward = "y = 1 / sqrt(x)",
     .backward = "gx = -gy y³ / 2",
     .holds = "y >= 0",
     .domain = "x > 0; inf at 0, NaN below",
     .torch = "torch.rsqrt",
     .samples =
         [] {
             return unary_samples(rsqrt, {0.3, 3}, "torch.rsqrt(a)");
         }},
    {.name = "square",
     .forward = "y = x²",
     .backward = "gx = 2 gy x",
     .holds = "y >= 0",
     .torch = "torch.square",
     .samples =
         [] {
             return unary_samples(square, {-2, 2}, "torch.square(a)");
         }},
    {.name = "reciprocal",
     .forward = "y = 1 / x",
     .backward = "gx = -gy y²",
     .domain = "x != 0; inf with the sign of the zero at 0",
     .torch = "torch.reciprocal",
     .samples =
         [] {
             Samples samples = unary_samples(reciprocal, {0.4, 2}, "torch.reciprocal(a)");
             samples.push_back(detail::sample(
                 "both sides of 0", two_sided({2, 3}, {0.4, 2}, 5),
                 [](const Variable& x) { return reciprocal(x); }, "torch.reciprocal(a)"));
             return samples;
         }},
    {.name = "sin",
     .forward = "y = sin(x)",
     .backward = "gx = gy cos(x)",
     .holds = "|y| <= 1",
     .domain = "NaN at infinities",
     .torch = "torch.sin",
     .samples =
         [] {
             return unary_samples(sin, {-4, 4}, "torch.sin(a)");
         }},
    {.name = "cos",
     .forward = "y = cos(x)",
     .backward = "gx = -gy sin(x)",
     .holds = "|y| <= 1",
     .domain = "NaN at infinities",
     .torch = "torch.cos",
     .samples =
         [] {
             return unary_samples(cos, {-4, 4}, "torch.cos(a)");
         }},
    {.name = "erf",
     .forward = "y = 2 / sqrt(pi) times the integral of exp(-t²) from 0 to x",
     .backward = "gx = gy 2 / sqrt(pi) exp(-x²)",
     .holds = "|y| <= 1",
     .torch = "torch.erf",
     .samples =
         [] {
             return unary_samples(erf, {-2, 2}, "torch.erf(a)");
         }},
};

}  // namespace

std::span<const OpRow> detail::elementwise_rows() { return rows; }

Variable abs(const Variable& x) {
    return record(
        find(rows, "abs"), [&] { return abs(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return gy * sign(in); }, x));
}

Variable sign(const Variable& x) {
    return record(
        find(rows, "sign"), [&] { return sign(x.value()); },
        edge(x, [](const auto& gy) { return detail::nothing_of(gy); }));
}

Variable exp(const Variable& x) {
    return record(
        find(rows, "exp"), [&] { return exp(x.value()); },
        edge(
            x, [](const auto& gy, const auto& y) { return chain_mul(gy, y); }, result));
}

Variable expm1(const Variable& x) {
    return record(
        find(rows, "expm1"), [&] { return expm1(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_mul(gy, exp(in)); }, x));
}

Variable log(const Variable& x) {
    return record(
        find(rows, "log"), [&] { return log(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_div(gy, in); }, x));
}

Variable log1p(const Variable& x) {
    return record(
        find(rows, "log1p"), [&] { return log1p(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_div(gy, in + 1.0); }, x));
}

Variable sqrt(const Variable& x) {
    return record(
        find(rows, "sqrt"), [&] { return sqrt(x.value()); },
        edge(
            x, [](const auto& gy, const auto& y) { return chain_div(gy, scale(y, 2)); }, result));
}

Variable rsqrt(const Variable& x) {
    return record(
        find(rows, "rsqrt"), [&] { return rsqrt(x.value()); },
        edge(
            x, [](const auto& gy, const auto& y) { return chain_mul(gy, scale(pow(y, 3), -0.5)); },
            result));
}

Variable square(const Variable& x) {
    return record(
        find(rows, "square"), [&] { return square(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_mul(gy, scale(in, 2)); }, x));
}

Variable reciprocal(const Variable& x) {
    return record(
        find(rows, "reciprocal"), [&] { return reciprocal(x.value()); },
        edge(
            x, [](const auto& gy, const auto& y) { return chain_mul(gy, -square(y)); }, result));
}

Variable sin(const Variable& x) {
    return record(
        find(rows, "sin"), [&] { return sin(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_mul(gy, cos(in)); }, x));
}

Variable cos(const Variable& x) {
    return record(
        find(rows, "cos"), [&] { return cos(x.value()); },
        edge(
            x, [](const auto& gy, const auto& in) { return chain_mul(gy, -sin(in)); }, x));
}

Variable erf(const Variable& x) {
    return record(
        find(rows, "erf"), [&] { return erf(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& in) {
                return gy * scale(exp(-square(in)), two_over_root_pi);
            },
            x));
}

}  // namespace glassgrad
