// Every allocation of a step fails once, of the standard library and of the pool alike: nothing
// leaks, gradients and parameters stay as they were, and the next step works. A program of its own,
// since it replaces operator new and aligned_alloc, where the pool gets its memory.

#include "autograd/support/checks.hpp"

#include <cstdlib>
#include <new>
#include <thread>

namespace {

/// Allocations of this thread that still succeed before one fails; negative: all do.
constinit thread_local long left = -1;
constinit thread_local bool fired = false;

bool fails() noexcept {
    if (left < 0 || left-- > 0) return false;
    fired = true;
    return true;
}

}  // namespace

void* operator new(std::size_t bytes) {
    void* memory = fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
    if (!memory) throw std::bad_alloc();
    return memory;
}
// Catch2 asks with nothrow; the sanitizers have one of their own, which would not meet our delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
    void* memory = nullptr;
    if (fails() || posix_memalign(&memory, alignment, bytes) != 0) return nullptr;
    return memory;
}

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

using In = std::span<const Variable>;

struct Net {
    Variable w1 = parameter(uneven({5, 7}), "w1");
    Variable b1 = parameter(uneven({7}), "b1");
    Variable w2 = parameter(uneven({7, 3}, -1, 1), "w2");
    Variable x = Variable(uneven({4, 5}));

    std::vector<Variable> all() const { return {w1, b1, w2}; }
    Variable hidden() const {
        const Scope scope("hidden");
        return tanh(matmul(x, w1) + b1);
    }
    Variable loss(const Variable& h) const {
        const Variable logits = concat({matmul(h, w2), sum(h, {.axes = {1}, .keepdims = true})}, 1);
        return -mean(log_softmax(logits)) + sum(w2 * w2);
    }
};

std::vector<Tensor> copies(const Net& net) {
    std::vector<Tensor> copies;
    for (const Variable& each : net.all()) {
        copies.push_back(each.value().clone());
        copies.push_back(each.has_grad() ? each.grad().clone() : Tensor());
    }
    return copies;
}

bool same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].defined() != b[i].defined()) return false;
        if (a[i].defined() && !same_bits(a[i], b[i])) return false;
    }
    return true;
}

/// Runs `step` with its first allocation failing, then its second, until none fails. `step` adds to
/// gradients as its last act, or not at all.
template <class F>
void fail_each_allocation(const Net& net, const F& step) {
    step();
    for (Variable each : net.all()) each.zero_grad();
    step();
    const std::vector<Tensor> once = copies(net);
    step();
    const std::vector<Tensor> twice = copies(net);
    for (std::size_t i = 0; i < net.all().size(); ++i)
        net.all()[i].set_grad(once[2 * i + 1].clone());
    bool pool_failed = false;
    for (long n = 0;; ++n) {
        REQUIRE(n < 100000);
        release_cached_memory();
        const std::vector<Tensor> before = copies(net);
        const std::int64_t live = memory_stats().live_bytes;
        std::string error;
        fired = false;
        left = n;
        try {
            step();
            left = -1;
        } catch (const std::bad_alloc&) {
            left = -1;
            error = "bad_alloc";
        } catch (const MemoryError& problem) {
            left = -1;
            error = problem.what();
            pool_failed = true;
        }
        if (!fired) {
            CHECK(error.empty());
            CHECK(n > 30);
            CHECK(pool_failed);
            break;
        }
        INFO("allocation " << n << ": " << error);
        if (error.empty()) {  // somebody could do without, as std::stable_sort can
            CHECK(same(copies(net), twice));
            for (std::size_t i = 0; i < net.all().size(); ++i) {
                net.all()[i].set_grad(once[2 * i + 1].clone());
            }
            continue;
        }
        REQUIRE(memory_stats().live_bytes == live);
        REQUIRE(same(copies(net), before));
        REQUIRE(grad_enabled());
        REQUIRE(current_scope()->path.empty());
    }
    CHECK(same(copies(net), twice));
}

