// Attention on the worked example, against the same arithmetic by hand in C and against libtorch:
// short trials in turn, so that noise of the machine meets all of them, and their medians. Checks
// first that all compute the same, and that steady steps take no new memory. With functions each
// step is an op; the layer, which nobody watches here, is one (`projected_attention`).

#include "peers.h"

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace glassgrad;

namespace {

std::int64_t heap_calls = 0;

}  // namespace

// Every use of the heap by C++ code is counted; the pool's own is in memory_stats().
void* operator new(std::size_t bytes) {
    ++heap_calls;
    if (void* block = std::malloc(bytes)) return block;
    throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace {

constexpr double most_of_c = 6;
constexpr double least_of_torch = 40;
constexpr double tolerance = 1e-13;

AttentionInputs draw_inputs() {
    RandomState rng(7);
    AttentionInputs in{};
    const auto fill = [&](std::span<double> values) {
        for (double& value : values) value = rng.next_gauss();
    };
    fill(in.x);
    fill(in.w_q);
    fill(in.w_k);
    fill(in.w_v);
    fill(in.gy);
    return in;
}

/// The example written with functions of the public interface.
struct WithFunctions {
    Variable x, w_q, w_k, w_v;
    Tensor gy;

    explicit WithFunctions(const AttentionInputs& in)
        : x(parameter(from_span<double>(in.x, {TOKENS, D_MODEL}))),
          w_q(parameter(from_span<double>(in.w_q, {D_MODEL, D_K}))),
          w_k(parameter(from_span<double>(in.w_k, {D_MODEL, D_K}))),
          w_v(parameter(from_span<double>(in.w_v, {D_MODEL, D_K}))),
          gy(from_span<double>(in.gy, {TOKENS, D_K})) {}

    Variable forward() const {
        const Variable query = matmul(x, w_q);
        const Variable key = matmul(x, w_k);
        const Variable value = matmul(x, w_v);
        const Variable scores = matmul(query, key, {.transpose_b = true});
        return matmul(softmax(scale(scores, 1 / std::sqrt(double{D_K}))), value);
    }
    void zero_grad() {
        for (Variable* each : {&x, &w_q, &w_k, &w_v}) each->zero_grad();
    }
};

/// The example with the layer.
struct WithLayer {
    Variable x;
    Attention attention;
    Tensor gy;

    explicit WithLayer(const AttentionInputs& in)
        : x(parameter(from_span<double>(in.x, {TOKENS, D_MODEL}))),
          attention(from_span<double>(in.w_q, {D_MODEL, D_K}),
                    from_span<double>(in.w_k, {D_MODEL, D_K}),
                    from_span<double>(in.w_v, {D_MODEL, D_K})),
          gy(from_span<double>(in.gy, {TOKENS, D_K})) {}

    Variable forward() const { return attention(x); }
    void zero_grad() {
        x.zero_grad();
        for (Variable* each : {&attention.W_Q, &attention.W_K, &attention.W_V}) each->zero_grad();
    }
};

template <class Example>
void step(Example& example) {
    backward(example.forward(), {.gradient = example.gy});
    example.zero_grad();
}

struct Timed {
    std::string name;
    std::function<void()> call;
    std::vector<double> nanoseconds = {};

    double quantile(double q) const {
        return nanoseconds[static_cast<std::size_t>(q *
                                                    static_cast<double>(nanoseconds.size() - 1))];
    }
    double median() const { return quantile(0.5); }
};

double time_calls(const std::function<void()>& call, int count) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    for (int i = 0; i < count; ++i) call();
    return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / count;
}

/// Trials of about 0.2 ms each, all peers in turn; every trial runs warm.
void measure(std::vector<Timed>& peers, int trials) {
    std::vector<int> counts;
    for (Timed& peer : peers) {
        const double once = time_calls(peer.call, 200);
        counts.push_back(std::max(10, static_cast<int>(2e5 / once)));
    }
    for (int trial = 0; trial < trials; ++trial) {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            time_calls(peers[i].call, counts[i] / 10);
            peers[i].nanoseconds.push_back(time_calls(peers[i].call, counts[i]));
        }
    }
    for (Timed& peer : peers) std::sort(peer.nanoseconds.begin(), peer.nanoseconds.end());
}

bool failed = false;

void require_same(const char* what, std::span<const double> got, std::span<const double> expected) {
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        worst = std::max(worst, std::abs(got[i] - expected[i]));
    }
    if (got.size() == expected.size() && worst <= tolerance) return;
    std::printf("%s differs from C by %.3g\n", what, worst);
    failed = true;
}

template <class Example>
void require_results(const char* name, Example& example, const std::vector<Variable>& inputs,
                     const AttentionResults& c) {
    const Variable y = example.forward();
    backward(y, {.gradient = example.gy});
    require_same(name, y.value().template values<double>(), c.y);
    const std::span<const double> expected[] = {c.gx, c.gw_q, c.gw_k, c.gw_v};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        require_same(name, inputs[i].grad().template values<double>(), expected[i]);
    }
    example.zero_grad();
}

