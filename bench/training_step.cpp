// One step of training a Gpt in f32: gradients forgotten, forward, cross entropy, backward,
// clipping at 1, AdamW. `training_step.py` is the same step in PyTorch; step_ratios.py runs both in
// turn.
//
// Arguments: tiny, nano (if none is given), baby or gpt2, then [--threads N] [--steps S] [--save
// FILE]. A line for each figure: name, value, unit. With --save the first weights go into a
// safetensors file and the loss of each step is printed, for the twin to be compared with.

#include "timing.hpp"

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>
#include <glassgrad/training.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

struct Work {
    const char* name;
    std::int64_t layers, heads, width, context, batch, vocabulary;
    int steps;
};

constexpr Work works[] = {
    {"tiny", 1, 1, 8, 8, 1, 16, 2000},
    {"nano", 4, 4, 128, 64, 12, 65, 40},
    {"baby", 6, 6, 384, 256, 4, 65, 8},
    {"gpt2", 12, 12, 768, 64, 4, 50257, 5},
};

struct Arguments {
    Work work{};
    int threads = 1;
    std::string save;
};

Arguments parse(int count, char** given) {
    const std::string wanted = count > 1 ? given[1] : "nano";
    Arguments result;
    for (const Work& each : works) {
        if (wanted == each.name) result.work = each;
    }
    if (!result.work.name) {
        throw std::invalid_argument("no work called " + wanted +
                                    "; there are tiny, nano, baby and gpt2");
    }
    for (int i = 2; i < count; i += 2) {
        const std::string name = given[i];
        if (i + 1 == count) throw std::invalid_argument(name + " wants a value");
        if (name == "--threads") {
            result.threads = std::stoi(given[i + 1]);
        } else if (name == "--steps") {
            result.work.steps = std::stoi(given[i + 1]);
        } else if (name == "--save") {
            result.save = given[i + 1];
        } else {
            throw std::invalid_argument("no option " + name);
        }
    }
    if (result.work.steps < 1) throw std::invalid_argument("--steps must be at least 1");
    return result;
}

/// Products of a step, attention in full: three times the forward pass.
double flop(const Work& w) {
    const auto of = [](std::int64_t value) { return static_cast<double>(value); };
    const double token =
        2 * (12 * of(w.layers) * of(w.width) * of(w.width) + of(w.vocabulary) * of(w.width)) +
        4 * of(w.context) * of(w.width) * of(w.layers);
    return 3 * token * of(w.context * w.batch);
}

/// The twin has the same generator.
Tensor draw_ids(const Work& w, std::uint64_t seed) {
    std::vector<std::int64_t> ids;
    std::uint64_t state = seed;
    for (std::int64_t i = 0; i < w.batch * w.context; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        ids.push_back(
            static_cast<std::int64_t>((state >> 33) % static_cast<std::uint64_t>(w.vocabulary)));
    }
    return from_span<std::int64_t>(ids, {w.batch, w.context});
}

void print(const char* name, double value, const char* unit) {
    std::printf("%-16s %12.6g %s\n", name, value, unit);
}

void measure(const Arguments& given) {
    const Work& w = given.work;
    set_num_threads(given.threads);
    RandomState rng(1);
    Gpt model({.vocab_size = w.vocabulary,
               .context_length = w.context,
               .d_model = w.width,
               .num_layers = w.layers,
               .num_heads = w.heads},
              rng);
    if (!given.save.empty()) save_safetensors(given.save, model.state_dict());
    const std::vector<Variable> parameters = model.parameters();
    AdamW optimizer(decay_matrices(model, 0.1), {.lr = 6e-4, .beta1 = 0.9, .beta2 = 0.99});
    const Tensor ids = draw_ids(w, 1);
    const Variable targets(draw_ids(w, 2));

    std::vector<double> forward_times, backward_times, update_times, step_times;
    const int warm_up = given.save.empty() ? (w.steps > 10 ? w.steps / 10 : 1) : 0;
    for (int step = -warm_up; step < w.steps; ++step) {
        if (step == 0) reset_peak_memory();
        const double start = bench::seconds();
        optimizer.zero_grad();
        Variable loss = cross_entropy(model(ids), targets);
        const double forward = bench::seconds();
        backward(loss);
        const double middle = bench::seconds();
        const double norm = grad_norm(parameters);
        optimizer.step({.grad_scale = clip_scale(norm, 1)});
        const double end = bench::seconds();
        if (!given.save.empty()) print("loss", loss.item(), "");
        if (step < 0) continue;
        forward_times.push_back(forward - start);
        backward_times.push_back(middle - forward);
        update_times.push_back(end - middle);
        step_times.push_back(end - start);
    }

    const double step = bench::median(step_times);
    const double peak = bench::fma_peak(given.threads);
    print("threads", given.threads, "");
    print("step", step * 1e3, "ms");
    print("step_least", bench::least(step_times) * 1e3, "ms");
    print("forward", bench::median(forward_times) * 1e3, "ms");
    print("backward", bench::median(backward_times) * 1e3, "ms");
    print("update", bench::median(update_times) * 1e3, "ms");
    print("tokens", static_cast<double>(w.batch * w.context) / step, "/s");
    print("products", flop(w) / 1e9, "GFLOP");
    print("rate", flop(w) / step / 1e9, "GFLOP/s");
    print("fma_peak", peak / 1e9, "GFLOP/s");
    print("share", 100 * flop(w) / step / peak, "%");
    print("tensors_peak", static_cast<double>(memory_stats().peak_bytes) / 1e6, "MB");
    print("resident_peak", bench::resident() / 1e6, "MB");
}

}  // namespace

int main(int count, char** given) {
    try {
        measure(parse(count, given));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_training_step: %s\n", error.what());
        return 1;
    }
    return 0;
}
