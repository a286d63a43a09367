// gradcheck under test: backward passes whose numbers are right, or right at first, but that break
// a promise; parameters that the function reads; gradients of gradients.

#include "autograd/support/checks.hpp"

#include <memory>

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using In = std::span<const Variable>;

/// gx = gy f, by a rule that is told how often it was called before.
template <class F>
CheckedFunction counted(F f) {
    auto calls = std::make_shared<int>(0);
    return [calls, f](In in) {
        return seeded(in[0].value() * 3.0, in[0],
                      [calls, f](const auto& gy) { return gy * f((*calls)++); });
    };
}

void expect_fault(const GradcheckReport& report, GradFault fault, std::string_view text) {
    INFO(report.text);
    CHECK(name(report.verdict) == "failed");
    CHECK(name(report.fault) == name(fault));
    CHECK_THAT(report.text, ContainsSubstring(std::string(text)));
}

const Variable x = x64({{0.5, -1.25, 3.0}, {2.0, 0.75, -0.1}});

}  // namespace

TEST_CASE("a backward pass whose bits change from run to run fails") {
    expect_fault(gradcheck(counted([](int calls) { return 3.0 + 1e-12 * calls; }), {x}),
                 GradFault::not_repeatable,
                 "a second pass over one graph gave other bits at (0, 0)");
    // Counts anew in each graph, so two passes over one graph differ, or none.
    const auto by_graph = [graphs = std::make_shared<int>(0)](In in) {
        const double factor = 3.0 + 1e-12 * ++*graphs;
        return seeded(in[0].value() * 3.0, in[0], [factor](const auto& gy) { return gy * factor; });
    };
    expect_fault(gradcheck(by_graph, {x}), GradFault::not_repeatable,
                 "a pass over a new graph gave other bits at (0, 0)");
}

TEST_CASE("a backward pass that adds a constant fails on a cotangent of zeros") {
    const auto f = [](In in) {
        return seeded(in[0].value() * 3.0, in[0], [](const auto& gy) { return gy * 3.0 + 1e-11; });
    };
    expect_fault(gradcheck(f, {x}), GradFault::not_linear,
                 "a cotangent of zeros gave a gradient at (0, 0): 1e-11, not 0");
}

TEST_CASE("a rule that reads the gradient of its input breaks accumulation") {
    const auto f = [](In in) {
        const auto leaf = std::make_shared<Variable>(in[0]);
        return seeded(in[0].value() * 3.0, in[0], [leaf](const auto& gy) {
            leaf->zero_grad();
            return gy * 3.0;
        });
    };
    expect_fault(gradcheck(f, {x}), GradFault::accumulation,
                 "a second backward() did not add as much again at (0, 0)");
}

TEST_CASE("a forward pass that depends on grad mode fails") {
    const auto f = [](In in) { return in[0] * (grad_enabled() ? 1.001 : 1.0); };
    const auto report = gradcheck(f, {x});
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.fault == GradFault::passes_differ);
    CHECK_THAT(report.text,
               ContainsSubstring("at (0, 0) the function is 0.5005 in grad mode, 0.5 without"));
}

TEST_CASE("what a backward pass throws is reported") {
    const auto threw = [](auto rule) {
        return gradcheck([rule](In in) { return seeded(in[0].value() * 3.0, in[0], rule); }, {x});
    };
    expect_fault(threw([](const auto& gy) { return sum(gy, {.axes = {1}}); }), GradFault::threw,
                 "gradcheck: failed: the backward pass threw: backward of seeded: the gradient of "
                 "input 0 has shape (2,), the input has (2, 3)");
    expect_fault(threw([](const auto& gy) { return std::remove_cvref_t<decltype(gy)>(); }),
                 GradFault::threw, "backward of seeded: the gradient of input 0 is missing");
    expect_fault(threw([](const auto& gy) {
                     return std::remove_cvref_t<decltype(gy)>(ones(gy.shape(), f32));
                 }),
                 GradFault::threw, "the gradient of input 0 is f32, the input is f64");
    expect_fault(threw([](const auto& gy) {
                     if (gy.defined()) throw std::logic_error("not today");
                     return gy;
                 }),
                 GradFault::threw, "the backward pass threw: not today");
}

TEST_CASE("parameters that the function reads are checked, and put back") {
    Variable w = x64({{1.5, -0.5}, {0.25, 2.0}, {-1.0, 0.75}}, "w");
    Variable b = x64({0.1, -0.2}, "b");
    const Tensor value = w.value();
    const Tensor kept = tensor({7.0, 8.0}, f64);
    b.set_grad(kept);
    const auto good = [&](In in) { return matmul(in[0], w) + tanh(b); };
    const auto report = gradcheck(good, {x}, {.parameters = {w, b}});
    INFO(report.text);
    CHECK(report);
    CHECK(report.inputs.size() == 3);
    CHECK(report.inputs[2].input == "b");
    CHECK(report.unchecked.empty());
    CHECK(w.value().shares_buffer_with(value));
    CHECK_FALSE(w.has_grad());
    CHECK(same_bits(b.grad(), kept));
    CHECK(gradgradcheck(good, {x}, {.parameters = {w, b}}));

    const auto bad = [&](In in) { return matmul(in[0], w) + tanh(b).detach(); };
    expect_fault(gradcheck(bad, {x}, {.parameters = {w, b}}), GradFault::missing_path,
                 "b (2,): failed (missing path)");
    CHECK(w.value().shares_buffer_with(value));
}

