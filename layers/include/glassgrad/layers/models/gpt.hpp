#pragma once
// GPT-2's architecture.

#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/layers/module_list.hpp>
#include <glassgrad/layers/transformer_block.hpp>

#include <string>
#include <string_view>

namespace glassgrad {

struct GptConfig {
    std::int64_t vocab_size = 0;
    std::int64_t context_length = 0;
    std::int64_t d_model = 0;
    std::int64_t num_layers = 0;
    std::int64_t num_heads = 0;
    std::int64_t d_ff = 0;  ///< 0: 4 d_model
    double dropout = 0;
    double norm_eps = 1e-5;
    bool bias = true;      ///< in attention, feed-forward and norms
    bool tie_head = true;  ///< the head's weight is the embedding's
    Activation activation = Activation::gelu_tanh;

    friend bool operator==(const GptConfig&, const GptConfig&) = default;
};

/// Throws ValueError that names what is out of range or does not fit.
void validate(const GptConfig& config);
/// A JSON object with a member for each field, and "architecture".
std::string to_json(const GptConfig& config);
/// The inverse. Members that have a default may be absent. Throws FileError with line and column on
/// text that is no JSON, an unknown, repeated or missing member or a wrong type, and as `validate`.
GptConfig gpt_config_from_json(std::string_view text);

/// Learned positions, blocks with the norm first, a last norm, a head. Parameters: embedding,
/// position, blocks.N as TransformerBlock, norm, head. Source: Radford et al. 2019.
class Gpt : public CausalModel {
  public:
    /// Starts as `init::gpt2`. Throws as `validate`.
    Gpt(const GptConfig& given, RandomState& rng, const ModelOptions& options = {});

    Variable operator()(const Tensor& ids, const CausalCall& call = {}) const override;
    /// What goes into the first block, what the last norm gives, and the result.
    std::vector<std::string> point_names() const override {
        return {"embedded", "hidden", "logits"};
    }
    std::int64_t vocab_size() const noexcept override { return config.vocab_size; }
    std::int64_t context_length() const noexcept override { return config.context_length; }
    std::int64_t num_layers() const noexcept override { return config.num_layers; }

    const GptConfig config;  ///< with every 0 that stands for a default replaced
    Embedding embedding;
    Embedding position;
    Dropout dropout;
    ModuleList<TransformerBlock> blocks;
    LayerNorm norm;
    Linear head;
};

}  // namespace glassgrad
