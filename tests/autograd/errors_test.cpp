// The text of every error of autograd/, as a user meets it.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

namespace {

struct Case {
    std::string what;
    std::function<void()> call;
    std::string text;
};

template <class E>
void expect(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
        INFO(each.what);
        CHECK(message_of<E>(each.call) == each.text);
    }
}

const OpRow argmax_row{.name = "argmax", .forward = "y = index of the largest x", .backward = ""};

}  // namespace

TEST_CASE("errors of backward() say what to do") {
    const Variable x = parameter(uneven({2, 3}), "x");
    const Variable swept = sum(x * x);
    backward(swept);
    expect<GraphError>({
        {"more than one element", [&] { backward(x * 2.0); },
         "backward: result of scale of shape (2, 3) has 6 elements, not one; reduce it with sum or "
         "mean, or pass a cotangent as {.gradient = …}"},
        {"a leaf with more than one element", [&] { backward(x); },
         "backward: 'x' of shape (2, 3) has 6 elements, not one; reduce it with sum or mean, or "
         "pass a cotangent as {.gradient = …}"},
        {"a constant", [&] { backward(Variable(tensor(1.0))); },
         "backward: constant of shape () requires no gradient; it was computed from constants, "
         "from detached values or under NoGrad; wrap what should be trained in parameter()"},
        {"a detached result", [&] { backward(sum(x.detach())); },
         "backward: constant of shape () requires no gradient; it was computed from constants, "
         "from detached values or under NoGrad; wrap what should be trained in parameter()"},
        {"a second sweep", [&] { backward(swept); },
         "backward: the graph behind the result of sum was swept before, and what it had saved is "
         "gone; pass {.retain_graph = true} to the first backward, or compute the result again"},
    });
    expect<ShapeError>({{"a cotangent of another shape",
                         [&] {
                             backward(x * 2.0, {.gradient = ones({3, 2}, f64)});
                         },
                         "backward: the cotangent has shape (3, 2), result of scale of shape (2, "
                         "3) needs (2, 3)"}});
    expect<TypeError>({{"a cotangent of another type",
                        [&] {
                            backward(x * 2.0, {.gradient = ones({2, 3})});
                        },
                        "backward: the cotangent is f32, result of scale of shape (2, 3) is f64; "
                        "convert it with astype"}});
    expect<GraphError>({{"an undefined variable", [] { backward(Variable()); },
                         "backward: an undefined variable requires no gradient; it was computed "
                         "from constants, from detached values or under NoGrad; wrap what should "
                         "be trained in parameter()"}});
}

TEST_CASE("errors of grad() name the input or output") {
    const Variable x = parameter(uneven({2, 3}), "x");
    const Variable w = parameter(uneven({3}), "w");
    const Variable c(uneven({3}));
    expect<GraphError>({
        {"an input that nothing depends on",
         [&] {
             grad({sum(x)}, {x, w});
         },
         "grad: no output depends on input 1, 'w' of shape (3,); the path was severed (detach, "
         "NoGrad, value()) or never there; allow it with {.allow_unused = true}"},
        {"an input whose path is severed", [&] { grad({sum(x * w.detach())}, {w}); },
         "grad: no output depends on input 0, 'w' of shape (3,); the path was severed (detach, "
         "NoGrad, value()) or never there; allow it with {.allow_unused = true}"},
        {"a constant input",
         [&] {
             grad({sum(x)}, {x, c});
         },
         "grad: input 1, constant of shape (3,), requires no gradient; make it a parameter before "
         "computing with it"},
        {"a constant output", [&] { grad({sum(c)}, {x}); },
         "grad: constant of shape () requires no gradient; it was computed from constants, from "
         "detached values or under NoGrad; wrap what should be trained in parameter()"},
        {"an output of several elements", [&] { grad({x * 2.0}, {x}); },
         "grad: result of scale of shape (2, 3) has 6 elements, not one; reduce it with sum or "
         "mean, or pass cotangents as {.grad_outputs = …}"},
    });
    expect<ValueError>({
        {"too few cotangents",
         [&] {
             grad({sum(x), sum(w)}, {x}, {.grad_outputs = {Variable(tensor(1.0, f64))}});
         },
         "grad: 2 outputs but 1 cotangents"},
    });
    expect<ShapeError>({
        {"a cotangent of another shape",
         [&] {
             grad({w * 2.0}, {w}, {.grad_outputs = {Variable(ones({1, 3}, f64))}});
         },
         "grad: the cotangent has shape (1, 3), result of scale of shape (3,) needs (3,)"},
    });
    expect<TypeError>({
        {"a cotangent of another type",
         [&] { grad({w * 2.0}, {w}, {.grad_outputs = {Variable(ones({3}))}}); },
         "grad: the cotangent is f32, result of scale of shape (3,) is f64; convert it with "
         "astype"},
    });
}

