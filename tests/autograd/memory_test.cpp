// What graphs hold, for how long, and what stays as it was.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool pooled = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool pooled = false;
#else
constexpr bool pooled = true;
#endif
#else
constexpr bool pooled = true;
#endif

struct Net {
    Variable w1 = parameter(uneven({5, 7}), "w1");
    Variable b1 = parameter(uneven({7}), "b1");
    Variable w2 = parameter(uneven({7, 3}, -1, 1), "w2");

    Variable loss(const Tensor& x) const {
        const Variable hidden = tanh(matmul(Variable(x), w1) + b1);
        return -mean(log_softmax(matmul(hidden, w2)));
    }
    void step(const Tensor& x) {
        backward(loss(x));
        for (Variable* p : {&w1, &b1, &w2}) {
            p->mutable_value() -= p->grad() * 0.01;
            p->zero_grad();
        }
    }
};

std::int64_t live() { return memory_stats().live_bytes; }

}  // namespace

TEST_CASE("after each step no more memory is live than before it") {
    Net net;
    const Tensor x = uneven({4, 5});
    net.step(x);
    const std::int64_t before = live();
    for (int i = 0; i < 20; ++i) {
        net.step(x);
        CHECK(live() == before);
    }
}

TEST_CASE("a loop in its steady state takes no tensor or node from the system") {
    if (!pooled) SKIP("the pool is off under the address sanitizer");
    Net net;
    const Tensor x = uneven({4, 5});
    for (int i = 0; i < 3; ++i) net.step(x);
    const MemoryStats before = memory_stats();
    for (int i = 0; i < 50; ++i) net.step(x);
    const MemoryStats after = memory_stats();
    CHECK(after.allocations == before.allocations);
    CHECK(after.requests > before.requests);
    CHECK(after.peak_bytes == before.peak_bytes);
}

TEST_CASE("a sweep frees what was saved, as it passes") {
    const Variable x = parameter(uneven({64, 64}));
    const std::int64_t before = live();
    Variable y = x;
    for (int i = 0; i < 20; ++i) y = tanh(y);
    const Variable loss = sum(y);
    const std::int64_t recorded = live();
    // 20 results of 32 KiB are held by the graph.
    CHECK(recorded - before > 20 * 64 * 64 * 8);
    backward(loss);
    // x's gradient and y are left.
    CHECK(live() - before < 5 * 64 * 64 * 8);
}

TEST_CASE("an input that needs no gradient is not kept") {
    const Variable x = parameter(uneven({8}));
    const std::int64_t before = live();
    Variable y;
    {
        const Variable big(uneven({4096, 8}));
        const Variable w(uneven({4096, 8}, -1, 1, 3));
        // The product of constants is folded away; the sum keeps neither operand.
        y = sum(big * w + x, {.axes = {0}});
    }
    CHECK(live() - before < 4096 * 8 * 8);
    backward(sum(y));
    CHECK(close(x.grad(), full({8}, 4096, f64)));
}

TEST_CASE("a retained graph can be swept until it is let go") {
    const std::int64_t before = live();
    {
        const Variable x = parameter(uneven({16, 16}));
        const Variable y = sum(exp(x) * x);
        backward(y, {.retain_graph = true});
        const Tensor first = x.grad();
        backward(y, {.retain_graph = true});
        CHECK(same_bits(x.grad(), first * 2.0));
    }
    CHECK(live() == before);
}

TEST_CASE("an exception in the middle of a forward pass leaves nothing behind") {
    const Variable x = parameter(uneven({4, 5}));
    mul(x, x);  // a leaf that was saved once stays ready to be saved again
    const std::int64_t before = live();
    for (int i = 0; i < 3; ++i) {
        CHECK_THROWS_AS(
            [&] {
                const Variable h = tanh(exp(x) * x);
                return matmul(h, x);
            }(),
            ShapeError);
        CHECK(live() == before);
    }
    const std::vector<Variable> parts{x, parameter(uneven({4, 6}))};
    const std::int64_t now = live();
    CHECK_THROWS_AS(concat(parts, 0), ShapeError);
    CHECK(live() == now);
}