/// 1,000 steps after a few to warm up: what they took from the system and from the heap.
template <class Example>
void require_steady(const char* name, Example& example) {
    for (int i = 0; i < 10; ++i) step(example);
    const MemoryStats before = memory_stats();
    const std::int64_t heap_before = heap_calls;
    for (int i = 0; i < 1000; ++i) step(example);
    const std::int64_t heap = heap_calls - heap_before;
    const MemoryStats after = memory_stats();
    const std::int64_t fresh = after.allocations - before.allocations;
    std::printf("%-22s %8lld pool blocks used  %lld of them new  %lld other uses of the heap\n",
                name, static_cast<long long>(after.requests - before.requests),
                static_cast<long long>(fresh), static_cast<long long>(heap));
    failed = failed || fresh != 0 || after.live_blocks != before.live_blocks;
}

void print_row(const Timed& forward, const Timed& both) {
    const auto cell = [](const Timed& t) {
        char text[64];
        std::snprintf(text, sizeof text, "%8.0f [%.0f, %.0f]", t.median(), t.quantile(0.25),
                      t.quantile(0.75));
        return std::string(text);
    };
    std::printf("%-22s %-30s %-30s\n", forward.name.c_str(), cell(forward).c_str(),
                cell(both).c_str());
}

void print_ratio(const char* name, double forward, double both, const char* wanted, bool reached) {
    std::printf("%-32s %8.1f %8.1f   wanted for both passes: %s: %s\n", name, forward, both, wanted,
                reached ? "reached" : "NOT reached");
}

}  // namespace

int main(int argc, char** argv) {
    const int trials = argc > 1 ? std::max(1, std::atoi(argv[1])) : 300;
    set_num_threads(1);
    // Reference counts are cheaper in a program that never started a thread. Most have.
    std::thread([] {}).join();

    const AttentionInputs in = draw_inputs();
    AttentionResults c{};
    by_hand_forward(&in, &c);
    by_hand_backward(&in, &c);

    WithFunctions functions(in);
    WithLayer layer(in);
    require_results("functions", functions,
                    {functions.x, functions.w_q, functions.w_k, functions.w_v}, c);
    require_results("Attention", layer,
                    {layer.x, layer.attention.W_Q, layer.attention.W_K, layer.attention.W_V}, c);

    std::vector<Timed> peers;
    const auto add = [&](const std::string& name, std::function<void()> forward,
                         std::function<void()> both) {
        peers.push_back({name, std::move(forward)});
        peers.push_back({name, std::move(both)});
    };
    add(
        "by hand in C", [&] { by_hand_forward(&in, &c); },
        [&] {
            by_hand_forward(&in, &c);
            by_hand_backward(&in, &c);
        });
    add(
        "glassgrad, functions",
        [&] {
            const NoGrad guard;
            functions.forward();
        },
        [&] { step(functions); });
    add(
        "glassgrad, Attention",
        [&] {
            const NoGrad guard;
            layer.forward();
        },
        [&] { step(layer); });
#ifdef GLASSGRAD_BENCH_TORCH
    torch_setup(&in);
    torch_forward_backward();
    AttentionResults torch{};
    torch_results(&torch);
    require_same("libtorch", torch.y, c.y);
    require_same("libtorch", torch.gx, c.gx);
    require_same("libtorch", torch.gw_q, c.gw_q);
    require_same("libtorch", torch.gw_k, c.gw_k);
    require_same("libtorch", torch.gw_v, c.gw_v);
    add(std::string("libtorch ") + torch_version(), torch_forward, torch_forward_backward);
#endif
    if (!failed) std::printf("results: equal to C within %g\n\n", tolerance);

    std::printf("memory of 1,000 steps (forward, backward, zero_grad)\n");
    require_steady("glassgrad, functions", functions);
    require_steady("glassgrad, Attention", layer);

    measure(peers, trials);
    std::printf(
        "\nX (4, 6), W (6, 3), f64, one thread; ns, medians [quartiles] of %d trials\n"
        "%-22s %-30s %-30s\n",
        trials, "", " forward", " forward and backward");
    for (std::size_t i = 0; i < peers.size(); i += 2) print_row(peers[i], peers[i + 1]);

    std::printf("\n%-32s %8s %8s\n", "ratios", "forward", "both");
    const auto ratio = [&](std::size_t a, std::size_t b) {
        return peers[a].median() / peers[b].median();
    };
    for (const std::size_t ours : {std::size_t{2}, std::size_t{4}}) {
        const std::string name = peers[ours].name;
        const double both = ratio(ours + 1, 1);
        print_ratio((name + " / C").c_str(), ratio(ours, 0), both, "at most 6", both <= most_of_c);
        if (peers.size() > 6) {
            const double faster = ratio(7, ours + 1);
            print_ratio(("libtorch / " + name).c_str(), ratio(6, ours), faster, "at least 40",
                        faster >= least_of_torch);
        }
    }
    if (peers.size() <= 6) std::printf("libtorch is left out: libtorch-dev is not installed\n");
    if (failed) std::printf("\nFAILED: results or memory, see above\n");
    return failed ? 1 : 0;
}
