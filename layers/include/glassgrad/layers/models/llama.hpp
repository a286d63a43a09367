#pragma once
// LLaMA's architecture.

#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/layers/module_list.hpp>
#include <glassgrad/layers/transformer_block.hpp>

#include <string>
#include <string_view>

namespace glassgrad {

struct LlamaConfig {
    std::int64_t vocab_size = 0;
    std::int64_t context_length = 0;
    std::int64_t d_model = 0;
    std::int64_t num_layers = 0;
    std::int64_t num_heads = 0;
    std::int64_t num_kv_heads = 0;  ///< a divisor of num_heads; 0: num_heads
    std::int64_t d_ff = 0;
    /// How rows of q_proj and k_proj are laid out: neighbours in Meta's and llama2.c's files,
    /// halves in Hugging Face's.
    RotaryPairing rotary_pairing = RotaryPairing::neighbours;
    double rotary_base = 10000;
    double norm_eps = 1e-5;
    double dropout = 0;
    bool tie_head = false;  ///< the head's weight is the embedding's

    friend bool operator==(const LlamaConfig&, const LlamaConfig&) = default;
};

/// Throws ValueError that names what is out of range or does not fit.
void validate(const LlamaConfig& config);
/// A JSON object with a member for each field, and "architecture".
std::string to_json(const LlamaConfig& config);
/// The inverse; throws as `gpt_config_from_json`.
LlamaConfig llama_config_from_json(std::string_view text);

/// RMS norms first, rotary positions, grouped heads, SwiGLU, no biases. Parameters: embedding,
/// blocks.N as TransformerBlock (linear1, linear2 and linear3 are w1, w2 and w3), norm, head.
/// Source: Touvron et al. 2023.
class Llama : public CausalModel {
  public:
    /// Starts as `init::gpt2`. Throws as `validate`.
    Llama(const LlamaConfig& given, RandomState& rng, const ModelOptions& options = {});

    Variable operator()(const Tensor& ids, const CausalCall& call = {}) const override;
    /// What goes into the first block, what the last norm gives, and the result.
    std::vector<std::string> point_names() const override {
        return {"embedded", "hidden", "logits"};
    }
    std::int64_t vocab_size() const noexcept override { return config.vocab_size; }
    std::int64_t context_length() const noexcept override { return config.context_length; }
    std::int64_t num_layers() const noexcept override { return config.num_layers; }

    const LlamaConfig config;  ///< with every 0 that stands for a default replaced
    Embedding embedding;
    Dropout dropout;
    ModuleList<TransformerBlock> blocks;
    RMSNorm norm;
    Linear head;
};

}  // namespace glassgrad
