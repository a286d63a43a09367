// What gradcheck says where there is nothing right or wrong to say: kinks, edges, checks without
// power, functions that can't be checked; and that correct derivatives pass at any scale.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

using In = std::span<const Variable>;

struct Case {
    std::string what;
    CheckedFunction f;
    std::vector<Variable> inputs;
    std::string text;  ///< part of the report
};

void expect(Verdict verdict, const std::vector<Case>& cases) {
    for (const Case& each : cases) {
        INFO(each.what);
        const GradcheckReport report = gradcheck(each.f, each.inputs);
        INFO(report.text);
        CHECK(name(report.verdict) == name(verdict));
        CHECK_THAT(report.text, ContainsSubstring(each.text));
    }
}

}  // namespace

TEST_CASE("a kink or the edge of a domain is not a wrong gradient") {
    expect(
        Verdict::not_differentiable,
        {
            {"relu at 0",
             [](In in) { return relu(in[0]); },
             {x64({0.5, 0.0, -1.0})},
             "x (3,): not differentiable: at (1,), where it is 0, there is a kink: the slope is 0 "
             "on the left and 1 on the right, for a cotangent of 1 at (1,); move the point of the "
             "check"},
            {"a kink whose middle slope is right, too",
             [](In in) {
                 return seeded(
                     abs(in[0].value()), in[0],
                     [](const auto& gy, const auto& x) {
                         using V = std::remove_cvref_t<decltype(gy)>;
                         const Tensor zero = zeros({}, f64);
                         const Tensor& at = [](const auto& each) -> const Tensor& {
                             if constexpr (std::is_same_v<V, Tensor>) {
                                 return each;
                             } else {
                                 return each.value();
                             }
                         }(x);
                         return gy * V(where(greater(at, zero), full({}, 1, f64),
                                             where(less(at, zero), full({}, -1, f64), zero)));
                     },
                     in[0]);
             },
             {x64({-3.0, 0.0, 2.0})},
             "there is a kink: the slope is -1 on the left and 1 on the right"},
            {"the largest of two equal numbers",
             [](In in) { return max(in[0], {.axes = {0}}); },
             {x64({1.0, 2.5, 2.5, -4.0})},
             "at (1,), where it is 2.5, there is a kink"},
            {"sqrt at 0",
             [](In in) { return sqrt(in[0]); },
             {x64({1.0, 0.0, 4.0})},
             "at (1,), where it is 0, the function isn't finite nearby; move the point of the "
             "check into its domain"},
            {"a jump",
             [](In in) {
                 const Tensor zero = zeros({}, f64);
                 return where(greater_equal(in[0].value(), zero), in[0] + 1.0, in[0]);
             },
             {x64({0.0, 2.0})},
             "at (0,), where it is 0, differences over smaller and smaller steps do not settle"},
        });
}

TEST_CASE("a kink elsewhere does not hide a wrong gradient") {
    const auto report = gradcheck(
        [](In in) {
            return seeded(
                relu(in[0].value()), in[0], [](const auto& gy, const auto& y) { return gy * y; },
                result);
        },
        {x64({0.0, 3.0, -1.0})});
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.worst().index == Shape{1});
}

TEST_CASE("a point close to a kink, but not on it, can be checked") {
    const auto report =
        gradcheck([](In in) { return relu(in[0]); }, {x64({1e-9, -1e-7, 1.0, 1e-3})});
    INFO(report.text);
    CHECK(report);
}

