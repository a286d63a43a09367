// Values and gradients at the numbers where functions go wrong: zeros, infinities, NaN, kinks,
// ties, overflow.

#include "autograd/support/special_values.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

using In = std::span<const Variable>;

constexpr double two_over_root_pi = 1.12837916709551257390;
constexpr double log_two = 0.69314718055994530942;

// clang-format off
const SpecialValue functions[] = {
    special("abs", abs, {0, -0.0, inf, -inf, NaN, -3}, {0, 0, inf, inf, NaN, 3},
            {0, 0, 1, -1, NaN, -1}),
    special("sign", sign, {0, -0.0, inf, -inf, NaN, -3}, {0, 0, 1, -1, NaN, -1},
            {0, 0, 0, 0, 0, 0}),
    special("exp", exp, {0, -inf, inf, NaN, -1e4, 1e4}, {1, 0, inf, NaN, 0, inf},
            {1, 0, inf, NaN, 0, inf}),
    {"exp(89)", [](In in) { return exp(in[0]); }, {{89}}, {inf}, {{inf}}, {}, {}, {f32}},
    {"exp(89)", [](In in) { return exp(in[0]); }, {{89}}, {4.48961281917434525e38},
     {{4.48961281917434525e38}}, {}, {}, {f64}},
    special("expm1", expm1, {0, -inf, inf, NaN, -200, 1e4}, {0, -1, inf, NaN, -1, inf},
            {1, 0, inf, NaN, 0, inf}),
    special("log", log, {0, -0.0, -1, inf, NaN, 1}, {-inf, -inf, NaN, inf, NaN, 0},
            {inf, -inf, -1, 0, NaN, 1}),
    special("log1p", log1p, {-1, -2, inf, NaN, 0, 1e-12}, {-inf, NaN, inf, NaN, 0, 1e-12},
            {inf, -1, 0, NaN, 1, 1 - 1e-12}),
    special("sqrt", sqrt, {0, -1, inf, NaN, 4}, {0, NaN, inf, NaN, 2}, {inf, NaN, 0, NaN, 0.25}),
    special("rsqrt", rsqrt, {0, -1, inf, NaN, 4}, {inf, NaN, 0, NaN, 0.5},
            {-inf, NaN, 0, NaN, -0.0625}),
    special("square", square, {0, inf, -inf, NaN, -3}, {0, inf, inf, NaN, 9},
            {0, inf, -inf, NaN, -6}),
    special("reciprocal", reciprocal, {0, -0.0, inf, -inf, NaN, 2}, {inf, -inf, 0, 0, NaN, 0.5},
            {-inf, -inf, 0, 0, NaN, -0.25}),
    special("sin", sin, {0, inf, -inf, NaN}, {0, NaN, NaN, NaN}, {1, NaN, NaN, NaN}),
    special("cos", cos, {0, inf, -inf, NaN}, {1, NaN, NaN, NaN}, {0, NaN, NaN, NaN}),
    special("erf", erf, {0, inf, -inf, NaN, 200, -1e30}, {0, 1, -1, NaN, 1, -1},
            {two_over_root_pi, 0, 0, NaN, 0, 0}),
    special("tanh", tanh, {0, 200, -200, inf, -inf, NaN}, {0, 1, -1, 1, -1, NaN},
            {1, 0, 0, 0, 0, NaN}),
    special("sigmoid", sigmoid, {0, 200, -200, 1e4, -1e4, inf, -inf, NaN},
            {0.5, 1, 0, 1, 0, 1, 0, NaN}, {0.25, 0, 0, 0, 0, 0, 0, NaN}),
    special("softplus", softplus, {0, 200, -200, 1e4, -1e4, inf, -inf, NaN},
            {log_two, 200, 0, 1e4, 0, inf, 0, NaN}, {0.5, 1, 0, 1, 0, 1, 0, NaN}),
    special("relu", relu, {0, -0.0, inf, -inf, NaN, -3}, {0, 0, inf, 0, NaN, 0},
            {0, 0, 1, 0, 0, 0}),
    special("leaky_relu", [](const Variable& x) { return leaky_relu(x, 0.5); },
            {0, -0.0, inf, -inf, NaN, -3}, {0, 0, inf, -inf, NaN, -1.5},
            {0.5, 0.5, 1, 0.5, 0.5, 0.5}),
    special("elu", [](const Variable& x) { return elu(x); }, {0, inf, -inf, NaN, -200, 1e4},
            {0, inf, -1, NaN, -1, 1e4}, {1, 1, 0, NaN, 0, 1}),
    special("clamp", [](const Variable& x) { return clamp(x, {.min = -1, .max = 1}); },
            {-1, 1, 0, -2, 2, inf, -inf, NaN}, {-1, 1, 0, -1, 1, 1, -1, NaN},
            {1, 1, 1, 0, 0, 0, 0, 0}),
};

