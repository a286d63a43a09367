#pragma once

#include <glassgrad/layers/module.hpp>
#include <glassgrad/tensor/random.hpp>

#include <optional>

namespace glassgrad {

struct EmbeddingOptions {
    /// The row of the token that pads: starts at zero, takes no gradient.
    std::optional<std::int64_t> padding_idx = {};
    DType dtype = f32;
};

/// A row of `weight` (num_embeddings, embedding_dim) for each id, as torch.nn.Embedding.
class Embedding : public Module {
  public:
    /// Standard normal (PyTorch's default). Throws ShapeError unless both sizes are at least 1,
    /// IndexError when padding_idx is no row.
    Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, RandomState& rng,
              const EmbeddingOptions& options = {});

    /// ids (...) of i64 to (..., embedding_dim). Throws IndexError that names an id outside
    /// [0, num_embeddings) and its place.
    Variable operator()(const Tensor& ids) const;

    Variable weight;
    const std::optional<std::int64_t> padding_idx;
};

}  // namespace glassgrad
