#pragma once
// What a run is made of, under one name each in a TOML file, in the environment and as a flag.

#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/training/trainer.hpp>

#include <cstdint>
#include <functional>
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

struct TrainConfig {
    std::string file;  ///< the text
    bool any_bytes = false;
    double train_share = 0.9;
    std::string tokenizer = "char";
    std::int64_t vocab_size = 512;  ///< of bpe
    GptConfig model{
        .context_length = 64, .d_model = 128, .num_layers = 4, .num_heads = 4, .bias = false};
    TrainOptions train;
    std::uint64_t seed = 1337;
    std::string out = "run";
    std::int64_t keep_last = 3;
    std::string prompt;
    std::int64_t length = 300;
    double temperature = 0.8;
};

/// Where the value of a setting lies.
using Place = std::variant<std::int64_t*, std::uint64_t*, double*, bool*, std::string*,
                           std::optional<std::int64_t>*, LrSchedule*, Activation*>;

struct Setting {
    std::string section;
    std::string key;  ///< no two sections share one
    std::string help;
    Place place;

    std::string flag() const;         ///< --batch-size
    std::string environment() const;  ///< GLASSGRAD_BATCH_SIZE
};

/// All of them, in the order of a file.
std::vector<Setting> settings(TrainConfig& config);

/// The value as text, as `set` reads it; empty for one that is not given.
std::string text_of(const Setting& setting);
/// Throws ConfigError that names `where`, what was expected and what came.
void set(const Setting& setting, std::string_view text, const std::string& where);

/// A TOML document with all settings, which gives the same configuration when it is read.
std::string to_toml(std::span<const Setting> all);
/// Sets what a TOML document has. Throws ConfigError with `source`:line:column on malformed text,
/// an unknown section or key (with the nearest there is), and a value of another type.
void read_toml(std::span<const Setting> all, std::string_view text, const std::string& source);
/// Sets what the environment has; `variable` gives the value of a name, or nullptr.
void read_environment(std::span<const Setting> all,
                      const std::function<const char*(const char*)>& variable);

/// ", did you mean 'lr'?" with the nearest of the names, or nothing when none is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& names);

}  // namespace glassgrad::tools
