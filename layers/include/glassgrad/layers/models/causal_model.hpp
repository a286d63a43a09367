#pragma once
// What models that continue a text have in common: `generate` knows them by it.

#include <glassgrad/layers/module.hpp>
#include <glassgrad/layers/multi_head_attention.hpp>

#include <vector>

namespace glassgrad {

struct ModelOptions {
    DType dtype = f32;
};

/// Keys and values of all layers for the tokens seen so far. Made empty; the model fills it.
struct DecoderCache {
    std::vector<KeyValueCache> layers;

    std::int64_t length() const noexcept { return layers.empty() ? 0 : layers.front().length(); }
    void clear() { layers.clear(); }
};

/// What a causal model is called with beside the ids (batch, tokens).
struct CausalCall {
    /// boolean (batch, tokens), with a cache (batch, cached + tokens): true for real tokens, false
    /// for padding, which nobody sees. Undefined: all are real.
    Tensor keep = {};
    /// i64 (tokens,) or (batch, tokens). By default they go on from the end of the cache.
    Tensor positions = {};
    /// Grows by the tokens of the call. It takes no gradient: for use under NoGrad.
    DecoderCache* cache = nullptr;
};

/// A model whose logits at a token depend on the tokens up to it.
class CausalModel : public Module {
  public:
    /// ids (batch, tokens) to logits (batch, tokens, vocab_size). Throws ShapeError or TypeError
    /// unless the parts of the call fit each other, ShapeError that names both lengths when the
    /// tokens go beyond the context, IndexError for an id or a position outside.
    virtual Variable operator()(const Tensor& ids, const CausalCall& call = {}) const = 0;

    virtual std::int64_t vocab_size() const noexcept = 0;
    /// The most tokens that it can look back on, the current one included.
    virtual std::int64_t context_length() const noexcept = 0;
    virtual std::int64_t num_layers() const noexcept = 0;
};

}  // namespace glassgrad
