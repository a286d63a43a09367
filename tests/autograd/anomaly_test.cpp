// Anomaly: the op that made a NaN or an infinity, told apart from those that pass it on.

#include "autograd/support/checks.hpp"

#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

constexpr AnomalyOptions collect{.on_anomaly = OnAnomaly::collect};

Variable masked(const Variable& scores) {
    Tensor allowed = Tensor::empty(scores.shape(), boolean);
    for (std::int64_t i = 0; i < scores.size(0); ++i) {
        for (std::int64_t j = 0; j < scores.size(1); ++j) {
            allowed.set({i, j}, j <= i ? 1 : 0);
        }
    }
    return where(Variable(allowed), scores, Variable(full({}, -infinity, scores.dtype())));
}

}  // namespace

TEST_CASE("the op that made an infinity is named, with what it read") {
    const Variable p = parameter(tensor({{0.5, 1.0}, {0.0, 2.0}}, f64), "p");
    AnomalyMode watch(collect);
    {
        const Scope blocks("blocks");
        const Scope one("1");
        exp(log(p) * 2.0) + p;
    }
    REQUIRE(watch->reports().size() == 1);
    const AnomalyReport& report = watch->reports().front();
    CHECK(report.op == "log");
    CHECK(report.scope == "blocks.1");
    CHECK(report.pass == AnomalyReport::Pass::forward);
    CHECK(report.cause == AnomalyReport::Cause::made);
    CHECK_FALSE(report.nan);
    CHECK(report.index == Shape{1, 0});
    CHECK(report.value == -infinity);
    REQUIRE(report.inputs.size() == 1);
    CHECK(report.inputs[0].name == "x 'p'");
    CHECK(report.inputs[0].min == 0);
    CHECK(report.inputs[0].max == 2);
    CHECK(report.inputs[0].mean == 0.875);
    CHECK(report.inputs[0].nans == 0);
    CHECK(report.result.infinities == 1);
    CHECK(report.text ==
          "anomaly: log made -inf at (1, 0) of its result in the forward pass, in blocks.1; read x "
          "'p', f64 (2, 2), min 0, max 2, mean 0.875; gave the result (result of log), f64 (2, 2), "
          "min -0.6931, max 0.6931, mean 0, 1 infinite");
    CHECK(watch->passed_on() == 1);  // scale; exp(-inf) is 0 again
}

TEST_CASE("told to fail, it throws at the op with the same text") {
    const Variable a = parameter(tensor({1.0, 0.0}, f64), "a");
    const Variable b = parameter(tensor({2.0, 0.0}, f64), "b");
    const AnomalyMode watch;
    const Scope scope("head");
    const std::string text = message_of<ValueError>([&] { a / b; });
    CHECK(text ==
          "anomaly: div made a NaN at (1,) of its result in the forward pass, in head; read a 'a', "
          "f64 (2,), min 0, max 1, mean 0.5; b 'b', f64 (2,), min 0, max 2, mean 1; gave the "
          "result (result of div), f64 (2,), min 0.5, max 0.5, mean 0.5, 1 NaN");
    CHECK(watch->reports().front().text == text);
}

TEST_CASE("the rule that made a bad gradient is named, and not those that pass it on") {
    const Variable x = parameter(tensor({4.0, 0.0, 1.0}, f64), "x");
    const AnomalyMode watch(collect);
    backward(sum(sqrt(x * 2.0)));
    REQUIRE(watch->reports().size() == 1);
    const AnomalyReport& report = watch->reports().front();
    CHECK(report.op == "sqrt");
    CHECK(report.pass == AnomalyReport::Pass::backward);
    CHECK(report.text ==
          "anomaly: sqrt made inf at (1,) of the gradient of x in the backward pass; read gy, f64 "
          "(3,), min 1, max 1, mean 1; saved (result of sqrt), f64 (3,), min 0, max 2.828, mean "
          "1.414; gave the gradient of x, f64 (3,), min 0.1768, max 0.3536, mean 0.2652, 1 "
          "infinite");
    CHECK(watch->passed_on() == 1);
}

TEST_CASE("a bad gradient of a value that was bad before is not another anomaly") {
    const Variable x = parameter(tensor({-1.0, 2.0}, f64), "x");
    const AnomalyMode watch(collect);
    backward(sum(exp(sqrt(x))));
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().op == "sqrt");
    CHECK(watch->reports().front().nan);
    CHECK(watch->reports().front().pass == AnomalyReport::Pass::forward);
}

