// Several threads, each with graphs of its own.

#include "autograd/support/checks.hpp"

#include <thread>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

Tensor train(int seed) {
    Variable w = parameter(uneven({5, 3}, -1, 1, seed), "w");
    Variable b = parameter(uneven({3}, -1, 1, seed + 1), "b");
    const Tensor x = uneven({7, 5}, -2, 2, seed + 2);
    for (int i = 0; i < 30; ++i) {
        const Variable y = softmax(matmul(Variable(x), w) + b);
        backward(sum(y * y * Variable(uneven({7, 3}, -1, 1, seed + 3))));
        for (Variable* p : {&w, &b}) {
            p->mutable_value() -= p->grad() * 0.1;
            p->zero_grad();
        }
    }
    return w.value();
}

}  // namespace

TEST_CASE("threads with graphs of their own get the bits that one thread gets") {
    std::vector<Tensor> alone;
    for (int i = 0; i < 3; ++i) alone.push_back(train(10 * i));
    for (int repeat = 0; repeat < 3; ++repeat) {
        std::vector<Tensor> together(3);
        std::vector<std::thread> threads;
        for (int i = 0; i < 3; ++i) {
            threads.emplace_back([&, i] { together[static_cast<std::size_t>(i)] = train(10 * i); });
        }
        for (std::thread& each : threads) each.join();
        for (std::size_t i = 0; i < 3; ++i) CHECK(same_bits(together[i], alone[i]));
    }
}

TEST_CASE("threads read shared constants, and values pass from one to the other") {
    const Variable shared(uneven({6, 6}));
    std::vector<Tensor> results(2);
    {
        std::vector<std::thread> threads;
        for (std::size_t t = 0; t < 2; ++t) {
            threads.emplace_back([&, t] {
                const Variable x = parameter(uneven({6, 6}, -1, 1, 5));
                for (int i = 0; i < 20; ++i) backward(sum(matmul(shared, x)));
                results[t] = x.grad();
            });
        }
        for (std::thread& each : threads) each.join();
    }
    CHECK(same_bits(results[0], results[1]));
    // Buffers that another thread made are freed here.
    results.clear();
}

TEST_CASE("a graph made by one thread is swept and destroyed by another") {
    const Variable x = x64({1.0, 2.0});
    Variable y;
    std::thread([&] { y = sum(exp(x) * x); }).join();
    std::thread([&] {
        backward(y);
        y = Variable();
    }).join();
    CHECK(close(x.grad(), exp(x.value()) * (x.value() + 1.0)));
}

TEST_CASE("grad mode and observers belong to a thread") {
    struct Counting final : Observer {
        void on_forward(const ForwardEvent&) override { ++count; }
        int count = 0;
    } counting;
    const Observing observing(counting);
    const NoGrad off;
    std::thread([] {
        CHECK(grad_enabled());
        const Variable x = x64({1.0, 2.0});
        CHECK((x * x).requires_grad());
    }).join();
    CHECK(counting.count == 0);
    CHECK_FALSE(grad_enabled());
}

TEST_CASE("checkpoints and anomaly observers belong to a thread") {
    const auto step = [](int seed) {
        const Variable x = parameter(uneven({6, 6}, -1, 1, seed), "x");
        const Variable w = parameter(uneven({6, 6}, -1, 1, seed + 1), "w");
        AnomalyMode watch({.on_anomaly = OnAnomaly::collect});
        for (int i = 0; i < 10; ++i) {
            const auto f = [&](std::span<const Variable> in) { return tanh(matmul(in[0], w)); };
            backward(sum(checkpoint(f, {checkpoint(f, {x})})));
            if (i % 2 == seed % 2) log(x * 0.0);
        }
        return std::pair(w.grad(), watch->reports().size());
    };
    const auto even = step(2);
    const auto odd = step(3);
    std::pair<Tensor, std::size_t> found[2];
    {
        std::vector<std::thread> threads;
        for (int t = 0; t < 2; ++t) threads.emplace_back([&, t] { found[t] = step(2 + t); });
        for (std::thread& each : threads) each.join();
    }
    CHECK(same_bits(found[0].first, even.first));
    CHECK(same_bits(found[1].first, odd.first));
    CHECK(found[0].second == even.second);
    CHECK(found[1].second == odd.second);
}