TEST_CASE("errors of leaves name the variable") {
    Variable x = parameter(uneven({2, 3}), "x");
    Variable y = x * 2.0;
    Variable c(uneven({2}));
    expect<GraphError>({
        {"set_value on a result",
         [&] {
             y.set_value(zeros({2, 3}, f64));
         },
         "set_value: result of scale of shape (2, 3) is the result of scale; writing to it would "
         "lose its gradient; use detach() for a constant copy"},
        {"mutable_value on a result", [&] { y.mutable_value(); },
         "mutable_value: result of scale of shape (2, 3) is the result of scale; writing to it "
         "would lose its gradient; use detach() for a constant copy"},
        {"set_requires_grad on a result", [&] { y.set_requires_grad(false); },
         "set_requires_grad: result of scale of shape (2, 3) is the result of scale; only leaves "
         "can be changed; use detach() for a constant copy"},
        {"set_grad on a constant", [&] { c.set_grad(zeros({2}, f64)); },
         "set_grad: constant of shape (2,) requires no gradient; make it a parameter first"},
        {"retain_grad on a constant", [&] { c.retain_grad(); },
         "retain_grad: constant of shape (2,) requires no gradient; it was computed from constants "
         "or under NoGrad"},
        {"register_hook on a constant",
         [&] { c.register_hook([](const Variable& g) { return g; }); },
         "register_hook: constant of shape (2,) requires no gradient; it was computed from "
         "constants or under NoGrad"},
    });
    expect<ShapeError>({
        {"a value of another shape",
         [&] {
             x.set_value(zeros({3, 2}, f64));
         },
         "set_value: the value of 'x' has shape (2, 3), got (3, 2)"},
        {"a gradient of another shape", [&] { x.set_grad(zeros({3}, f64)); },
         "set_grad: the value of 'x' has shape (2, 3), got (3,)"},
    });
    expect<TypeError>({
        {"a value of another type",
         [&] {
             x.set_value(zeros({2, 3}));
         },
         "set_value: the value of 'x' is f64, got f32; convert it with astype"},
        {"a parameter of integers", [] { parameter(arange(3)); },
         "parameter: a i64 tensor of shape (3,) has no gradient; convert it with astype(f32) or "
         "astype(f64)"},
        {"a gradient for a mask", [] { Variable(zeros({2}, boolean)).set_requires_grad(true); },
         "set_requires_grad: a boolean tensor of shape (2,) has no gradient; convert it with "
         "astype(f32) or astype(f64)"},
    });
    expect<ValueError>({
        {"an undefined tensor", [] { parameter(Tensor()); }, "parameter: the tensor is undefined"},
        {"an undefined variable", [] { (void)Variable().shape(); },
         "variable: undefined (default-constructed or moved from)"},
        {"an op on an undefined variable", [] { exp(Variable()); },
         "variable: undefined (default-constructed or moved from)"},
    });
}

