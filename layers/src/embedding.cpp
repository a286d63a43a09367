#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

namespace glassgrad {

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, RandomState& rng,
                     const EmbeddingOptions& options)
    : padding_idx(options.padding_idx) {
    if (num_embeddings < 1 || embedding_dim < 1) {
        throw ShapeError(fmt::format("embedding: {} rows of width {}: both must be at least 1",
                                     num_embeddings, embedding_dim));
    }
    if (padding_idx && (*padding_idx < 0 || *padding_idx >= num_embeddings)) {
        throw IndexError(fmt::format("embedding: padding_idx {} is not one of {} rows",
                                     *padding_idx, num_embeddings));
    }
    Tensor table = rng.randn({num_embeddings, embedding_dim}, {.dtype = options.dtype});
    if (padding_idx) {
        Tensor keep = ones({num_embeddings, 1}, boolean);
        keep.mutable_data<bool>()[*padding_idx] = false;
        table = where(keep, table, zeros({}, options.dtype));
    }
    weight = register_parameter("weight", table);
}

Variable Embedding::operator()(const Tensor& ids) const {
    const Scope scope = enter();
    Variable y = embedding(weight, Variable(ids));
    if (!padding_idx || !y.requires_grad()) return y;
    // The padding's rows as constants: what arrives there goes nowhere.
    Variable pads(not_equal(ids, full({}, static_cast<double>(*padding_idx), i64)));
    return where(unsqueeze(pads, -1), y, y.detach());
}

}  // namespace glassgrad
