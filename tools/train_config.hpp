#pragma once
// What a run is made of, under one name each in a TOML file, in the environment and as a flag.

#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/training/tokenizer.hpp>
#include <glassgrad/training/trainer.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace glassgrad::tools {

/// A setting that is unknown, or whose value is none. The command ends with exit_usage.
class ConfigError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// What is optional belongs to some choices only (a model, an optimizer, a schedule, ...), or has a
/// default by choice; `with_defaults` fills it in.
struct TrainConfig {
    std::string file;  ///< the text
    std::optional<bool> any_bytes;
    double train_share = 0.9;
    std::string tokenizer = "char";
    std::optional<std::int64_t> vocab_size;

    std::string model = "gpt";
    std::int64_t context_length = 64, d_model = 128, num_layers = 4, num_heads = 4;
    std::optional<std::int64_t> num_kv_heads, d_ff;
    double dropout = 0, norm_eps = 1e-5;
    std::optional<bool> bias, tie_head;
    std::optional<std::string> activation;
    std::optional<double> rotary_base;

    std::int64_t steps = 2000, batch_size = 12, micro_batch = 0, micro_batches_per_pass = 1;
    std::string optimizer = "adamw";
    std::optional<double> lr, beta1, beta2, eps, momentum;
    std::optional<bool> nesterov;
    std::optional<double> adamw_lr, weight_decay;
    std::string schedule = "cosine";
    std::optional<double> min_lr;
    std::optional<std::int64_t> warmup;
    std::optional<double> up_share, first_divisor, last_divisor;
    std::optional<std::int64_t> step_every;
    std::optional<double> step_factor, plateau_factor;
    std::optional<std::int64_t> plateau_patience;
    std::optional<double> clip, clip_value;
    double average_decay = 0;
    std::int64_t eval_every = 250, eval_batches = 20, patience = 0;
    std::optional<double> min_delta;
    std::uint64_t seed = 1337;

    std::string out = "run";
    std::int64_t checkpoint_every = 250, keep_last = 3, sample_every = 0;
    std::string prompt;
    std::int64_t length = 300;
    double temperature = 0.8;
};

/// Where the value of a setting lies.
using Place = std::variant<std::int64_t*, std::uint64_t*, double*, bool*, std::string*,
                           std::optional<std::int64_t>*, std::optional<double>*,
                           std::optional<bool>*, std::optional<std::string>*>;

struct Setting {
    std::string section;
    std::string key;  ///< no two sections share one
    std::string help;
    Place place;
    std::vector<std::string> values = {};  ///< that a text may have; empty for any
    std::string choice = {};               ///< the key of the choice that it belongs to
    std::vector<std::string> of = {};      ///< the values of that choice

    enum class Kind { whole, real, truth, text };
    Kind kind() const;
    bool given() const;
    std::string flag() const;         ///< --batch-size
    std::string environment() const;  ///< GLASSGRAD_BATCH_SIZE
    std::string full_help() const;    ///< with the values, and whose it is
};

/// All of them, in the order of a file.
std::vector<Setting> settings(TrainConfig& config);

/// The value as text, as `set` reads it; empty for one that is not given.
std::string text_of(const Setting& setting);
/// Throws ConfigError that names `where`, what was expected and what came.
void set(const Setting& setting, std::string_view text, const std::string& where);
/// As if it weren't given; nothing for one that always is.
void clear(const Setting& setting);

/// Throws ConfigError for a setting that is given and belongs to what wasn't chosen.
void check_choices(const TrainConfig& config);
/// What wasn't given, as it is for what was chosen; what belongs to other choices stays empty.
TrainConfig with_defaults(TrainConfig config);

/// Of a configuration with defaults. Throws ConfigError for what the library refuses.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view text, const TrainConfig& config);
std::unique_ptr<CausalModel> make_model(std::int64_t vocab_size, const TrainConfig& config);
TrainOptions train_options(const TrainConfig& config);

/// A TOML document with all settings, which gives the same configuration when it is read; what
/// wasn't given is there as a comment, with its default.
std::string to_toml(const TrainConfig& config);
/// Sets what a TOML document has. Throws ConfigError with `source`:line:column on malformed text,
/// an unknown section or key (with the nearest there is), and a value of another type.
void read_toml(std::span<const Setting> all, std::string_view text, const std::string& source);
/// Sets what the environment has; `variable` gives the value of a name, or nullptr.
void read_environment(std::span<const Setting> all,
                      const std::function<const char*(const char*)>& variable);

/// "; did you mean 'lr'?" with the nearest of the names, or nothing when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

/// "a", "a or b", "a, b or c".
std::string listed(const std::vector<std::string>& words);

}  // namespace glassgrad::tools