/// Numbers far out, with the second derivative, too.
SpecialValue far_out(std::string call, Variable (*f)(const Variable&), double bend) {
    return {std::move(call), [f](In in) { return f(in[0]); },
            {{0, 100, -100, 1e4, -1e4, 1e30, -1e30, inf, -inf}},
            {0, 100, 0, 1e4, 0, 1e30, 0, inf, 0},
            {{0.5, 1, 0, 1, 0, 1, 0, 1, 0}}, {},
            {{bend, 0, 0, 0, 0, 0, 0, 0, 0}}};
}
Variable gelu_by_tanh(const Variable& x) { return gelu(x, {.approximate = Approximate::tanh}); }
const SpecialValue gates[] = {
    far_out("gelu", [](const Variable& x) { return gelu(x); }, 0.79788456080286535588),
    far_out("gelu by tanh", gelu_by_tanh, 0.79788456080286535588),
    far_out("silu", silu, 0.5),
    special("gelu", [](const Variable& x) { return gelu(x); }, {3, -3, NaN},
            {2.99595030590511, -0.00404969409489031, NaN},
            {1.011945647204184, -0.01194564720418392, NaN}, {f64}),
    special("gelu by tanh", gelu_by_tanh, {3, -3, NaN},
            {2.996362607918227, -0.0036373920817729943, NaN},
            {1.0115841666309695, -0.011584166630969648, NaN}, {f64}),
    special("silu", silu, {NaN}, {NaN}, {NaN}),
};

SpecialValue power(double p, Numbers x, Numbers y, Numbers gx, Numbers second) {
    return {"pow " + std::to_string(p), [p](In in) { return pow(in[0], p); }, {std::move(x)},
            std::move(y), {std::move(gx)}, {}, {std::move(second)}};
}
Variable of_two(Variable (*f)(const Variable&, const Variable&), In in) { return f(in[0], in[1]); }
const SpecialValue powers[] = {
    power(0, {0, -0.0, 1, inf, -2}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, 0}),
    power(1, {0, -2, inf}, {0, -2, inf}, {1, 1, 1}, {0, 0, 0}),
    power(2, {0, -2}, {0, 4}, {0, -4}, {2, 2}),
    power(3, {0, -2}, {0, -8}, {0, 12}, {0, -12}),
    power(0.5, {0, -2, 4}, {0, NaN, 2}, {inf, NaN, 0.25}, {-inf, NaN, -0.03125}),
    power(1.5, {0, 4}, {0, 8}, {0, 3}, {inf, 0.375}),
    power(-1, {0, 2}, {inf, 0.5}, {-inf, -0.25}, {inf, 0.25}),
    // A whole power of a negative number has a slope in a, and none in b.
    {"pow", [](In in) { return of_two(pow, in); }, {{0, 2, 0, -2, 0}, {1, 1, 0, 3, 2.5}},
     {0, 2, 1, -8, 0}, {{1, 1, 0, 12, 0}, {0, 2 * log_two, 0, NaN, 0}}, {},
     {{0, 1 + log_two, 0, NaN, 0}, {1, 1 + log_two + 2 * log_two * log_two, inf, NaN, 0}}},
    {"pow, 0 to a negative power", [](In in) { return of_two(pow, in); }, {{0, 0}, {-1, -2}},
     {inf, inf}, {{-inf, -inf}, {-inf, -inf}}},
};

const SpecialValue pairs[] = {
    {"div", [](In in) { return of_two(div, in); }, {{1, 0, -1, 0, 1}, {0, 0, 0, inf, inf}},
     {inf, NaN, -inf, 0, 0}, {{inf, inf, inf, 0, 0}, {-inf, NaN, inf, 0, 0}}},
    {"maximum", [](In in) { return of_two(maximum, in); },
     {{1, 2, 0, NaN, 1, NaN, inf}, {2, 1, -0.0, 1, NaN, NaN, inf}}, {2, 2, 0, NaN, NaN, NaN, inf},
     {{0, 1, 0.5, 1, 0, 1, 0.5}, {1, 0, 0.5, 0, 1, 0, 0.5}}},
    {"minimum", [](In in) { return of_two(minimum, in); },
     {{1, 2, 0, NaN, 1, NaN, inf}, {2, 1, -0.0, 1, NaN, NaN, inf}}, {1, 1, 0, NaN, NaN, NaN, inf},
     {{1, 0, 0.5, 1, 0, 1, 0.5}, {0, 1, 0.5, 0, 1, 0, 0.5}}},
    {"where keeps a NaN out of the other's gradient",
     [](In in) { return where(tensor({1.0, 0.0}).astype(boolean), in[0], in[1]); },
     {{1, NaN}, {NaN, 2}}, {1, 2}, {{NaN, 0}, {0, 5}}, {NaN, 5}},
    {"masked_fill lets no NaN through",
     [](In in) { return masked_fill(in[0], tensor({1.0, 0.0}).astype(boolean), -inf); },
     {{NaN, 2}}, {-inf, 2}, {{0, 3}}, {NaN, 3}},
};

