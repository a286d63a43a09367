#pragma once
// What models do alike before their first layer.

#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/layers/linear.hpp>
#include <glassgrad/layers/mask.hpp>
#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/layers/models/llama.hpp>

#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad::detail {

/// Valid, with every 0 that stands for a default replaced. Throws as `validate`.
GptConfig resolved(GptConfig config);
LlamaConfig resolved(LlamaConfig config);

/// Throws TypeError or ShapeError unless ids are i64 (batch, tokens).
void check_ids(std::string_view model, const Tensor& ids);
/// Throws TypeError or ShapeError unless `keep` is boolean (batch, cached + tokens) or undefined.
void check_keep(std::string_view model, const Tensor& ids, const Tensor& keep, std::int64_t cached);
/// The positions given, or those that go on from `cached`: i64 (tokens,) or (batch, tokens), each
/// below `context`. Throws ShapeError naming both lengths, or IndexError for a position.
Tensor positions_of(std::string_view model, const Tensor& ids, const Tensor& given,
                    std::int64_t cached, std::int64_t context);

/// The padding's mask; none for an undefined `keep`.
Mask padding_of(const Tensor& keep);

/// The caches of a call's layers; a call that throws leaves all as they were.
class LayerCaches {
  public:
    /// Empty ones for an empty cache, none without. Throws ValueError when it is of another model.
    LayerCaches(std::string_view model, DecoderCache* cache, std::size_t num_layers);
    ~LayerCaches();
    LayerCaches(const LayerCaches&) = delete;
    LayerCaches& operator=(const LayerCaches&) = delete;
    KeyValueCache* at(std::size_t layer) { return cache_ ? &cache_->layers[layer] : nullptr; }
    /// The call has come to its end.
    void keep() { kept_ = true; }

  private:
    DecoderCache* cache_;
    bool began_empty_ = false;
    bool kept_ = false;
    std::vector<std::int64_t> lengths_;
};

/// A head of its own, without a bias, or one that shares `embedding`.
Linear make_head(bool tied, const Embedding& embedding, std::int64_t vocab_size, RandomState& rng,
                 const ModelOptions& options);

}  // namespace glassgrad::detail
