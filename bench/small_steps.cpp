// The two smallest pieces of work, of which next to nothing is arithmetic: the worked example,
// forward and backward, and a training step of a tiny Gpt. Prints what a step takes; under
// callgrind, which counts inside `counted_steps` alone, what it takes in instructions.
// `bench_small_steps [example|training [trials]]`, or `made-with`, which names compiler and
// library.

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>
#include <glassgrad/training.hpp>

#include <gnu/libc-version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

using namespace glassgrad;

#ifdef __clang__
#define GLASSGRAD_COMPILER "clang"
#else
#define GLASSGRAD_COMPILER "g++"
#endif

namespace {

constexpr int steps_a_trial = 100;

struct WorkedExample {
    RandomState rng{7};
    Variable x = parameter(rng.randn({4, 6}, {.dtype = f64}));
    Attention attention{rng.randn({6, 3}, {.dtype = f64}), rng.randn({6, 3}, {.dtype = f64}),
                        rng.randn({6, 3}, {.dtype = f64})};
    Tensor gy = rng.randn({4, 3}, {.dtype = f64});

    void step() {
        backward(attention(x), {.gradient = gy});
        x.zero_grad();
        attention.W_Q.zero_grad();
        attention.W_K.zero_grad();
        attention.W_V.zero_grad();
    }
};

struct TinyTraining {
    RandomState rng{3};
    Gpt model{
        {.vocab_size = 16, .context_length = 8, .d_model = 8, .num_layers = 1, .num_heads = 1},
        rng};
    std::vector<Variable> parameters = model.parameters();
    AdamW optimizer{decay_matrices(model, 0.1), {.lr = 1e-3}};
    Tensor ids = draw(1);
    Tensor targets = draw(2);

    Tensor draw(int factor) const {
        Tensor result = Tensor::empty({1, 8}, i64);
        auto* out = result.mutable_data<std::int64_t>();
        for (int i = 0; i < 8; ++i) out[i] = (5 * i * factor + 3) % 16;
        return result;
    }
    void step() {
        backward(cross_entropy(model(ids), Variable(targets)));
        const double norm = grad_norm(parameters);
        optimizer.step({.grad_scale = clip_scale(norm, 1)});
        optimizer.zero_grad();
    }
};

}  // namespace

/// What callgrind counts.
extern "C" [[gnu::noinline]] void counted_steps(const std::function<void()>& step) {
    for (int i = 0; i < steps_a_trial; ++i) step();
}

namespace {

template <class Work>
void measure(const char* name, int trials) {
    Work work;
    const std::function<void()> step = [&] { work.step(); };
    for (int i = 0; i < 20; ++i) step();
    using Clock = std::chrono::steady_clock;
    std::vector<double> nanoseconds;
    for (int i = 0; i < trials; ++i) {
        const auto start = Clock::now();
        counted_steps(step);
        nanoseconds.push_back(
            std::chrono::duration<double, std::nano>(Clock::now() - start).count() / steps_a_trial);
    }
    std::sort(nanoseconds.begin(), nanoseconds.end());
    std::printf("%s: %.0f ns a step, median of %d trials; least %.0f\n", name,
                nanoseconds[nanoseconds.size() / 2], trials, nanoseconds.front());
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view what = argc > 1 ? argv[1] : "";
    if (what == "made-with") {
        std::printf("%s %s, glibc %s\n", GLASSGRAD_COMPILER, __VERSION__, gnu_get_libc_version());
        return 0;
    }
    const int trials = argc > 2 ? std::max(1, std::atoi(argv[2])) : 200;
    set_num_threads(1);
    // Reference counts are cheaper in a program that never started a thread. Most have.
    std::thread([] {}).join();

    if (what.empty() || what == "example") measure<WorkedExample>("example", trials);
    if (what.empty() || what == "training") measure<TinyTraining>("training", trials);
}
