#pragma once
// The transformer of 2017: an encoder, and a decoder that looks at what it gives.

#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/layers/module_list.hpp>
#include <glassgrad/layers/transformer_block.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace glassgrad {

struct Seq2SeqConfig {
    std::int64_t source_vocab_size = 0;
    std::int64_t target_vocab_size = 0;
    std::int64_t context_length = 0;  ///< of source and target, each
    std::int64_t d_model = 0;
    std::int64_t num_encoder_layers = 0;
    std::int64_t num_decoder_layers = 0;
    std::int64_t num_heads = 0;
    std::int64_t d_ff = 0;  ///< 0: 4 d_model
    double dropout = 0;
    double norm_eps = 1e-5;
    bool norm_first = false;       ///< with a norm at the end of encoder and decoder
    bool share_embeddings = true;  ///< source, target and head have one matrix
    Activation activation = Activation::relu;

    friend bool operator==(const Seq2SeqConfig&, const Seq2SeqConfig&) = default;
};

/// Throws ValueError that names what is out of range or does not fit.
void validate(const Seq2SeqConfig& config);
/// A JSON object with a member for each field, and "architecture".
std::string to_json(const Seq2SeqConfig& config);
/// The inverse; throws as `gpt_config_from_json`.
Seq2SeqConfig seq2seq_config_from_json(std::string_view text);

/// Which tokens are real, boolean (batch, tokens); undefined: all.
struct Seq2SeqCall {
    Tensor source_keep = {};
    Tensor target_keep = {};
};

/// Keys and values of the target so far, and of the memory, which are computed once.
struct Seq2SeqCache {
    DecoderCache target;
    DecoderCache memory;
};

/// What a step of the decoder is called with: as CausalCall, and what the source's tokens are.
struct DecodeCall {
    Tensor source_keep = {};
    Tensor target_keep = {};
    Tensor positions = {};
    Seq2SeqCache* cache = nullptr;
};

/// Embeddings times √d_model plus sinusoidal positions; blocks with the norm after the sum; the
/// head shares the embedding. Parameters: source_embedding, target_embedding, encoder.N, decoder.N,
/// with norm_first encoder_norm and decoder_norm, head. Source: Vaswani et al. 2017.
class Seq2Seq : public Module {
  public:
    /// Matrices start Xavier uniform, as torch.nn.Transformer's, embeddings normal 1/√d_model,
    /// biases at 0. Throws as `validate`.
    Seq2Seq(const Seq2SeqConfig& given, RandomState& rng, const ModelOptions& options = {});

    /// source (batch, source tokens) and target (batch, target tokens) to logits (batch, target
    /// tokens, target_vocab_size). Throws as CausalModel's.
    Variable operator()(const Tensor& source, const Tensor& target,
                        const Seq2SeqCall& call = {}) const;
    /// The memory (batch, source tokens, d_model).
    Variable encode(const Tensor& source, const Tensor& keep = {}) const;
    /// Logits of the target's tokens.
    Variable decode(const Tensor& target, const Variable& memory,
                    const DecodeCall& call = {}) const;
    /// What goes into the first blocks, and the results.
    std::vector<std::string> point_names() const override {
        return {"source", "memory", "target", "hidden", "logits"};
    }

    const Seq2SeqConfig config;  ///< with every 0 that stands for a default replaced
    Embedding source_embedding;
    std::unique_ptr<Embedding> target_embedding;  ///< null when shared
    Dropout dropout;
    ModuleList<TransformerBlock> encoder;
    ModuleList<TransformerBlock> decoder;
    std::unique_ptr<LayerNorm> encoder_norm;  ///< with norm_first
    std::unique_ptr<LayerNorm> decoder_norm;
    Linear head;

  private:
    Variable embed(const Embedding& table, const Tensor& ids, const Tensor& positions) const;

    Tensor sinusoids_;
};

}  // namespace glassgrad
