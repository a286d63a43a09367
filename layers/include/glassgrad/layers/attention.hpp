#pragma once
// Scaled dot-product attention with one head, each step a named point.

#include <glassgrad/layers/mask.hpp>
#include <glassgrad/layers/module.hpp>
#include <glassgrad/tensor/random.hpp>

namespace glassgrad {

/// Everything that attention computes on the way, in order; shapes for x (..., query, d_model).
struct AttentionPoints {
    Variable query;    ///< X W_Q            (..., query, d_k)
    Variable key;      ///< X W_K            (..., key, d_k)
    Variable value;    ///< X W_V            (..., key, d_v)
    Variable scores;   ///< Q Kᵀ             (..., query, key)
    Variable scaled;   ///< scores / √d_k
    Variable masked;   ///< scaled, -inf where the mask forbids; undefined without a mask
    Variable weights;  ///< softmax over the keys; a query that sees no key has zeros
    Variable output;   ///< weights V        (..., query, d_v)
};

struct AttentionSizes {
    std::int64_t d_model;
    std::int64_t d_k;
    std::int64_t d_v;
};

struct AttentionOptions {
    DType dtype = f32;
};

/// softmax(mask(X W_Q (X W_K)ᵀ / √d_k)) X W_V. Parameters W_Q, W_K (d_model, d_k) and
/// W_V (d_model, d_v). Source: Vaswani et al. 2017, equation 1.
class Attention : public Module {
  public:
    /// Weights drawn uniform in ±1/√d_model, in the order W_Q, W_K, W_V.
    Attention(const AttentionSizes& sizes, RandomState& rng, const AttentionOptions& options = {});
    /// Weights given. Throws ShapeError or TypeError unless they fit together.
    Attention(Tensor w_q, Tensor w_k, Tensor w_v);

    /// Attention of x (..., tokens, d_model) to itself; gives the output (..., tokens, d_v).
    Variable operator()(const Variable& x, const Mask& mask = {}) const;
    /// All steps.
    AttentionPoints points(const Variable& x, const Mask& mask = {}) const;
    /// Queries from `x`, keys and values from `context` (..., key, d_model).
    AttentionPoints points(const Variable& x, const Variable& context, const Mask& mask) const;

    std::vector<std::string> point_names() const override;

    Variable W_Q;
    Variable W_K;
    Variable W_V;
};

}  // namespace glassgrad