TEST_CASE("an op without a derivative throws when a gradient would be lost, and only then") {
    const Variable x = parameter(uneven({2, 3}), "scores");
    const auto call = [&](const Variable& v) {
        return record_without_derivative(argmax_row, argmax(v.value()), std::span(&v, 1));
    };
    CHECK(
        message_of<GraphError>([&] { call(x); }) ==
        "argmax: has no derivative, and 'scores' of shape (2, 3) requires a gradient, which would "
        "be lost; compute it under NoGrad, or on x.detach()");
    CHECK_FALSE(call(x.detach()).requires_grad());
    const NoGrad off;
    CHECK_FALSE(call(x).requires_grad());
}

TEST_CASE("a rule that answers wrongly is an error that names op and input") {
    const Variable x = parameter(uneven({2, 3}), "x");
    const auto sweep = [&](auto rule) { backward(sum(seeded(x.value() * 2.0, x, rule))); };
    const auto recorded = [&](auto rule) {
        grad({sum(seeded(x.value() * 2.0, x, rule))}, {x}, {.create_graph = true});
    };
    const auto nothing = [](const auto& gy) { return std::remove_cvref_t<decltype(gy)>(); };
    const auto narrow = [](const auto& gy) { return sum(gy, {.axes = {0}}); };
    const auto other = [](const auto& gy) { return reshape(gy, {3, 2}); };
    const auto type = [](const auto& gy) {
        return std::remove_cvref_t<decltype(gy)>(ones({2, 3}, f32));
    };
    const std::string missing =
        "backward of seeded: the gradient of input 0 is missing; return zeros where the derivative "
        "is zero";
    CHECK(message_of<GraphError>([&] { sweep(nothing); }) == missing);
    CHECK(message_of<GraphError>([&] { recorded(nothing); }) == missing);
    const std::string shape =
        "backward of seeded: the gradient of input 0 has shape (3,), the input has (2, 3)";
    CHECK(message_of<ShapeError>([&] { sweep(narrow); }) == shape);
    CHECK(message_of<ShapeError>([&] { recorded(narrow); }) == shape);
    CHECK(message_of<ShapeError>([&] { sweep(other); }) ==
          "backward of seeded: the gradient of input 0 has shape (3, 2), the input has (2, 3)");
    const std::string wrong_type =
        "backward of seeded: the gradient of input 0 is f32, the input is f64";
    CHECK(message_of<TypeError>([&] { sweep(type); }) == wrong_type);
    CHECK(message_of<TypeError>([&] { recorded(type); }) == wrong_type);
    CHECK_FALSE(x.has_grad());
}

TEST_CASE("an error in a backward pass says where the op was computed") {
    const Variable x = parameter(uneven({2, 3}), "x");
    Variable y;
    {
        const Scope block("blocks");
        const Scope first("1");
        const Scope layer("attention");
        y = seeded(x.value() * 2.0, x, [](const auto& gy) { return reshape(gy, {3, 2}); });
    }
    CHECK_THAT(message_of<ShapeError>([&] { backward(sum(y)); }),
               EndsWith("the input has (2, 3), in blocks.1.attention"));
}

TEST_CASE("an error in a forward pass says where, too") {
    const Variable x = parameter(uneven({2, 3}), "x");
    const Scope layer("encoder");
    CHECK_THAT(message_of<ShapeError>([&] { matmul(x, x); }), ContainsSubstring(", in encoder"));
}

TEST_CASE("variables describe themselves") {
    const Variable x = parameter(uneven({2, 3}), "x");
    CHECK(describe(x) == "'x' of shape (2, 3)");
    CHECK(describe(exp(x)) == "result of exp of shape (2, 3)");
    CHECK(describe(exp(x).set_name("y")) == "'y' of shape (2, 3)");
    CHECK(describe(parameter(ones({3}))) == "parameter of shape (3,)");
    CHECK(describe(Variable(ones({3}))) == "constant of shape (3,)");
    CHECK(describe(Variable()) == "an undefined variable");
}
