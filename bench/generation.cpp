// Text from a Llama with a cache, one token after the other, greedily: `generate` against plain
// loops in C (generation.c), with and without -ffast-math. The weights are random, in the shapes of
// the smallest models for stories; the tokens of all must agree. Trials take turns.
//
// Arguments: names of models (all if none are given), --threads N (1 and 2 if not given), --trials
// N.

#include "generation.h"
#include "timing.hpp"

#include <glassgrad/layers.hpp>

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

struct Work {
    const char* name;
    LlamaConfig config;
};

const std::vector<Work>& works() {
    static const std::vector<Work> all{
        {"260K",
         {.vocab_size = 512,
          .context_length = 512,
          .d_model = 64,
          .num_layers = 5,
          .num_heads = 8,
          .num_kv_heads = 4,
          .d_ff = 172,
          .tie_head = true}},
        {"15M",
         {.vocab_size = 32000,
          .context_length = 256,
          .d_model = 288,
          .num_layers = 6,
          .num_heads = 6,
          .d_ff = 768,
          .tie_head = true}},
    };
    return all;
}

constexpr int first_token = 1;

struct Plain {
    const char* name;
    LlamaState* (*make)(const LlamaWeights*);
    const float* (*step)(LlamaState*, int token, int position, int threads);
    void (*free)(LlamaState*);
};
constexpr Plain plains[] = {
    {"C", llama_strict_new, llama_strict_step, llama_strict_free},
    {"C, -ffast-math", llama_fast_new, llama_fast_step, llama_fast_free},
};

LlamaWeights weights_of(const Llama& model) {
    const auto data = [](const Variable& x) { return x.value().data<float>(); };
    const LlamaConfig& c = model.config;
    LlamaWeights w{};
    w.layers = static_cast<int>(c.num_layers);
    w.heads = static_cast<int>(c.num_heads);
    w.kv_heads = static_cast<int>(c.num_kv_heads);
    w.width = static_cast<int>(c.d_model);
    w.hidden = static_cast<int>(c.d_ff);
    w.vocabulary = static_cast<int>(c.vocab_size);
    w.context = static_cast<int>(c.context_length);
    w.eps = static_cast<float>(c.norm_eps);
    w.rotary_base = static_cast<float>(c.rotary_base);
    const auto named = [&](const std::string& name) {
        for (const auto& [key, value] : model.named_parameters()) {
            if (key == name) return data(value);
        }
        throw std::invalid_argument("no parameter " + name);
    };
    w.embedding = named("embedding.weight");
    w.norm = named("norm.weight");
    w.head = data(model.head.weight);
    for (int i = 0; i < w.layers; ++i) {
        const std::string block = "blocks." + std::to_string(i) + ".";
        w.layer[i] = {.norm1 = named(block + "norm1.weight"),
                      .q = named(block + "self_attn.q_proj.weight"),
                      .k = named(block + "self_attn.k_proj.weight"),
                      .v = named(block + "self_attn.v_proj.weight"),
                      .out = named(block + "self_attn.out_proj.weight"),
                      .norm2 = named(block + "norm2.weight"),
                      .w1 = named(block + "linear1.weight"),
                      .w2 = named(block + "linear2.weight"),
                      .w3 = named(block + "linear3.weight")};
    }
    return w;
}

std::vector<std::int64_t> continue_plain(const Plain& plain, const LlamaWeights& weights,
                                         int tokens, int threads) {
    LlamaState* state = plain.make(&weights);
    std::vector<std::int64_t> result;
    int token = first_token;
    for (int position = 0; position < tokens; ++position) {
        const float* logits = plain.step(state, token, position, threads);
        token = static_cast<int>(std::max_element(logits, logits + weights.vocabulary) - logits);
        result.push_back(token);
    }
    plain.free(state);
    return result;
}

/// Prints a line a program; true if the tokens agree.
bool measure(const Work& work, int threads, int trials) {
    set_num_threads(threads);
    RandomState rng(1);
    Llama model(work.config, rng);
    const LlamaWeights weights = weights_of(model);
    const int tokens = weights.context;

    struct Timed {
        std::string name;
        std::function<std::vector<std::int64_t>()> run;
        std::vector<double> rates = {};
        std::vector<std::int64_t> tokens = {};
    };
    std::vector<Timed> programs;
    programs.push_back({"glassgrad", [&] {
                            return generate(
                                       model, {{first_token}},
                                       {.max_tokens = tokens, .sampling = {.temperature = 0}})[0]
                                .tokens;
                        }});
    for (const Plain& plain : plains) {
        programs.push_back(
            {plain.name, [&] { return continue_plain(plain, weights, tokens, threads); }});
    }
    for (int trial = 0; trial <= trials; ++trial) {
        for (Timed& each : programs) {
            const double start = bench::seconds();
            each.tokens = each.run();
            const double end = bench::seconds();
            if (trial > 0) each.rates.push_back(tokens / (end - start));
        }
    }

    bool same = true;
    const Timed& ours = programs[0];
    for (const Timed& each : programs) {
        std::vector<double> ratios;
        for (std::size_t i = 0; i < each.rates.size(); ++i) {
            ratios.push_back(ours.rates[i] / each.rates[i]);
        }
        std::printf("| %s | %d | %s | %.0f | %.2f |\n", work.name, threads, each.name.c_str(),
                    bench::median(each.rates), bench::median(ratios));
        same = same && each.tokens == ours.tokens;
    }
    if (!same) std::printf("FAILED: the tokens of %s differ\n", work.name);
    std::fflush(stdout);
    return same;
}

bool run(int count, char** given) {
    std::vector<std::string> names;
    std::vector<int> threads{1, 2};
    int trials = 7;
    for (int i = 1; i < count; ++i) {
        const std::string argument = given[i];
        if (argument == "--threads" && i + 1 < count) {
            threads = {std::stoi(given[++i])};
        } else if (argument == "--trials" && i + 1 < count) {
            trials = std::stoi(given[++i]);
        } else {
            names.push_back(argument);
        }
    }
    for (const std::string& name : names) {
        if (name != works()[0].name && name != works()[1].name) {
            throw std::invalid_argument("no model called " + name + "; there are 260K and 15M");
        }
    }
    bool same = true;
    std::printf(
        "| model | threads | program | tokens/s | glassgrad / program |\n"
        "| --- | ---: | --- | ---: | ---: |\n");
    for (const Work& work : works()) {
        if (!names.empty() && std::find(names.begin(), names.end(), work.name) == names.end()) {
            continue;
        }
        for (const int n : threads) same = measure(work, n, trials) && same;
    }
    return same;
}

}  // namespace

int main(int count, char** given) {
    try {
        return run(count, given) ? 0 : 1;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_generation: %s\n", error.what());
        return 1;
    }
}
