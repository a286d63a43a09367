// gradcheck of inputs and results with too many elements to look at one by one.

#include "autograd/support/faults.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("a fault of all elements is named for large inputs, too") {
    const auto report = gradcheck(
        [](In in) {
            return seeded(
                pow(in[0].value(), 2), in[0], [](const auto& gy, const auto& x) { return gy * x; },
                in[0]);
        },
        {named(uneven({90, 70}), "x")}, {.directions = 2, .samples = 5});
    INFO(report.text);
    CHECK(report.fault == GradFault::factor);
    CHECK_THAT(report.text, ContainsSubstring("a factor 2 is missing"));
}

TEST_CASE("a table of which few rows are read has power along directions") {
    // 24 samples of 6,300 elements may all miss the row that is read.
    const auto read = [](double wrong) {
        return [wrong](In in) {
            const Tensor row = slice(in[0].value(), 0, {.start = 17, .stop = 18});
            return seeded(row * row, in[0], [row, wrong](const auto& gy) {
                using V = std::remove_cvref_t<decltype(gy)>;
                return slice_scatter(gy * V(row * wrong), {90, 70}, 0, {.start = 17, .stop = 18});
            });
        };
    };
    const std::vector<Variable> x{named(uneven({90, 70}), "table")};
    const auto right = gradcheck(read(2), x, {.directions = 3, .samples = 2});
    INFO(right.text);
    CHECK(right);
    const auto wrong = gradcheck(read(1), x, {.directions = 3, .samples = 2});
    INFO(wrong.text);
    CHECK(wrong.verdict == Verdict::failed);
    CHECK(wrong.worst().index[0] == 17);
}

TEST_CASE("a kink of one element among many is found") {
    Tensor at = uneven({90, 70});
    at.set({55, 44}, 0);
    const auto report = gradcheck([](In in) { return relu(in[0]); }, {named(at, "x")},
                                  {.directions = 2, .samples = 4});
    INFO(report.text);
    CHECK(report.verdict == Verdict::not_differentiable);
    CHECK(report.worst().index == Shape{55, 44});
}

TEST_CASE("a direction that is off fails, though each element is within its tolerance") {
    const auto report = gradcheck(
        [](In in) {
            return seeded(in[0].value() * 2.0, in[0], [](const auto& gy) { return gy * 2.2; });
        },
        {named(uneven({90, 70}), "x")}, {.floor = 0.5, .directions = 2, .samples = 4});
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK_THAT(report.text, ContainsSubstring("along a random direction through all elements"));
}

TEST_CASE("large results get random cotangents and some one-hot ones") {
    const std::vector<Variable> x{named(uneven({3, 4}), "x")};
    const auto spread = [](double wrong) {
        return [wrong](In in) {
            return seeded(
                broadcast_to(exp(in[0].value()), {40, 3, 4}), in[0],
                [wrong](const auto& gy, const auto& y) {
                    return sum(gy * y, {.axes = {0}}) * wrong;
                },
                result);
        };
    };
    CHECK(gradcheck(spread(1), x));
    const auto report = gradcheck(spread(1.0 / 40), x);
    INFO(report.text);
    CHECK_THAT(report.text, ContainsSubstring("1/40 too much, the size of axis 0 of the result"));
}