TEST_CASE("infinities of a mask are meant, in both passes") {
    for (const DType dtype : {f32, f64}) {
        const Variable q = parameter(uneven({4, 3}).astype(dtype), "q");
        const Variable k = parameter(uneven({4, 3}, -1, 1, 2).astype(dtype), "k");
        const Variable v = parameter(uneven({4, 2}, -1, 1, 3).astype(dtype), "v");
        const AnomalyMode watch;
        const Variable scores = matmul(q, k, {.transpose_b = true});
        backward(sum(matmul(softmax(masked(scores)), v)));
        backward(sum(matmul(exp(log_softmax(masked(matmul(q, k, {.transpose_b = true})))), v)));
        CHECK(watch->reports().empty());
        CHECK(watch->text() == "no anomaly");
    }
    const Variable x = parameter(tensor({1.0, 2.0}, f64), "x");
    const AnomalyMode watch(collect);
    exp(x + -infinity);
    exp(x * Variable(tensor({-infinity, 1.0}, f64)));
    CHECK(watch->reports().empty());
    // A NaN that is computed from a meant infinity is not meant.
    const Variable hidden = x + -infinity;
    hidden - hidden;
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().op == "sub");
}

TEST_CASE("a NaN that no op made is said to have come in") {
    const Variable w = parameter(tensor({1.0, not_a_number}, f64), "w");
    const Variable x = parameter(tensor({1.0, 2.0}, f64), "x");
    AnomalyMode watch(collect);
    (x * w) + w;
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().cause == AnomalyReport::Cause::came_in);
    CHECK(watch->reports().front().text ==
          "anomaly: a NaN came in at (1,) of b 'w', read by mul in the forward pass; read a "
          "'x', f64 (2,), min 1, max 2, mean 1.5; b 'w', f64 (2,), min 1, max 1, mean 1, 1 NaN; "
          "gave the result (result of mul), f64 (2,), min 1, max 1, mean 1, 1 NaN");
}

TEST_CASE("bad cotangents and hooks are named as what brought a NaN in") {
    const Variable x = parameter(tensor({1.0, 2.0}, f64), "x");
    {
        const AnomalyMode watch(collect);
        backward(x * 2.0, {.gradient = tensor({1.0, not_a_number}, f64)});
        REQUIRE(watch->reports().size() == 1);
        CHECK(watch->reports().front().where == "a cotangent or a hook");
        CHECK(watch->passed_on() == 1);
    }
    Variable hooked = x * 3.0;
    hooked.register_hook([](const Variable& g) { return g * infinity; });
    const AnomalyMode watch(collect);
    backward(sum(hooked));
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().cause == AnomalyReport::Cause::came_in);
    CHECK_FALSE(watch->reports().front().nan);
}

TEST_CASE("gradients that overflow when they are added up are found") {
    const Variable x = parameter(tensor({0.1, 0.2}, f64), "x");
    const AnomalyMode watch(collect);
    backward(sum(x * 1e308 + x * 1.7e308));
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().op == "accumulate");
}

TEST_CASE("infinities can be left alone, reports be limited and cleared") {
    const Variable x = parameter(tensor({0.0, 2.0}, f64), "x");
    {
        const AnomalyMode watch({.infinities = false});
        backward(sum(sqrt(x)));
        CHECK(watch->reports().empty());
    }
    Anomaly anomaly({.on_anomaly = OnAnomaly::collect, .limit = 2});
    {
        const Observing observing(anomaly);
        for (int i = 0; i < 5; ++i) log(x);
    }
    CHECK(anomaly.reports().size() == 2);
    CHECK_THAT(anomaly.text(), Catch::Matchers::ContainsSubstring("and 3 more"));
    anomaly.clear();
    CHECK(anomaly.text() == "no anomaly");
}

TEST_CASE("a pass that is watched has the bits of one that is not") {
    const Variable x = parameter(uneven({5, 7}), "x");
    const auto f = [&] { return sum(softmax(tanh(x) * x) * x); };
    const Tensor plain = grad({f()}, {x}).front().value();
    const AnomalyMode watch;
    CHECK(same_bits(grad({f()}, {x}).front().value(), plain));
}

TEST_CASE("after a throwing anomaly the engine goes on, with gradients as before") {
    const Variable x = parameter(tensor({4.0, 0.0}, f64), "x");
    const Variable w = parameter(tensor({1.0, 2.0}, f64), "w");
    {
        const AnomalyMode watch;
        CHECK_THROWS_AS(backward(sum(sqrt(x) * w)), ValueError);
        CHECK_FALSE(x.has_grad());
        CHECK_FALSE(w.has_grad());
    }
    backward(sum(w * w));
    CHECK(same_bits(w.grad(), w.value() * 2.0));
}

TEST_CASE("what a checkpoint computes again is not reported again") {
    const Variable x = parameter(tensor({0.0, 2.0}, f64), "x");
    const AnomalyMode watch({.on_anomaly = OnAnomaly::collect, .infinities = true});
    backward(sum(checkpoint([](std::span<const Variable> in) { return exp(log(in[0])); }, {x})));
    REQUIRE(watch->reports().size() == 1);
    CHECK(watch->reports().front().op == "log");
}
