#pragma once
// A BERT-like encoder.

#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/layers/module_list.hpp>
#include <glassgrad/layers/transformer_block.hpp>

#include <string>
#include <string_view>

namespace glassgrad {

struct EncoderConfig {
    std::int64_t vocab_size = 0;
    std::int64_t context_length = 0;
    std::int64_t d_model = 0;
    std::int64_t num_layers = 0;
    std::int64_t num_heads = 0;
    std::int64_t d_ff = 0;  ///< 0: 4 d_model
    std::int64_t num_segments = 2;
    std::int64_t num_classes = 2;
    double dropout = 0;
    double norm_eps = 1e-12;
    /// Blocks with the norm first and a norm at the end; otherwise BERT's, with a norm after the
    /// embeddings.
    bool norm_first = false;
    Activation activation = Activation::gelu;

    friend bool operator==(const EncoderConfig&, const EncoderConfig&) = default;
};

/// Throws ValueError that names what is out of range or does not fit.
void validate(const EncoderConfig& config);
/// A JSON object with a member for each field, and "architecture".
std::string to_json(const EncoderConfig& config);
/// The inverse; throws as `gpt_config_from_json`.
EncoderConfig encoder_config_from_json(std::string_view text);

/// BERT's masked-token head: decoder(norm(activation(dense x))) + bias, where the weight of
/// `decoder` is the embedding's.
class MaskedTokenHead : public Layer {
  public:
    MaskedTokenHead(const EncoderConfig& config, const Variable& embedding, RandomState& rng,
                    const ModelOptions& options);
    /// x (..., d_model) to logits (..., vocab_size).
    Variable operator()(const Variable& x) const override;

    Linear dense;
    LayerNorm norm;
    Linear decoder;
    Variable bias;
    const Activation activation;
};

/// What an encoder is called with beside the ids (batch, tokens).
struct EncoderCall {
    Tensor segments = {};  ///< i64 (batch, tokens); undefined: all 0
    Tensor keep = {};      ///< boolean (batch, tokens), false for padding; undefined: all are real
};

/// Embeddings of tokens, learned positions and segments, blocks in which every token sees every
/// other, a masked-token head and a classifier of the first token. Parameters: embedding, position,
/// segment, embedding_norm or norm, blocks.N, masked_head, pooler, classifier.
/// Source: Devlin et al. 2019.
class Encoder : public Module {
  public:
    /// Matrices start truncated normal, 0.02 within ±0.04, biases at 0. Throws as `validate`.
    Encoder(const EncoderConfig& given, RandomState& rng, const ModelOptions& options = {});

    /// Hidden states (batch, tokens, d_model). Throws as CausalModel's.
    Variable operator()(const Tensor& ids, const EncoderCall& call = {}) const;
    /// Logits (batch, tokens, vocab_size) of hidden states.
    Variable token_logits(const Variable& hidden) const;
    /// Logits (batch, num_classes): classifier(tanh(pooler(first token))).
    Variable class_logits(const Variable& hidden) const;
    /// What goes into the first block, and the results.
    std::vector<std::string> point_names() const override {
        return {"embedded", "hidden", "token_logits", "pooled", "class_logits"};
    }

    const EncoderConfig config;  ///< with every 0 that stands for a default replaced
    Embedding embedding;
    Embedding position;
    Embedding segment;
    LayerNorm norm;  ///< `embedding_norm`, or `norm` at the end with norm_first
    Dropout dropout;
    ModuleList<TransformerBlock> blocks;
    MaskedTokenHead masked_head;
    Linear pooler;
    Linear classifier;
};

}  // namespace glassgrad