TEST_CASE("a check without power is refused") {
    expect(
        Verdict::no_power,
        {
            {"the sum of a softmax",
             [](In in) { return sum(softmax(in[0])); },
             {x64({{0.5, -1.2, 0.3}, {2.0, 0.1, -0.7}})},
             "this check has no power: the numeric gradient (at most "},
            {"a softmax row by row, summed",
             [](In in) { return sum(softmax(in[0]), {.axes = {1}}); },
             {x64({{0.5, -1.2, 0.3}, {2.0, 0.1, -0.7}})},
             "so zeros would pass; return the result itself in place of its sum, or weigh it"},
            {"a wrong derivative behind a sum that is constant",
             [](In in) {
                 return sum(seeded(softmax(in[0].value()), in[0],
                                   [](const auto& gy) { return gy * 0.0; }));
             },
             {x64({0.5, -1.2, 0.3})},
             "is below its own noise (about "},
            {"a tiny gradient on a large number",
             [](In in) { return in[0] * 1e-13 + 1e3; },
             {x64({0.5, -1.2, 0.3})},
             "this check has no power"},
            {"an input that is not used",
             [](In in) { return exp(in[0]); },
             {x64({1.0, 2.0}), x64({3.0}, "unused")},
             "unused (1,): no power: this check has no power: nothing depends on this input, so a "
             "missing path would pass; leave it out, or accept it with {.accept_zero = true}"},
            {"a power of 0",
             [](In in) { return pow(in[0], 0.0); },
             {x64({1.0, 2.0})},
             "nothing depends on this input"},
        });
    CHECK(
        gradcheck([](In in) { return pow(in[0], 0.0); }, {x64({1.0, 2.0})}, {.accept_zero = true}));
}

TEST_CASE("a function that can't be checked is called invalid, with the reason") {
    int calls = 0;
    expect(Verdict::invalid,
           {
               {"not finite",
                [](In in) { return log(in[0]); },
                {x64({{1.0, 2.0}, {-3.0, 4.0}})},
                "gradcheck: invalid: the function is nan at (1, 0): check it inside its domain"},
               {"not repeatable",
                [&calls](In in) { return in[0] * (1.0 + 1e-3 * ++calls); },
                {x64({2.0, 3.0})},
                "the function isn't repeatable: at (0,) it gave "},
               {"f32 in the end",
                [](In in) { return Variable(in[0].value().astype(f32)); },
                {x64({2.0, 3.0})},
                "the function gives f32 for f64 inputs: it has to compute in f64 to be checked"},
               {"f32 on the way, as an op",
                [](In in) {
                    const Variable narrow = exp(parameter(in[0].value().astype(f32)));
                    return in[0] * narrow.value().astype(f64);
                },
                {x64({2.0, 3.0})},
                "the function computes in f32 inside (its exp): gradients are checked in f64"},
               {"f32 on the way, in numbers",
                [](In in) {
                    return seeded(in[0].value().astype(f32).astype(f64) * 2.0, in[0],
                                  [](const auto& gy) { return gy * 2.0; });
                },
                {x64({0.1, 0.3})},
                "the function computes in f32 inside: all its results are f32 numbers"},
               {"an integer result",
                [](In in) { return Variable(argmax(in[0].value())); },
                {x64({2.0, 3.0})},
                "the function gives i64, which has no gradient"},
               {"an undefined result",
                [](In) { return Variable(); },
                {x64({2.0, 3.0})},
                "the function returned an undefined Variable"},
               {"a throw",
                [](In in) { return matmul(in[0], in[0]); },
                {x64({{2.0, 3.0}})},
                "gradcheck: invalid: the function threw: matmul: "},
               {"a function that writes to its input",
                [](In in) {
                    Variable x = in[0];
                    x.mutable_value() *= 2.0;
                    return x * 3.0;
                },
                {x64({2.0, 3.0})},
                "the function writes to x"},
           });
}

TEST_CASE("a call that can't be a check throws") {
    const auto f = [](In in) { return in[0]; };
    CHECK(message_of<ValueError>([&] { gradcheck(f, {}); }) ==
          "gradcheck: nothing to check: no input is f32 or f64");
    CHECK(message_of<ValueError>([&] { gradcheck(f, {Variable(arange(3))}); }) ==
          "gradcheck: nothing to check: no input is f32 or f64");
    CHECK(message_of<ValueError>([&] {
              gradgradcheck(f, {x64({1.0}), Variable()});
          }) == "gradgradcheck: input 1 is undefined");
    const Variable narrow = parameter(ones({2}), "w");
    CHECK(message_of<TypeError>([&] { gradcheck(f, {x64({1.0})}, {.parameters = {narrow}}); }) ==
          "gradcheck: parameter w is f32; convert the module to f64 before it is checked");
    const Variable w = x64({1.0}, "w");
    CHECK(message_of<ValueError>([&] {
              gradcheck(f, {x64({1.0})}, {.parameters = {w, w}});
          }) == "gradcheck: parameter w is given twice");
    CHECK(
        message_of<ValueError>([&] { gradcheck(f, {x64({1.0})}, {.parameters = {w * 2.0}}); }) ==
        "gradcheck: result of scale of shape (1,) is no parameter; pass results of ops as inputs");
    GradcheckReport report = gradcheck([](In) { return Variable(); }, {x64({1.0})});
    CHECK_THAT(message_of<ValueError>([&] { report.worst(); }),
               StartsWith("gradcheck: the report has no findings: gradcheck: invalid"));
}

