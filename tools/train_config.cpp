#include "train_config.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

namespace glassgrad::tools {
namespace {

constexpr std::pair<LrSchedule, std::string_view> schedules[] = {
    {LrSchedule::constant, "constant"}, {LrSchedule::linear, "linear"},
    {LrSchedule::cosine, "cosine"},     {LrSchedule::one_cycle, "one_cycle"},
    {LrSchedule::plateau, "plateau"},
};

template <class... F>
struct Overloaded : F... {
    using F::operator()...;
};
// clang 14 doesn't deduce it for an aggregate.
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
bool parse(std::string_view text, T& value) {
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

std::string upper(std::string_view text, char from, char to, bool capital) {
    std::string changed(text);
    for (char& c : changed) {
        if (c == from) c = to;
        if (capital && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return changed;
}

std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < a.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < b.size(); ++j) {
            const std::size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
        }
    }
    return row.back();
}

std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
            out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace

std::string Setting::flag() const { return "--" + upper(key, '_', '-', false); }

std::string Setting::environment() const { return "GLASSGRAD_" + upper(key, '_', '_', true); }

std::vector<Setting> settings(TrainConfig& config) {
    GptConfig& model = config.model;
    TrainOptions& train = config.train;
    return {
        {"data", "file", "text in UTF-8", &config.file},
        {"data", "any_bytes", "takes a file that is no UTF-8 as it is, for bpe", &config.any_bytes},
        {"data", "train_share", "of the text that is trained on, the rest validates",
         &config.train_share},
        {"data", "tokenizer", "char: a token a character; bpe: learned pairs of bytes",
         &config.tokenizer},
        {"data", "vocab_size", "tokens of bpe, 256 and more", &config.vocab_size},

        {"model", "context_length", "tokens that the model looks back on", &model.context_length},
        {"model", "d_model", "width", &model.d_model},
        {"model", "num_layers", "blocks", &model.num_layers},
        {"model", "num_heads", "heads of attention, a divisor of d_model", &model.num_heads},
        {"model", "d_ff", "width of feed-forward networks; 0: 4 d_model", &model.d_ff},
        {"model", "dropout", "share of activations dropped in training", &model.dropout},
        {"model", "norm_eps", "added to variances", &model.norm_eps},
        {"model", "bias", "in attention, feed-forward and norms", &model.bias},
        {"model", "tie_head", "the head's weight is the embedding's", &model.tie_head},
        {"model", "activation", "relu, gelu, gelu_tanh or silu", &model.activation},

        {"train", "steps", "updates", &train.steps},
        {"train", "batch_size", "samples of a step", &train.batch_size},
        {"train", "micro_batch", "samples computed at a time; 0: all", &train.micro_batch},
        {"train", "schedule", "constant, linear, cosine, one_cycle or plateau", &train.schedule},
        {"train", "lr", "learning rate", &train.lr},
        {"train", "min_lr", "the rate at the end", &train.min_lr},
        {"train", "warmup", "steps that the rate grows in; default a twentieth of all",
         &train.warmup},
        {"train", "beta1", "AdamW's memory of gradients", &train.beta1},
        {"train", "beta2", "AdamW's memory of their squares", &train.beta2},
        {"train", "weight_decay", "of matrices", &train.weight_decay},
        {"train", "clip", "largest norm of the gradient; 0: any", &train.clip},
        {"train", "average_decay", "of the moving average of weights; 0: none",
         &train.average_decay},
        {"train", "eval_every", "steps between validations; 0: none", &train.eval_every},
        {"train", "eval_batches", "batches of a validation", &train.eval_batches},
        {"train", "patience", "validations without a better one that are borne; 0: all",
         &train.patience},
        {"train", "seed", "of weights, order, dropout and samples", &config.seed},

        {"run", "out", "folder of the run", &config.out},
        {"run", "checkpoint_every", "steps between checkpoints", &train.checkpoint_every},
        {"run", "keep_last", "checkpoints that are kept, beside the best", &config.keep_last},
        {"run", "sample_every", "steps between samples; 0: none", &train.sample_every},
        {"run", "prompt", "what a sample begins with", &config.prompt},
        {"run", "length", "tokens of a sample", &config.length},
        {"run", "temperature", "of a sample; 0 takes the most probable", &config.temperature},
    };
}

std::string text_of(const Setting& setting) {
    return std::visit(Overloaded{
                          [](const std::string* text) { return *text; },
                          [](const bool* value) { return std::string(*value ? "true" : "false"); },
                          [](const std::optional<std::int64_t>* value) {
                              return *value ? std::to_string(**value) : std::string();
                          },
                          [](const LrSchedule* value) {
                              for (const auto& [each, name] : schedules) {
                                  if (each == *value) return std::string(name);
                              }
                              return std::string();
                          },
                          [](const Activation* value) { return std::string(name(*value)); },
                          [](const auto* number) { return fmt::format("{}", *number); },
                      },
                      setting.place);
}

void set(const Setting& setting, std::string_view text, const std::string& where) {
    const auto refuse = [&](std::string_view expected) {
        throw ConfigError(
            fmt::format("{}: {} is {}, not '{}'", where, setting.key, expected, text));
    };
    std::visit(Overloaded{
                   [&](std::string* value) { *value = text; },
                   [&](bool* value) {
                       if (text != "true" && text != "false") refuse("true or false");
                       *value = text == "true";
                   },
                   [&](double* value) {
                       if (!parse(text, *value)) refuse("a number");
                   },
                   [&](std::int64_t* value) {
                       if (!parse(text, *value)) refuse("a whole number");
                   },
                   [&](std::uint64_t* value) {
                       if (!parse(text, *value)) refuse("a whole number that is not negative");
                   },
                   [&](std::optional<std::int64_t>* value) {
                       std::int64_t number = 0;
                       if (!parse(text, number)) refuse("a whole number");
                       *value = number;
                   },
                   [&](LrSchedule* value) {
                       for (const auto& [each, name] : schedules) {
                           if (name != text) continue;
                           *value = each;
                           return;
                       }
                       refuse(setting.help);
                   },
                   [&](Activation* value) {
                       try {
                           *value = activation_from(text);
                       } catch (const ValueError&) {
                           refuse(setting.help);
                       }
                   },
               },
               setting.place);
}

std::string to_toml(std::span<const Setting> all) {
    std::string out;
    std::string section;
    for (const Setting& each : all) {
        if (each.section != section) {
            section = each.section;
            out += fmt::format("{}[{}]\n", out.empty() ? "" : "\n", section);
        }
        std::string text = text_of(each);
        const bool given =
            !std::holds_alternative<std::optional<std::int64_t>*>(each.place) || !text.empty();
        if (std::holds_alternative<std::string*>(each.place) ||
            std::holds_alternative<LrSchedule*>(each.place) ||
            std::holds_alternative<Activation*>(each.place)) {
            text = quoted(text);
        }
        // Without a point, TOML takes it for a whole number.
        if (std::holds_alternative<double*>(each.place) &&
            text.find_first_of(".en") == std::string::npos) {
            text += ".0";
        }
        out += fmt::format("{:<32} # {}\n",
                           given ? fmt::format("{} = {}", each.key, text) : "# " + each.key,
                           each.help);
    }
    return out;
}

void read_environment(std::span<const Setting> all,
                      const std::function<const char*(const char*)>& variable) {
    for (const Setting& each : all) {
        const std::string name = each.environment();
        if (const char* text = variable(name.c_str())) set(each, text, name);
    }
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
    std::size_t least = 1 + (name.size() + 2) / 3;
    std::string nearest;
    for (const std::string& each : names) {
        const std::size_t d = distance(name, each);
        if (d >= least) continue;
        least = d;
        nearest = each;
    }
    return nearest.empty() ? nearest : fmt::format("; did you mean '{}'?", nearest);
}

}  // namespace glassgrad::tools
