// What was chosen, with the defaults of the choice, and what the library makes of it.

#include "train_config.hpp"

#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/layers/models/llama.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/bpe_tokenizer.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad::tools {
namespace {

/// What the library refuses is a wrong call here.
template <class F>
auto as_config_error(const F& f) {
    try {
        return f();
    } catch (const ValueError& error) {
        throw ConfigError(error.what());
    }
}

template <class T>
T by_name(const std::vector<std::pair<std::string_view, T>>& named, std::string_view name) {
    return std::find_if(named.begin(), named.end(),
                        [&](const auto& each) { return each.first == name; })
        ->second;
}

}  // namespace

void check_choices(const TrainConfig& config) {
    TrainConfig copy = config;
    const std::vector<Setting> all = settings(copy);
    for (const Setting& each : all) {
        if (each.choice.empty() || !each.given()) continue;
        const auto choice = std::find_if(all.begin(), all.end(), [&](const Setting& setting) {
            return setting.key == each.choice;
        });
        const std::string chosen = text_of(*choice);
        if (std::find(each.of.begin(), each.of.end(), chosen) != each.of.end()) continue;
        throw ConfigError(fmt::format("{} is a setting of {} {}, not of {}", each.key, each.choice,
                                      listed(each.of), chosen));
    }
    if (config.clip.value_or(0) > 0 && config.clip_value.value_or(0) > 0) {
        throw ConfigError("clip and clip_value exclude each other");
    }
    if (config.min_delta && config.patience == 0) {
        throw ConfigError("min_delta is a setting of an early stop, and patience is 0");
    }
}

TrainConfig with_defaults(TrainConfig c) {
    const auto give = [](auto& place, auto value) {
        if (!place) place = value;
    };
    if (c.tokenizer == "bpe") {
        give(c.vocab_size, 512);
        give(c.any_bytes, false);
    }
    const bool llama = c.model == "llama";
    if (llama) {
        give(c.num_kv_heads, c.num_heads);
        give(c.rotary_base, 10000);
    } else {
        give(c.bias, false);
        give(c.activation, "gelu_tanh");
    }
    // LLaMA's has three matrices; with 8/3 they have as many numbers as two with 4.
    give(c.d_ff, llama ? (8 * c.d_model + 2) / 3 : 4 * c.d_model);
    give(c.tie_head, !llama);

    const std::string& optimizer = c.optimizer;
    const bool sgd = optimizer == "sgd", muon = optimizer == "muon", lion = optimizer == "lion";
    give(c.lr, sgd ? 0.1 : lion ? 1e-4 : muon ? 0.02 : 1e-3);
    if (!sgd) {
        give(c.beta1, 0.9);
        give(c.beta2, 0.99);
        if (!lion) give(c.eps, 1e-8);
    }
    if (sgd || muon) {
        give(c.momentum, muon ? 0.95 : 0.9);
        give(c.nesterov, muon);
    }
    if (muon) give(c.adamw_lr, 1e-3);
    give(c.weight_decay, sgd || optimizer == "adam" ? 0.0 : 0.1);

    const std::string& schedule = c.schedule;
    if (schedule == "linear" || schedule == "cosine") {
        give(c.warmup, c.steps / 20);
        give(c.min_lr, *c.lr / 10);
    } else if (schedule == "one_cycle") {
        give(c.up_share, 0.3);
        give(c.first_divisor, 25);
        give(c.last_divisor, 1e4);
    } else {
        give(c.warmup, 0);
    }
    if (schedule == "step") {
        give(c.step_every, std::max<std::int64_t>(c.steps / 4, 1));
        give(c.step_factor, 0.5);
    } else if (schedule == "plateau") {
        give(c.min_lr, *c.lr / 100);
        give(c.plateau_factor, 0.5);
        give(c.plateau_patience, 3);
    }

    give(c.clip, c.clip_value.value_or(0) > 0 ? 0 : 1);
    give(c.clip_value, 0);
    if (c.patience > 0) give(c.min_delta, 0);
    return c;
}

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view text, const TrainConfig& config) {
    if (config.tokenizer == "char") return std::make_unique<CharTokenizer>(text);
    if (*config.vocab_size < 256 || *config.vocab_size > BpeTokenizer::max_vocab_size) {
        throw ConfigError(fmt::format("vocab_size {} is outside 256 to {}", *config.vocab_size,
                                      BpeTokenizer::max_vocab_size));
    }
    return std::make_unique<BpeTokenizer>(BpeTokenizer::train(text, *config.vocab_size));
}

