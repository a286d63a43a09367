// gradcheck itself under test: derivatives that are wrong on purpose, one for each class of fault,
// have to be caught at the default settings and named.

#include "autograd/support/checks.hpp"

#include <functional>

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using In = std::span<const Variable>;

struct Fault {
    std::string what;
    std::vector<Variable> inputs;
    CheckedFunction f;
    GradFault fault;
    std::string text;
};

Variable named(const Tensor& value, const char* name) { return parameter(value, name); }

const Tensor x43 = uneven({4, 3});

/// Every element of a row of the result is y; the rule is the fault.
std::vector<Fault> factors() {
    return {
        {"the sign of exp",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 exp(in[0].value()), in[0], [](const auto& gy, const auto& y) { return -(gy * y); },
                 result);
         },
         GradFault::sign,
         "the sign is wrong"},
        {"the 2 of a square",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 pow(in[0].value(), 2), in[0], [](const auto& gy, const auto& x) { return gy * x; },
                 in[0]);
         },
         GradFault::factor,
         "analytic = 0.5 numeric everywhere: a factor 2 is missing"},
        {"a 2 too much, and the sign",
         {named(x43, "x")},
         [](In in) {
             return seeded(neg(in[0].value()), in[0], [](const auto& gy) { return gy * 2.0; });
         },
         GradFault::factor,
         "analytic = -2 numeric everywhere: the sign is wrong, and a factor 2 too much"},
        {"1/n of a mean over rows",
         {named(x43, "x")},
         [](In in) {
             return seeded(mean(in[0].value(), {.axes = {1}, .keepdims = true}), in[0],
                           [](const auto& gy) {
                               return broadcast_to(gy, {4, 3});
                           });
         },
         GradFault::factor,
         "1/3 is missing, the size of axis 1 of x"},
        {"a mean over rows divided by the number of rows",
         {named(x43, "x")},
         [](In in) {
             return seeded(mean(in[0].value(), {.axes = {1}, .keepdims = true}), in[0],
                           [](const auto& gy) {
                               return broadcast_to(gy / 12.0, {4, 3});
                           });
         },
         GradFault::factor,
         "1/4 too much, the size of axis 0 of x"},
        {"1/sqrt(d) of scores",
         {named(uneven({4, 5}), "q")},
         [](In in) {
             const Variable k(uneven({3, 5}, -1, 1, 4));
             return seeded(
                 matmul(in[0].value(), k.value(), {.transpose_b = true}) / std::sqrt(5.0), in[0],
                 [](const auto& gy, const auto& keys) { return matmul(gy, keys); }, k);
         },
         GradFault::factor,
         "1/sqrt(5) is missing, the size of axis 1 of q"},
        {"1/sqrt(d) twice",
         {named(uneven({4, 5}), "q")},
         [](In in) {
             const Variable k(uneven({3, 5}, -1, 1, 4));
             return seeded(
                 matmul(in[0].value(), k.value(), {.transpose_b = true}) / std::sqrt(5.0), in[0],
                 [](const auto& gy, const auto& keys) { return matmul(gy, keys) / 5.0; }, k);
         },
         GradFault::factor,
         "1/sqrt(5) too much, the size of axis 1 of q"},
        {"1/n in place of 1/(n - 1)",
         {named(uneven({7}), "x")},
         [](In in) {
             return seeded(
                 var(in[0].value(), {.correction = 1}), in[0],
                 [](const auto& gy, const auto& x) { return gy * (x - mean(x)) * (2.0 / 7); },
                 in[0]);
         },
         GradFault::factor,
         "1/7 in place of 1/(7 - 1), the size of axis 0 of x"},
        {"a broadcast operand averaged in place of summed",
         {named(uneven({3}), "bias")},
         [](In in) {
             return seeded(x43 + in[0].value(), in[0],
                           [](const auto& gy) { return mean(gy, {.axes = {0}}); });
         },
         GradFault::factor,
         "1/4 too much, the size of axis 0 of the result"},
    };
}

