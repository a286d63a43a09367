// Graphs that are very long or very wide: nothing is recursive, nothing is quadratic.

#include "autograd/support/checks.hpp"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <functional>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::int64_t scale_down = 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::int64_t scale_down = 10;
#else
constexpr std::int64_t scale_down = 1;
#endif
#else
constexpr std::int64_t scale_down = 1;
#endif

/// Runs `work` on a thread with a stack of 512 KiB.
void on_small_stack(const std::function<void()>& work) {
    struct Job {
        const std::function<void()>& work;
        std::exception_ptr error;
    } job{work, nullptr};
    pthread_attr_t attributes;
    REQUIRE(pthread_attr_init(&attributes) == 0);
    REQUIRE(pthread_attr_setstacksize(&attributes, 512 * 1024) == 0);
    pthread_t thread{};
    REQUIRE(pthread_create(
                &thread, &attributes,
                [](void* raw) -> void* {
                    auto* mine = static_cast<Job*>(raw);
                    try {
                        mine->work();
                    } catch (...) {
                        mine->error = std::current_exception();
                    }
                    return nullptr;
                },
                &job) == 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
    if (job.error) std::rethrow_exception(job.error);
}

double seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

TEST_CASE("a chain of a million ops is built, swept and destroyed on a stack of 512 KiB") {
    // PyTorch and micrograd overflowed here: pytorch#5534, micrograd PR 90.
    double gradient = 0;
    on_small_stack([&] {
        const Variable x = parameter(tensor(1.0, f64));
        {
            Variable y = x;
            for (int i = 0; i < 1000000; ++i) y = y * 1.000001;
            backward(y);
        }
        gradient = x.grad().item();
    });
    CHECK(gradient == Approx(2.718280469095753).epsilon(1e-9));
}

TEST_CASE("a long chain is destroyed without a sweep, and with a recorded one") {
    const std::int64_t before = memory_stats().live_blocks;
    on_small_stack([] {
        const std::int64_t length = 1000000 / scale_down;
        const Variable x = parameter(tensor(1.0, f64));
        Variable dropped = x;
        for (std::int64_t i = 0; i < length; ++i) dropped = dropped + 1e-6;
        dropped = Variable();

        Variable y = x;
        for (std::int64_t i = 0; i < length / 10; ++i) y = y * y;
        const Variable g = grad({y}, {x}, {.create_graph = true}).front();
        const Variable h = grad({g}, {x}, {.allow_unused = true}).front();
        y = Variable();
    });
    CHECK(memory_stats().live_blocks == before);
}

TEST_CASE("one op takes a hundred thousand inputs") {
    const std::int64_t count = 100000 / scale_down;
    std::vector<Variable> parts;
    for (std::int64_t i = 0; i < count; ++i) {
        parts.push_back(parameter(full({1}, static_cast<double>(i), f64)));
    }
    const Variable joined = concat(parts);
    backward(sum(joined * joined));
    CHECK(parts.front().grad().item() == 0);
    CHECK(parts[7].grad().item() == 14);
    CHECK(parts.back().grad().item() == 2 * static_cast<double>(count - 1));
    const double took = seconds([&] {
        const auto all = grad({sum(concat(parts))}, parts);
        CHECK(all.back().item() == 1);
    });
    CHECK(took < 10);
}

TEST_CASE("one value is used a hundred thousand times") {
    const std::int64_t count = 100000 / scale_down;
    const auto wanted = static_cast<double>(count);
    const Variable x = parameter(tensor({1.0, 2.0}, f64));
    Variable total(zeros({2}, f64));
    for (std::int64_t i = 0; i < count; ++i) total = total + x;
    backward(sum(total));
    CHECK(close(x.grad(), full({2}, wanted, f64)));

    const std::vector<Variable> same(static_cast<std::size_t>(count), x);
    const Variable again = sum(concat(same));
    CHECK(close(grad({again}, {x}).front().value(), full({2}, wanted, f64)));
}

TEST_CASE("a ladder whose paths double at each step is swept once a node") {
    // 2^60 paths: a recursive sweep without marks would not end.
    const Variable x = parameter(tensor(1.0, f64));
    Variable y = x;
    for (int i = 0; i < 60; ++i) y = (y + y) * 0.5;
    backward(y);
    CHECK(x.grad().item() == 1);
}