std::unique_ptr<CausalModel> make_model(std::int64_t vocab_size, const TrainConfig& c) {
    return as_config_error([&]() -> std::unique_ptr<CausalModel> {
        RandomState rng(static_cast<std::uint32_t>(c.seed));
        if (c.model == "llama") {
            return std::make_unique<Llama>(LlamaConfig{.vocab_size = vocab_size,
                                                       .context_length = c.context_length,
                                                       .d_model = c.d_model,
                                                       .num_layers = c.num_layers,
                                                       .num_heads = c.num_heads,
                                                       .num_kv_heads = *c.num_kv_heads,
                                                       .d_ff = *c.d_ff,
                                                       .rotary_base = *c.rotary_base,
                                                       .norm_eps = c.norm_eps,
                                                       .dropout = c.dropout,
                                                       .tie_head = *c.tie_head},
                                           rng);
        }
        return std::make_unique<Gpt>(GptConfig{.vocab_size = vocab_size,
                                               .context_length = c.context_length,
                                               .d_model = c.d_model,
                                               .num_layers = c.num_layers,
                                               .num_heads = c.num_heads,
                                               .d_ff = *c.d_ff,
                                               .dropout = c.dropout,
                                               .norm_eps = c.norm_eps,
                                               .bias = *c.bias,
                                               .tie_head = *c.tie_head,
                                               .activation = activation_from(*c.activation)},
                                     rng);
    });
}

TrainOptions train_options(const TrainConfig& c) {
    TrainOptions options{.steps = c.steps,
                         .batch_size = c.batch_size,
                         .micro_batch = c.micro_batch,
                         .micro_batches_per_pass = c.micro_batches_per_pass,
                         .schedule = by_name<LrSchedule>({{"constant", LrSchedule::constant},
                                                          {"linear", LrSchedule::linear},
                                                          {"cosine", LrSchedule::cosine},
                                                          {"one_cycle", LrSchedule::one_cycle},
                                                          {"step", LrSchedule::step},
                                                          {"plateau", LrSchedule::plateau}},
                                                         c.schedule),
                         .lr = *c.lr,
                         .min_lr = c.min_lr.value_or(0),
                         .warmup = c.warmup,
                         .optimizer = by_name<OptimizerKind>({{"adamw", OptimizerKind::adamw},
                                                              {"adam", OptimizerKind::adam},
                                                              {"sgd", OptimizerKind::sgd},
                                                              {"lion", OptimizerKind::lion},
                                                              {"muon", OptimizerKind::muon}},
                                                             c.optimizer),
                         .weight_decay = *c.weight_decay,
                         .clip = *c.clip,
                         .clip_value = *c.clip_value,
                         .average_decay = c.average_decay,
                         .eval_every = c.eval_every,
                         .eval_batches = c.eval_batches,
                         .patience = c.patience,
                         .min_delta = c.min_delta.value_or(0),
                         .sample_every = c.sample_every,
                         .checkpoint_every = c.checkpoint_every,
                         .seed = c.seed};
    const auto take = [](auto& option, const auto& given) {
        if (given) option = *given;
    };
    take(options.up_share, c.up_share);
    take(options.first_divisor, c.first_divisor);
    take(options.last_divisor, c.last_divisor);
    take(options.step_every, c.step_every);
    take(options.step_factor, c.step_factor);
    take(options.plateau.factor, c.plateau_factor);
    take(options.plateau.patience, c.plateau_patience);
    take(options.beta1, c.beta1);
    take(options.beta2, c.beta2);
    take(options.eps, c.eps);
    take(options.momentum, c.momentum);
    take(options.nesterov, c.nesterov);
    take(options.adamw_lr, c.adamw_lr);
    as_config_error([&] {
        validate(options);
        return 0;
    });
    return options;
}

}  // namespace glassgrad::tools