TEST_CASE("f32 inputs are checked as f64, integers and masks are constants") {
    const Variable x = parameter(tensor({0.5f, 1.5f, -1.0f}), "x");
    const Variable n(tensor({1, 2, 3}, i64));
    const Variable keep(tensor({1, 0, 1}, boolean));
    const auto report = gradcheck(
        [](In in) {
            CHECK(in[0].dtype() == f64);
            const Tensor power = in[1].value().astype(f64);
            return where(in[2].value(), exp(in[0]) * power, in[0] * in[0]);
        },
        {x, n, keep});
    INFO(report.text);
    CHECK(report);
    CHECK(report.inputs.size() == 1);
    CHECK(x.dtype() == f32);
    CHECK_FALSE(x.has_grad());
}

TEST_CASE("correct derivatives pass whatever the size of the numbers") {
    const Tensor x = uneven({3, 4});
    const Tensor positive = uneven({3, 4}, 0.3, 3);
    for (const double size : {1e-6, 1e-3, 1.0, 1e3, 1e6}) {
        INFO(size);
        const auto passes = [&](const CheckedFunction& f, const Tensor& at) {
            const auto report = gradcheck(f, {parameter(at, "x")});
            INFO(report.text);
            CHECK(report);
            CHECK(report.worst_error < 1e-3);
            const auto second = gradgradcheck(f, {parameter(at, "x")});
            INFO(second.text);
            CHECK(second);
        };
        passes([&](In in) { return exp(in[0] * (1 / size)); }, x * size);
        passes([&](In in) { return exp(in[0]) * size; }, x);
        passes([&](In in) { return tanh(in[0] / size) * 1e-12; }, x * size);
        passes([](In in) { return log(in[0]); }, positive * size);
        passes([](In in) { return sqrt(in[0]); }, positive * size);
        passes([](In in) { return 1.0 / in[0]; }, positive * size);
        passes([](In in) { return pow(in[0], 3.0); }, x * size);
        passes([&](In in) { return softmax(in[0] / size, 0); }, x * size);
        passes([&](In in) { return exp(in[0]) + 1e3 * size; }, x * std::min(size, 1.0));
    }
}

TEST_CASE("wrong derivatives are caught whatever the size of the numbers") {
    const Tensor x = uneven({3, 4});
    for (const double size : {1e-6, 1e-3, 1.0, 1e3, 1e6}) {
        INFO(size);
        const auto report = gradcheck(
            [&](In in) {
                return seeded(
                    exp(in[0].value() / size) * 1e-9, in[0],
                    [&](const auto& gy, const auto& y) { return gy * y * (1.0001 / size); },
                    result);
            },
            {parameter(x * size, "x")});
        INFO(report.text);
        CHECK(report.verdict == Verdict::failed);
        CHECK_THAT(report.text, ContainsSubstring("analytic = 1.0001 numeric everywhere"));
    }
}

TEST_CASE("sizes that differ within one input are each given their own steps") {
    const auto report = gradcheck([](In in) { return log(in[0]); }, {x64({1e-6, 1.0, 1e6})});
    INFO(report.text);
    CHECK(report);
}

TEST_CASE("gradients far apart in size are all compared") {
    const auto f = [](double wrong) {
        return [wrong](In in) {
            return seeded(exp(in[0].value()), in[0], [wrong](const auto& gy) {
                using V = std::remove_cvref_t<decltype(gy)>;
                return gy * V(tensor({std::exp(-10.0) * wrong, 1.0, std::exp(10.0)}, f64));
            });
        };
    };
    CHECK(gradcheck(f(1), {x64({-10.0, 0.0, 10.0})}));
    const auto report = gradcheck(f(1.01), {x64({-10.0, 0.0, 10.0})});
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.worst().index == Shape{0});
}