struct Counting final : Observer {
    void on_forward(const ForwardEvent& event) override { names.emplace_back(event.row.name); }
    void on_backward(const BackwardEvent& event) override { names.emplace_back(event.row.name); }
    std::vector<std::string> names;
};

}  // namespace

TEST_CASE("a forward and backward pass survives the loss of any allocation") {
    const Net net;
    fail_each_allocation(net, [&] { backward(net.loss(net.hidden())); });
}

TEST_CASE("a recorded pass survives the loss of any allocation") {
    const Net net;
    fail_each_allocation(net, [&] {
        const Variable y = net.loss(net.hidden());
        Variable penalty;
        for (const Variable& g : grad({y}, net.all(), {.create_graph = true})) {
            penalty = penalty.defined() ? penalty + sum(g * g) : sum(g * g);
        }
        backward(penalty);
    });
}

TEST_CASE("checkpoints survive the loss of any allocation") {
    const Net net;
    fail_each_allocation(net, [&] {
        const auto inner = [&](In in) { return tanh(matmul(in[0], net.w1) + net.b1); };
        const auto f = [&](In in) { return checkpoint(inner, in) * 2.0; };
        backward(net.loss(checkpoint(f, {net.x})));
    });
}

TEST_CASE("hooks and retained gradients survive the loss of any allocation") {
    const Net net;
    fail_each_allocation(net, [&] {
        Variable h = net.hidden();
        h.retain_grad();
        h.register_hook([](const Variable& g) { return g * 2.0; });
        backward(net.loss(h));
        if (!h.has_grad()) throw std::runtime_error("no gradient was retained");
    });
}

TEST_CASE("observers survive the loss of any allocation") {
    const Net net;
    fail_each_allocation(net, [&] {
        Counting counting;
        Anomaly anomaly({.on_anomaly = OnAnomaly::collect});
        UsageTracker tracker;
        const Observing first(counting);
        const Observing second(anomaly);
        const Observing third(tracker);
        const Variable y = net.loss(net.hidden());
        log(net.x * 0.0);
        const Variable unused = parameter(ones({2}, f64), "unused");
        if (unused_parameters(y, {net.w1, unused}, &tracker).size() != 1) {
            throw std::runtime_error("unused_parameters");
        }
        backward(y);
    });
}

TEST_CASE("a thread's first allocations may fail") {
    const Tensor x = uneven({3});
    for (long n = 0; n < 12; ++n) {
        std::thread([&] {
            left = n;
            try {
                const Scope scope("worker");
                exp(Variable(x));
            } catch (const std::bad_alloc&) {
            } catch (const MemoryError&) {
            }
            left = -1;
            CHECK(same_bits(exp(Variable(x)).value(), exp(x)));
        }).join();
    }
}

TEST_CASE("after a throwing hook, observer or op, gradients and memory are as before") {
    struct Throwing final : Observer {
        void on_forward(const ForwardEvent& event) override {
            if (forward && event.row.name == "sum") throw std::runtime_error("observer");
        }
        void on_backward(const BackwardEvent& event) override {
            if (!forward && event.row.name == "matmul") throw std::runtime_error("observer");
        }
        bool forward = false;
    };
    const Net net;
    backward(net.loss(net.hidden()));
    const std::vector<Tensor> before = copies(net);
    const std::int64_t live = memory_stats().live_bytes;
    for (const bool forward : {false, true}) {
        Throwing throwing;
        throwing.forward = forward;
        const Observing observing(throwing);
        CHECK_THROWS_WITH(backward(net.loss(net.hidden())), "observer");
        CHECK(same(copies(net), before));
    }
    {
        Variable h = net.hidden();
        h.register_hook([](const Variable&) -> Variable { throw std::runtime_error("hook"); });
        CHECK_THROWS_WITH(backward(net.loss(h)), "hook");
        CHECK(same(copies(net), before));
    }
    CHECK(memory_stats().live_bytes == live);
    backward(net.loss(net.hidden()));
    CHECK(same_bits(net.b1.grad(), before[3] * 2.0));
}
