// Hooks on gradients, and what happens to an interrupted sweep.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

TEST_CASE("hooks see the whole gradient once, in the order they were registered") {
    Variable x = x64({1.0, 2.0});
    Variable y = x * 1.0;
    std::vector<std::string> calls;
    const auto note = [&](const char* name) {
        return [&calls, name](const Variable& g) {
            calls.push_back(name);
            CHECK(close(g.value(), tensor({5.0, 7.0}, f64)));
            return Variable();
        };
    };
    y.register_hook(note("first"));
    y.register_hook(note("second"));
    x.register_hook(note("leaf"));
    backward(sum(y * Variable(tensor({2.0, 3.0}, f64)) + y * Variable(tensor({3.0, 4.0}, f64))));
    CHECK(calls == std::vector<std::string>{"first", "second", "leaf"});
}

TEST_CASE("a hook replaces the gradient for those after it") {
    Variable x = x64({1.0, 2.0});
    Variable y = x * 3.0;
    y.retain_grad();
    y.register_hook([](const Variable& g) { return g * 10.0; });
    y.register_hook([](const Variable& g) {
        CHECK(close(g.value(), full({2}, 10, f64)));
        return g + 1.0;
    });
    backward(sum(y));
    CHECK(close(y.grad(), full({2}, 11, f64)));
    CHECK(close(x.grad(), full({2}, 33, f64)));
}

TEST_CASE("a hook on a leaf clips what is added, not what was there") {
    Variable x = x64({1.0, 2.0});
    x.set_grad(full({2}, 100, f64));
    x.register_hook([](const Variable&) { return Variable(ones({2}, f64)); });
    backward(sum(x * 50.0));
    CHECK(close(x.grad(), full({2}, 101, f64)));
}

TEST_CASE("a removed hook is not called; a hook may remove itself") {
    Variable x = x64({1.0, 2.0});
    int calls = 0;
    const std::int64_t first = x.register_hook([&](const Variable&) {
        ++calls;
        return Variable();
    });
    std::int64_t second = 0;
    second = x.register_hook([&, handle = x](const Variable&) mutable {
        calls += 100;
        handle.remove_hook(second);
        return Variable();
    });
    backward(sum(x * 2.0));
    CHECK(calls == 101);
    backward(sum(x * 2.0));
    CHECK(calls == 102);
    x.remove_hook(first);
    x.remove_hook(first);
    backward(sum(x * 2.0));
    CHECK(calls == 102);
    // The hook held its own variable: removing it has broken that cycle.
}

TEST_CASE("hooks work in grad(), recorded passes included") {
    Variable x = x64({1.0, 2.0});
    Variable y = x * x;
    y.register_hook([](const Variable& g) { return g * 10.0; });
    const Variable z = sum(y * y);
    CHECK(close(grad({z}, {x}, {.retain_graph = true})[0].value(), tensor({40.0, 320.0}, f64)));
    const Variable g = grad({z}, {x}, {.create_graph = true})[0];
    CHECK(close(g.value(), tensor({40.0, 320.0}, f64)));
    CHECK(g.requires_grad());
    // g = 10 * 2 y * 2 x. Backward through it the hook of y is met again: the path through y, with
    // slope 10 * 2 * 2 x * 2 x = 80 x², counts ten times; the direct one, 40 y = 40 x², once.
    CHECK(close(grad({sum(g)}, {x})[0].value(), tensor({840.0, 3360.0}, f64)));
}

TEST_CASE("a hook that returns another shape or type is an error") {
    Variable x = x64({1.0, 2.0});
    const std::int64_t hook =
        x.register_hook([](const Variable&) { return Variable(ones({3}, f64)); });
    CHECK(message_of<ShapeError>([&] { backward(sum(x * 2.0)); }) ==
          "hook: returned a gradient of f64 (3,), the value is f64 (2,)");
    x.remove_hook(hook);
    x.register_hook([](const Variable&) { return Variable(ones({2})); });
    CHECK(message_of([&] { backward(sum(x * 2.0)); }) ==
          "hook: returned a gradient of f32 (2,), the value is f64 (2,)");
    CHECK_FALSE(x.has_grad());
}

TEST_CASE("a hook that throws leaves all gradients as they were, and the engine usable") {
    Variable a = x64({1.0, 2.0}, "a");
    Variable b = x64({3.0, 4.0}, "b");
    a.set_grad(full({2}, 7, f64));
    const Variable late = a * 2.0;  // swept last
    Variable middle = late * 3.0;
    const std::int64_t hook = middle.register_hook(
        [](const Variable&) -> Variable { throw std::runtime_error("enough"); });
    const Variable y = sum(middle + b * 5.0);
    const std::string text = message_of([&] { backward(y, {.retain_graph = true}); });
    CHECK(text == "another type of error: enough");
    CHECK(close(a.grad(), full({2}, 7, f64), 0));
    CHECK_FALSE(b.has_grad());
    CHECK(grad_enabled());

    middle.remove_hook(hook);
    backward(y, {.retain_graph = true});
    CHECK(close(a.grad(), full({2}, 13, f64)));
    CHECK(close(b.grad(), full({2}, 5, f64)));
    const Variable other = sum(a * b);
    backward(other);
    CHECK(close(b.grad(), tensor({6.0, 7.0}, f64)));
}

TEST_CASE("a hook may sweep another graph") {
    Variable x = x64({1.0, 2.0});
    const Variable w = x64({5.0, 6.0}, "w");
    Variable y = x * 2.0;
    y.register_hook([&](const Variable& g) {
        const GradMode on(true);
        backward(sum(w * w * Variable(g.value())));
        return Variable();
    });
    backward(sum(y * 3.0));
    CHECK(close(x.grad(), full({2}, 6, f64)));
    CHECK(close(w.grad(), tensor({30.0, 36.0}, f64)));
}

TEST_CASE("a sweep from inside a hook over the same graph is a clear error") {
    Variable x = x64({1.0, 2.0});
    Variable y = x * 2.0;
    Variable z = sum(y * y);
    y.register_hook([&](const Variable&) {
        backward(z, {.retain_graph = true});
        return Variable();
    });
    CHECK(message_of<GraphError>([&] { backward(z, {.retain_graph = true}); }) ==
          "backward: called inside another backward over the same graph, which holds the result of "
          "sum; finish the first one, or detach() what the inner one needs");
    CHECK_FALSE(x.has_grad());
}

TEST_CASE("a sweep from inside a rule over the same graph is the same error") {
    const Variable x = x64({1.0, 2.0});
    const Variable inner = sum(x * x);
    const Variable y = seeded(x.value() * 3.0, x, [inner](const auto& gy) {
        backward(inner, {.retain_graph = true});
        return gy * 3.0;
    });
    CHECK(message_of<GraphError>([&] { backward(sum(y) + inner); }).substr(0, 60) ==
          "backward: called inside another backward over the same graph");
    CHECK_FALSE(x.has_grad());
    // The engine still works.
    backward(inner);
    CHECK(close(x.grad(), tensor({2.0, 4.0}, f64)));
}

TEST_CASE("hooks stay with the value, not with the handle") {
    Variable x = x64({1.0, 2.0});
    int calls = 0;
    {
        Variable handle = x;
        handle.register_hook([&](const Variable&) {
            ++calls;
            return Variable();
        });
    }
    backward(sum(x * 2.0));
    CHECK(calls == 1);
}