std::vector<Fault> moves() {
    const Tensor a33 = uneven({3, 3}, -2, 2, 6);
    return {
        {"a square operand transposed",
         {named(uneven({3, 3}), "w")},
         [a33](In in) {
             return seeded(matmul(a33, in[0].value()), in[0], [a33](const auto& gy) {
                 return matmul(gy, std::remove_cvref_t<decltype(gy)>(a33), {.transpose_a = true});
             });
         },
         GradFault::transposed,
         "axes 0 and 1 are exchanged"},
        {"a transposed gradient forced into shape",
         {named(uneven({4, 5}), "w")},
         [](In in) {
             return seeded(in[0].value() * 3.0, in[0], [](const auto& gy) {
                 return reshape(transpose(gy * 3.0), {4, 5});
             });
         },
         GradFault::transposed,
         "axes 0 and 1 are exchanged"},
        {"a gradient shifted by one column",
         {named(x43, "x")},
         [](In in) {
             const Tensor& x = in[0].value();
             return seeded(concat({slice(x, 1, {.start = 1}), slice(x, 1, {.stop = 1})}, 1), in[0],
                           [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::shifted,
         "along axis 1"},
        {"a reversed axis not turned back",
         {named(x43, "x")},
         [](In in) {
             return seeded(slice(in[0].value(), 0, {.step = -1}), in[0],
                           [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::reversed,
         "back to front along axis 0"},
        {"exchanged operands",
         {named(x43, "a"), named(uneven({4, 3}, -2, 2, 3), "b")},
         [](In in) {
             constexpr auto times = [](const auto& gy, const auto& own) { return gy * own; };
             return record(seeded_row, in[0].value() * in[1].value(), edge(in[0], times, in[0]),
                           edge(in[1], times, in[1]));
         },
         GradFault::exchanged,
         "this is the gradient of "},
    };
}

std::vector<Fault> paths() {
    return {
        {"a bias that gets the gradient of the first row alone",
         {named(uneven({3}), "bias")},
         [](In in) {
             return seeded(x43 + in[0].value(), in[0],
                           [](const auto& gy) { return reshape(slice(gy, 0, {.stop = 1}), {3}); });
         },
         GradFault::missing_sum,
         "it was repeated along axis 0 of the result, but only place 0 of 4 is counted"},
        {"a broadcast column that gets the gradient of the last column alone",
         {named(uneven({4, 1}), "m")},
         [](In in) {
             return seeded(x43 * in[0].value(), in[0], [](const auto& gy) {
                 using V = std::remove_cvref_t<decltype(gy)>;
                 return slice(gy * V(x43), 1, {.start = 2});
             });
         },
         GradFault::missing_sum,
         "along axis 1 of the result, but only place 2 of 3 is counted"},
        {"an input that is detached inside",
         {named(x43, "x"), named(uneven({3}), "w")},
         [](In in) { return in[0] * in[1].detach(); },
         GradFault::missing_path,
         "no gradient arrives, though the function depends on it"},
        {"an op that reads value()",
         {named(x43, "x"), named(uneven({4, 3}, -1, 1, 2), "w")},
         [](In in) { return in[0] + Variable(tanh(in[1].value())); },
         GradFault::missing_path,
         "no gradient arrives"},
        {"half of an input detached",
         {named(x43, "x")},
         [](In in) {
             return concat(
                 {exp(slice(in[0], 0, {.stop = 2})), exp(slice(in[0], 0, {.start = 2}).detach())});
         },
         GradFault::missing_path,
         "analytic is 0 where numeric is not, at 6 of 12 elements"},
        {"a gradient let through where relu is flat",
         {named(x43, "x")},
         [](In in) {
             return seeded(relu(in[0].value()), in[0], [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::extra_path,
         "a gradient arrives where the function does not depend on it"},
        {"a division by zero",
         {named(x43, "x")},
         [](In in) {
             return seeded(in[0].value() * 2.0, in[0], [](const auto& gy) { return gy / 0.0; });
         },
         GradFault::not_finite,
         "the gradient holds "},
    };
}

std::vector<Fault> terms() {
    return {
        {"exp that multiplies by x",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 exp(in[0].value()), in[0], [](const auto& gy, const auto& x) { return gy * x; },
                 in[0]);
         },
         GradFault::wrong_factor,
         "(x in place of y)"},
        {"tanh that squares x in place of y",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 tanh(in[0].value()), in[0],
                 [](const auto& gy, const auto& x) { return gy * (1.0 - x * x); }, in[0]);
         },
         GradFault::wrong_factor,
         "depends on the element but not on the cotangent"},
        {"softmax without its sum",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 softmax(in[0].value()), in[0],
                 [](const auto& gy, const auto& y) { return gy * y; }, result);
         },
         GradFault::dropped_term,
         "along axis 1"},
        {"log_softmax without its sum",
         {named(x43, "x")},
         [](In in) {
             return seeded(log_softmax(in[0].value(), 0), in[0],
                           [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::dropped_term,
         "along axis 0"},
        {"softmax summed over the wrong axis",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 softmax(in[0].value(), 1), in[0],
                 [](const auto& gy, const auto& y) {
                     return y * (gy - sum(gy * y, {.axes = {0}, .keepdims = true}));
                 },
                 result);
         },
         GradFault::unknown,
         "no pattern that is known"},
    };
}

void expect_caught(const std::vector<Fault>& faults) {
    for (const Fault& each : faults) {
        INFO(each.what);
        const GradcheckReport report = gradcheck(each.f, each.inputs);
        INFO(report.text);
        CHECK(report.verdict == Verdict::failed);
        CHECK_FALSE(report);
        CHECK(name(report.fault) == name(each.fault));
        CHECK_THAT(report.text, ContainsSubstring(each.text));
    }
}

/// Layer norm over the last axis; `wrong` picks what its derivative gets wrong.
Variable layer_norm(const Variable& x, std::string_view wrong) {
    const ReduceOptions rows{.axes = {-1}, .keepdims = true};
    const Tensor centred = x.value() - mean(x.value(), rows);
    const Tensor deviation = sqrt(mean(centred * centred, rows) + 1e-5);
    const Variable hat(centred / deviation);
    const Variable spread(deviation);
    return seeded(
        hat.value(), x,
        [rows, wrong](const auto& gy, const auto& h, const auto& s) {
            const auto average = mean(gy, rows);
            const auto along = mean(gy * h, rows);
            if (wrong == "mean twice") return (gy - average - average - h * along) / s;
            if (wrong == "no mean") return (gy - h * along) / s;
            if (wrong == "no projection") return (gy - average) / s;
            return (gy - average - h * along) / s;
        },
        hat, spread);
}

}  // namespace

TEST_CASE("gradcheck names a constant factor and where it may come from") {
    expect_caught(factors());
}

TEST_CASE("gradcheck names gradients that are transposed, shifted, reversed or exchanged") {
    expect_caught(moves());
}

TEST_CASE("gradcheck names missing sums, missing paths and gradients out of nowhere") {
    expect_caught(paths());
}

TEST_CASE("gradcheck names wrong saved values and dropped terms") { expect_caught(terms()); }

TEST_CASE("gradcheck rejects a layer norm that subtracts its mean twice, at default settings") {
    const std::vector<Variable> x{named(uneven({3, 5}, -1, 3), "x")};
    for (const std::string wrong : {"mean twice", "no mean", "no projection"}) {
        INFO(wrong);
        const auto report = gradcheck([&](In in) { return layer_norm(in[0], wrong); }, x);
        INFO(report.text);
        CHECK(report.verdict == Verdict::failed);
        CHECK(report.fault == GradFault::dropped_term);
        CHECK_THAT(report.text, ContainsSubstring("along axis 1"));
        CHECK(report.worst().input == "x");
    }
    const auto report = gradcheck([](In in) { return layer_norm(in[0], ""); }, x);
    INFO(report.text);
    CHECK(report);
}

TEST_CASE("gradcheck points at the element, with both numbers and the error of one") {
    const auto report = gradcheck(
        [](In in) {
            return seeded(in[0].value() * 4.0, in[0], [](const auto& gy) {
                Tensor right = full({2, 3}, 4, f64);
                right.set({1, 2}, 7);
                return gy * std::remove_cvref_t<decltype(gy)>(right);
            });
        },
        {named(uneven({2, 3}), "weight")});
    INFO(report.text);
    const GradcheckFinding& worst = report.worst();
    CHECK(worst.input == "weight");
    CHECK(worst.index == Shape{1, 2});
    CHECK(worst.wrong == 1);
    CHECK(worst.compared == 6);
    CHECK(worst.analytic == 7);
    CHECK(worst.numeric == Approx(4).epsilon(1e-9));
    CHECK(worst.uncertainty < 1e-10);
    CHECK_THAT(
        report.text,
        ContainsSubstring("weight (2, 3): failed (wrong factor): wrong at 1 of 6 elements; at "
                          "(1, 2) analytic 7, numeric 4 (error about "));
    CHECK_THAT(report.text, ContainsSubstring("for a cotangent of 1 at (1, 2); likely fault: "));
}

TEST_CASE("one wrong element of many thousand is found by halving a random direction") {
    const auto check = [](std::int64_t bad) {
        return gradcheck(
            [bad](In in) {
                return seeded(
                    tanh(in[0].value()), in[0],
                    [bad](const auto& gy, const auto& y) {
                        using V = std::remove_cvref_t<decltype(gy)>;
                        Tensor off = ones({90, 70}, f64);
                        if (bad >= 0) off.set({bad / 70, bad % 70}, 1.5);
                        return gy * (1.0 - y * y) * V(off);
                    },
                    result);
            },
            {named(uneven({90, 70}), "x")}, {.directions = 4, .samples = 6});
    };
    const auto report = check(4321);
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.worst().index == Shape{4321 / 70, 4321 % 70});
    CHECK(check(-1).verdict == Verdict::passed);
}
