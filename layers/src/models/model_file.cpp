#include "support.hpp"

#include <glassgrad/layers/llama2c.hpp>
#include <glassgrad/layers/models/hugging_face.hpp>
#include <glassgrad/layers/models/model_file.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/safetensors.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace glassgrad {
namespace {

using Metadata = std::vector<std::pair<std::string, std::string>>;

GptConfig read_config(const GptConfig*, const std::string& text) {
    return gpt_config_from_json(text);
}
LlamaConfig read_config(const LlamaConfig*, const std::string& text) {
    return llama_config_from_json(text);
}

/// The numbers in the matrices of a model.
double matrices_of(const GptConfig& c) {
    const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
    return d * static_cast<double>(c.vocab_size) + d * static_cast<double>(c.context_length) +
           static_cast<double>(c.num_layers) * d * (4 * d + 2 * ff);
}
double matrices_of(const LlamaConfig& c) {
    const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
    return d * static_cast<double>(c.vocab_size) +
           static_cast<double>(c.num_layers) * d * (2 * d + 3 * ff);
}

struct ModelFile {
    SafetensorsFile file;
    std::string path;

    explicit ModelFile(const std::string& name) : file(load_safetensors(name)), path(name) {}

    [[noreturn]] void refuse(std::string_view problem, std::string_view hint = {}) const {
        throw FileError(fmt::format("load_model: '{}' {}", path, problem), hint);
    }
    std::optional<std::string> metadata(std::string_view key) const {
        for (const auto& [name, text] : file.metadata) {
            if (name == key) return text;
        }
        return {};
    }

    /// Refuses a configuration that would make a model larger than the file.
    template <class Config>
    Config config() const {
        const auto text = metadata("config");
        if (!text) {
            refuse("has no configuration in its metadata",
                   "for Hugging Face's files there are load_safetensors and "
                   "gpt2_from_hugging_face or llama_from_hugging_face");
        }
        std::optional<Config> config;
        try {
            config = detail::resolved(read_config(static_cast<const Config*>(nullptr), *text));
        } catch (const Error& error) {
            refuse(fmt::format("has a wrong configuration: {}", error.what()));
        }
        double numbers = 0;
        for (const auto& [name, x] : file.tensors) numbers += static_cast<double>(x.numel());
        constexpr std::size_t least_names = 8;  // of a block
        if (numbers < matrices_of(*config) ||
            file.tensors.size() / least_names < static_cast<std::size_t>(config->num_layers)) {
            refuse(
                fmt::format("holds {} numbers in {} tensors, less than its configuration of {} "
                            "layers needs",
                            numbers, file.tensors.size(), config->num_layers));
        }
        return *config;
    }

    DType dtype() const {
        const DType first = file.tensors.front().second.dtype();
        for (const auto& [name, x] : file.tensors) {
            if (is_floating(x.dtype()) && x.dtype() == first) continue;
            refuse(fmt::format("holds weights that are not of one floating type: {} is {}", name,
                               glassgrad::name(x.dtype())));
        }
        return first;
    }

    /// The layout of q_proj and k_proj, which configuration and metadata agree on.
    RotaryPairing rotary(const LlamaConfig& config) const {
        const auto text = metadata("rotary");
        if (!text) refuse("does not say its rotary layout in its metadata");
        if (*text != name(config.rotary_pairing)) {
            refuse(
                fmt::format("contradicts itself: the rotary layout is '{}' in its metadata and "
                            "'{}' in its configuration",
                            *text, name(config.rotary_pairing)));
        }
        return config.rotary_pairing;
    }
};

/// The first line in which two configurations differ: `"num_heads":4` and `"num_heads":2`.
template <class Config>
void require_same(const ModelFile& file, const Config& stored, const Config& model) {
    if (stored == model) return;
    const std::string a = to_json(stored), b = to_json(model);
    const auto differ = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
    const auto line = [&](const std::string& text) {
        const std::size_t begin = text.find('"', text.rfind('\n', differ));
        return text.substr(begin, text.find_first_of(",\n", begin) - begin);
    };
    throw ValueError(
        fmt::format("load_model: '{}' is of another configuration: {}, the model has {}", file.path,
                    line(a), line(b)),
        "nothing was loaded");
}

template <class Model>
void save(const std::string& path, const Model& model, Metadata metadata) {
    metadata.emplace_back("config", to_json(model.config));
    save_safetensors(path, model.state_dict({.repeat_tied = false}), metadata);
}

}  // namespace

void save_model(const std::string& path, const Gpt& model) { save(path, model, {}); }
void save_model(const std::string& path, const Llama& model) {
    save(path, model, {{"rotary", std::string(name(model.config.rotary_pairing))}});
}

void load_model(const std::string& path, Gpt& model) {
    const ModelFile file(path);
    auto config = file.config<GptConfig>();
    config.dropout = model.config.dropout;
    require_same(file, config, model.config);
    model.load_state_dict(file.file.tensors);
}

void load_model(const std::string& path, Llama& model) {
    const ModelFile file(path);
    auto config = file.config<LlamaConfig>();
    const RotaryPairing stored = file.rotary(config);
    config.dropout = model.config.dropout;
    config.rotary_pairing = model.config.rotary_pairing;
    require_same(file, config, model.config);
    model.load_state_dict(convert_rotary(file.file.tensors, config, stored, config.rotary_pairing));
}

std::unique_ptr<Gpt> load_gpt(const std::string& path) {
    const ModelFile file(path);
    const auto config = file.config<GptConfig>();
    RandomState rng(0);
    auto model = std::make_unique<Gpt>(config, rng, ModelOptions{.dtype = file.dtype()});
    model->load_state_dict(file.file.tensors);
    return model;
}

std::unique_ptr<Llama> load_llama(const std::string& path) {
    const ModelFile file(path);
    const auto config = file.config<LlamaConfig>();
    file.rotary(config);
    RandomState rng(0);
    auto model = std::make_unique<Llama>(config, rng, ModelOptions{.dtype = file.dtype()});
    model->load_state_dict(file.file.tensors);
    return model;
}

std::unique_ptr<Llama> load_llama2c(const std::string& path) {
    const Llama2cCheckpoint file = load_llama2c_checkpoint(path);
    RandomState rng(0);
    auto model = std::make_unique<Llama>(LlamaConfig{.vocab_size = file.vocab_size,
                                                     .context_length = file.context_length,
                                                     .d_model = file.d_model,
                                                     .num_layers = file.num_layers,
                                                     .num_heads = file.num_heads,
                                                     .num_kv_heads = file.num_kv_heads,
                                                     .d_ff = file.d_ff,
                                                     .tie_head = file.shares_head},
                                         rng);
    model->load_state_dict(file.weights);
    return model;
}

}  // namespace glassgrad