SpecialValue untouched(std::string call, Variable (*f)(const Variable&), double x, double y) {
    return {std::move(call), [f](In in) { return f(in[0]); }, {{x}}, {y}, {{0}}, {0}, {{0}}};
}
const SpecialValue zero_gradients[] = {
    untouched("sqrt", sqrt, 0, 0),
    untouched("rsqrt", rsqrt, 0, inf),
    untouched("log", log, 0, -inf),
    untouched("log1p", log1p, -1, -inf),
    untouched("reciprocal", reciprocal, 0, inf),
    untouched("exp", exp, 1e4, inf),
    untouched("expm1", expm1, 1e4, inf),
    untouched("square", square, inf, inf),
    untouched("sin", sin, inf, NaN),
    untouched("pow 0.5", [](const Variable& x) { return pow(x, 0.5); }, 0, 0),
    untouched("pow -1", [](const Variable& x) { return pow(x, -1); }, 0, inf),
    untouched("div by 0", [](const Variable& x) { return x / 0.0; }, 1, inf),
    untouched("1 / 0", [](const Variable& x) { return 1.0 / x; }, 0, inf),
    untouched("norm", [](const Variable& x) { return norm(x); }, 0, 0),
    untouched("std", [](const Variable& x) { return glassgrad::std(x); }, 3, 0),
    untouched("logsumexp", [](const Variable& x) { return logsumexp(x); }, inf, inf),
    {"0 / 0", [](In in) { return in[0] / in[1]; }, {{0}, {0}}, {NaN}, {{0}, {0}}, {0}, {{0}, {0}}},
    {"max(sqrt(x² + y²), 1e-10)",
     [](In in) {
         return maximum(sqrt(square(in[0]) + square(in[1])), Variable(full({1}, 1e-10, in[0].dtype())));
     },
     {{0}, {0}}, {1e-10}, {{0}, {0}}, {}, {{0}, {0}}},
};