TEST_CASE("parameters that are not checked are listed") {
    Variable w = x64({{1.5, -0.5}, {0.25, 2.0}, {-1.0, 0.75}}, "w");
    Variable frozen = x64({0.1, -0.2}, "frozen");
    frozen.set_requires_grad(false);
    const auto report =
        gradcheck([&](In in) { return matmul(in[0], w) + frozen; }, {x}, {.parameters = {frozen}});
    INFO(report.text);
    CHECK(report);
    CHECK(report.unchecked ==
          std::vector<std::string>{
              "frozen, which is frozen",
              "a parameter of shape (3, 2) that the function reads; list it in .parameters"});
    CHECK_THAT(report.text, ContainsSubstring("\n  not checked: frozen, which is frozen\n"));
    CHECK_FALSE(w.has_grad());
}

TEST_CASE("values are put back when the function throws in the middle of the check") {
    Variable w = x64({1.5, -0.5}, "w");
    const Tensor value = w.value();
    int calls = 0;
    const auto report = gradcheck(
        [&](In in) {
            if (++calls == 20) throw std::runtime_error("call 20");
            return in[0] * w;
        },
        {x64({1.0, 2.0})}, {.parameters = {w}});
    CHECK(report.text == "gradcheck: invalid: the function threw: call 20");
    CHECK(w.value().shares_buffer_with(value));
}

TEST_CASE("a first derivative that is right and a second that is not is caught by gradgradcheck") {
    struct Case {
        std::string what;
        CheckedFunction f;
        std::string text;
    };
    const std::vector<Case> cases{
        {"a factor taken from numbers",
         [](In in) {
             const Tensor slope = in[0].value() * 2.0;
             return seeded(pow(in[0].value(), 2), in[0], [slope](const auto& gy) {
                 return gy * std::remove_cvref_t<decltype(gy)>(slope);
             });
         },
         "x (2, 3): failed (missing path): wrong at 6 of 6 elements"},
        {"a result saved as a constant",
         [](In in) {
             const Variable y(exp(in[0].value()));
             return seeded(
                 y.value(), in[0], [](const auto& gy, const auto& saved) { return gy * saved; }, y);
         },
         "no gradient arrives, though the first derivative depends on it: its rule reads it "
         "outside "
         "the graph"},
        {"half of the formula from a constant",
         [](In in) {
             const Variable constant(softmax(in[0].value()));
             return seeded(
                 constant.value(), in[0],
                 [](const auto& gy, const auto& y, const auto& fixed) {
                     return y * (gy - sum(gy * fixed, {.axes = {-1}, .keepdims = true}));
                 },
                 result, constant);
         },
         "x (2, 3): failed ("},
    };
    for (const Case& each : cases) {
        INFO(each.what);
        const auto first = gradcheck(each.f, {x});
        INFO(first.text);
        CHECK(first);
        const auto second = gradgradcheck(each.f, {x});
        INFO(second.text);
        CHECK(second.verdict == Verdict::failed);
        CHECK(second.worst().input == "x");
        CHECK_THAT(second.text, ContainsSubstring(each.text));
    }
}

TEST_CASE("a recorded pass that differs from the usual one is caught by gradgradcheck") {
    const auto f = [](In in) {
        return seeded(
            exp(in[0].value()), in[0],
            [](const auto& gy, const auto& y) {
                if constexpr (std::is_same_v<std::remove_cvref_t<decltype(gy)>, Tensor>) {
                    return gy * y;
                } else {
                    return gy * y * 1.01;
                }
            },
            result);
    };
    CHECK(gradcheck(f, {x}));
    const auto report = gradgradcheck(f, {x});
    INFO(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.fault == GradFault::passes_differ);
    CHECK_THAT(report.text, ContainsSubstring("the gradient is "));
}

TEST_CASE("gradgradcheck reports what the first backward pass throws") {
    const auto f = [](In in) {
        return seeded(in[0].value() * 3.0, in[0],
                      [](const auto& gy) { return sum(gy, {.axes = {1}}); });
    };
    expect_fault(gradgradcheck(f, {x}), GradFault::threw,
                 "gradgradcheck: failed: the first backward pass threw: backward of seeded: ");
}

TEST_CASE("gradgradcheck accepts linear functions, whose second derivative is zero") {
    const Variable w = x64({{1.5, -0.5}, {0.25, 2.0}, {-1.0, 0.75}}, "w");
    CHECK(gradgradcheck([](In in) { return in[0] * 3.0; }, {x}));
    CHECK(gradgradcheck([](In in) { return matmul(in[0], in[1]); }, {x, w}));
    CHECK(gradgradcheck([](In in) { return sum(in[0] * in[0] * in[0]); }, {x}));
}

TEST_CASE("gradcheck works under NoGrad and leaves grad mode alone") {
    const NoGrad off;
    CHECK(gradcheck([](In in) { return exp(in[0]); }, {x}));
    CHECK(gradgradcheck([](In in) { return exp(in[0]); }, {x}));
    CHECK_FALSE(grad_enabled());
}

TEST_CASE("each verdict and each fault has a name") {
    CHECK(name(Verdict::not_differentiable) == "not differentiable");
    for (int i = 0; i <= int(GradFault::passes_differ); ++i) {
        const std::string_view text = name(GradFault(i));
        CHECK_FALSE(text.empty());
        CHECK((text == "unknown") == (GradFault(i) == GradFault::unknown));
    }
}