TEST_CASE(
    "an exception in the middle of a backward pass leaves nothing behind, nor half gradients") {
    const Variable x = parameter(uneven({4, 5}));
    const Variable late = parameter(uneven({4, 5}, -1, 1, 4));
    mul(x, late);  // a leaf that was saved once stays ready to be saved again
    const std::int64_t before = live();
    for (const bool recorded : {false, true}) {
        INFO(recorded);
        {
            const Variable bad = seeded(x.value() * 2.0, x, [](const auto& gy) {
                if (gy.defined()) throw std::runtime_error("rule");
                return gy;
            });
            const Variable y = sum(tanh(bad) * late + exp(late));
            const auto sweep = [&] {
                if (recorded) {
                    grad({y}, {x, late}, {.create_graph = true});
                } else {
                    backward(y);
                }
            };
            CHECK_THROWS_WITH(sweep(), "rule");
            CHECK_FALSE(x.has_grad());
            CHECK_FALSE(late.has_grad());
        }
        CHECK(live() == before);
    }
    backward(sum(x * late));
    CHECK(same_bits(x.grad(), late.value()));
}

TEST_CASE("saved values do not change when a leaf is updated in place") {
    Variable x = x64({1.0, 2.0});
    Variable w = x64({3.0, 4.0}, "w");
    const Variable y = sum(x * w * w);
    x.mutable_value() *= 100.0;
    w.set_value(tensor({-1.0, -1.0}, f64));
    w.mutable_value().mutable_data<double>()[0] = 55;
    backward(y);
    CHECK(close(x.grad(), tensor({9.0, 16.0}, f64)));
    CHECK(close(w.grad(), tensor({6.0, 16.0}, f64)));
    CHECK(close(x.value(), tensor({100.0, 200.0}, f64)));
    CHECK(close(w.value(), tensor({55.0, -1.0}, f64)));
}

TEST_CASE("writing through a reference that was taken before is seen by later graphs alone") {
    Variable x = x64({1.0, 2.0});
    Tensor& value = x.mutable_value();
    const Variable before = sum(x * x);
    for (int step = 1; step <= 3; ++step) {
        value += ones({2}, f64);
        const Tensor now = tensor({1.0 + step, 2.0 + step}, f64);
        const Variable y = sum(x * x * x);
        CHECK(close(grad({y}, {x}).front().value(), now * now * 3.0));
    }
    CHECK(close(grad({before}, {x}).front().value(), tensor({2.0, 4.0}, f64)));
}

TEST_CASE("a leaf is updated in place when no graph holds its value") {
    Variable x = x64({1.0, 2.0});
    const double* buffer = x.value().data<double>();
    {
        const Variable y = sum(x * x);
        backward(y);
    }
    x.mutable_value() -= x.grad() * 0.1;
    CHECK(x.value().data<double>() == buffer);
}

TEST_CASE("gradients handed out do not change when more is added") {
    const Variable x = x64({1.0, 2.0});
    const Variable y = x * 2.0;
    backward(sum(y), {.retain_graph = true});
    const Tensor kept = x.grad();
    backward(sum(y));
    CHECK(close(kept, full({2}, 2, f64), 0));
    CHECK(close(x.grad(), full({2}, 4, f64), 0));
    // Two leaves that got the same gradient do not share their sums.
    const Variable a = x64({1.0, 2.0});
    const Variable b = x64({1.0, 2.0});
    backward(sum(a + b));
    backward(sum(a * 3.0));
    CHECK(close(a.grad(), full({2}, 4, f64), 0));
    CHECK(close(b.grad(), full({2}, 1, f64), 0));
}

TEST_CASE("a cotangent that was passed in is not written to") {
    const Variable x = x64({1.0, 2.0});
    const Tensor cotangent = tensor({5.0, 6.0}, f64);
    backward(x + 0.0, {.gradient = cotangent});
    backward(x + 0.0, {.gradient = cotangent});
    CHECK(close(cotangent, tensor({5.0, 6.0}, f64), 0));
    CHECK(close(x.grad(), tensor({10.0, 12.0}, f64), 0));
}