SpecialValue reduced(std::string call, Variable (*f)(const Variable&), Numbers x, double y,
                     Numbers gx, std::vector<Numbers> second = {},
                     std::vector<DType> types = {f64, f32}) {
    return {std::move(call), [f](In in) { return f(in[0]); }, {std::move(x)}, {y},
            {std::move(gx)}, {}, std::move(second), std::move(types)};
}
Variable all(Variable (*f)(const Variable&, const ReduceOptions&), const Variable& x) {
    return f(x, {});
}
constexpr auto largest = [](const Variable& x) { return all(max, x); };
constexpr auto smallest = [](const Variable& x) { return all(min, x); };
constexpr auto smooth = [](const Variable& x) { return all(logsumexp, x); };
constexpr auto product = [](const Variable& x) { return all(prod, x); };
constexpr auto length = [](const Variable& x) { return norm(x); };
constexpr auto spread_of = [](const Variable& x) { return glassgrad::std(x); };
const SpecialValue reductions[] = {
    reduced("max", largest, {1, 2, 2, 2}, 2, {0, 1.0 / 3, 1.0 / 3, 1.0 / 3}),
    reduced("max", largest, {NaN, 1, 3}, NaN, {1, 0, 0}),
    reduced("max", largest, {1, NaN, NaN}, NaN, {0, 0.5, 0.5}),
    reduced("max", largest, {-inf, -inf}, -inf, {0.5, 0.5}),
    reduced("min", smallest, {1, 2, 1, 2}, 1, {0.5, 0, 0.5, 0}),
    reduced("min", smallest, {1, 3, NaN}, NaN, {0, 0, 1}),
    reduced("logsumexp", smooth, {-inf, -inf}, -inf, {0, 0}, {{0, 0}}),
    reduced("logsumexp", smooth, {-inf, 0}, 0, {0, 1}, {{0, 0}}),
    reduced("logsumexp", smooth, {1e4, 0}, 1e4, {1, 0}, {{0, 0}}),
    reduced("logsumexp", smooth, {-1e4, -1e4}, -1e4 + log_two, {0.5, 0.5}),
    reduced("logsumexp", smooth, {inf, 0}, inf, {NaN, 0}),
    reduced("logsumexp", smooth, {NaN, 0}, NaN, {NaN, NaN}),
    reduced("prod", product, {0, 2, 3}, 0, {6, 0, 0}, {{5, 3, 2}}),
    reduced("prod", product, {0, 0, 3}, 0, {0, 0, 0}, {{3, 3, 0}}),
    reduced("prod", product, {0, 0, 0}, 0, {0, 0, 0}, {{0, 0, 0}}),
    reduced("prod", product, {inf, 2}, inf, {2, inf}),
    reduced("norm", length, {0, 0}, 0, {0, 0}),
    reduced("norm", length, {3, -4}, 5, {0.6, -0.8}),
    reduced("norm", length, {3e30, -4e30}, 5e30, {0.6, -0.8}),
    reduced("norm", length, {3e-30, -4e-30}, 5e-30, {0.6, -0.8}),
    reduced("norm", length, {3e200, -4e200}, 5e200, {0.6, -0.8}, {}, {f64}),
    reduced("norm", length, {3e-200, -4e-200}, 5e-200, {0.6, -0.8}, {}, {f64}),
    reduced("norm", length, {inf, 1, NaN}, NaN, {NaN, NaN, NaN}),
    reduced("norm of ord 1", [](const Variable& x) { return norm(x, {.ord = 1}); }, {0, -2}, 2,
            {0, -1}),
    reduced("norm of ord inf", [](const Variable& x) { return norm(x, {.ord = inf}); },
            {2, -2, 1}, 2, {0.5, -0.5, 0}),
    reduced("std", spread_of, {0.1, 0.1, 0.1}, 0, {0, 0, 0}),
    reduced("std", spread_of, {1, NaN}, NaN, {NaN, NaN}),
    reduced("var", [](const Variable& x) { return var(x); }, {2, 2, 2}, 0, {0, 0, 0}),
    {"cumsum", [](In in) { return cumsum(in[0], 0); }, {{1, inf, -inf, 2}}, {1, inf, NaN, NaN},
     {{4, 3, 2, 1}}},
};
// clang-format on

}  // namespace

TEST_CASE("functions of an element have the values and gradients stated, at special numbers") {
    check_special_values(functions);
    check_special_values(powers);
    check_special_values(pairs);
}

TEST_CASE("gelu and silu are straight or flat far out, to the second derivative") {
    check_special_values(gates);
}

TEST_CASE("a gradient of zero stays zero where the slope is infinite") {
    check_special_values(zero_gradients);
}

TEST_CASE("reductions have the values and gradients stated, at special numbers") {
    check_special_values(reductions);
}

TEST_CASE("softmax and log_softmax of rows with -inf: a recorded pass gives the usual gradient") {
    using Softmax = Variable (*)(const Variable&, std::int64_t);
    for (const Softmax f : {Softmax(softmax), Softmax(log_softmax)}) {
        for (const Tensor& row : {tensor({0.0, -inf, 1.0}, f64), tensor({-inf, -inf}, f64),
                                  tensor({-inf}, f64), full({}, -inf, f64)}) {
            const Variable x = parameter(row);
            const Variable gy(uneven(row.shape()));
            const Tensor usual = grad({f(x, -1)}, {x}, {.grad_outputs = {gy}})[0].value();
            const Tensor recorded =
                grad({f(x, -1)}, {x}, {.grad_outputs = {gy}, .create_graph = true})[0].value();
            CHECK(close(usual, recorded, 1e-15));
        }
    }
}

TEST_CASE("a gradient of zero is zero behind a product that is infinite") {
    const Variable x = parameter(tensor({inf, 2.0, 3.0}, f64));
    const Variable none(zeros({}, f64));
    for (const bool recorded : {false, true}) {
        const Tensor gx =
            grad({prod(x)}, {x}, {.grad_outputs = {none}, .create_graph = recorded})[0].value();
        CHECK(close(gx, zeros({3}, f64), 0));
    }
}

TEST_CASE("the largest norm of no elements is refused by norm itself") {
    const Variable x = parameter(zeros({0}, f64));
    CHECK(message_of([&] { norm(x, {.ord = inf}); }).starts_with("norm: nothing to reduce"));
}
