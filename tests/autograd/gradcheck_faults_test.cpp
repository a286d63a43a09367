// gradcheck itself under test: derivatives with paths, sums or terms missing are caught and named.

#include "autograd/support/faults.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

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
