#pragma once
// Attention with several heads: self and cross, grouped heads, positions, masks, a cache.

#include <glassgrad/autograd/ops/attention.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/layers/linear.hpp>
#include <glassgrad/layers/mask.hpp>
#include <glassgrad/layers/positions.hpp>

#include <optional>

namespace glassgrad {

struct MultiHeadAttentionOptions {
    std::int64_t d_model = 0;  ///< width of queries and of the output
    std::int64_t num_heads = 0;
    std::int64_t num_kv_heads = 0;  ///< a divisor of num_heads; 0: num_heads. 1: one for all
    std::int64_t head_dim = 0;      ///< 0: d_model / num_heads
    std::int64_t kdim = 0;          ///< width of what keys are made from; 0: d_model
    std::int64_t vdim = 0;          ///< width of what values are made from; 0: d_model
    bool bias = true;
    double dropout = 0;  ///< of weights, in training
    std::optional<RotaryOptions> rotary = {};
    bool alibi = false;
    std::optional<double> scale = {};  ///< of scores; 1/√head_dim if not given
    DType dtype = f32;
};

/// Keys and values of tokens seen before, rotated already. Grows in place: there is room for more
/// tokens than it holds.
class KeyValueCache {
  public:
    std::int64_t length() const noexcept { return length_; }
    /// (batch, num_kv_heads, tokens, head_dim); undefined while it is empty.
    Tensor key() const { return held(key_); }
    Tensor value() const { return held(value_); }
    void clear() { *this = KeyValueCache(); }
    /// Holds these and nothing else.
    void set(Tensor key, Tensor value);
    /// Puts these at the end. Throws ShapeError or TypeError unless they are of the shapes and the
    /// type that it holds but for the tokens.
    void append(const Tensor& key, const Tensor& value);
    /// Forgets all but the first `tokens`, if it holds more.
    void truncate(std::int64_t tokens) noexcept;

    /// As `key` and `value`, with more places than tokens along axis 2.
    const Tensor& key_places() const noexcept { return key_; }
    const Tensor& value_places() const noexcept { return value_; }

  private:
    Tensor held(const Tensor& places) const;

    Tensor key_;
    Tensor value_;
    std::int64_t length_ = 0;
};

/// Brings a cache back to its length unless what was computed with it came to its end.
class CacheGuard {
  public:
    /// `cache` may be null.
    explicit CacheGuard(KeyValueCache* cache) noexcept
        : cache_(cache), length_(cache ? cache->length() : 0) {}
    ~CacheGuard() {
        if (cache_ && cache_->length() != length_) cache_->truncate(length_);
    }
    CacheGuard(const CacheGuard&) = delete;
    CacheGuard& operator=(const CacheGuard&) = delete;
    void keep() noexcept { cache_ = nullptr; }

  private:
    KeyValueCache* cache_;
    std::int64_t length_;
};

/// What attention is called with beside its inputs.
struct AttentionCall {
    Mask mask = {};
    /// i64 (tokens,) or (batch, tokens): places of the queries for rotary positions. By default
    /// they go on from the end of the cache.
    Tensor positions = {};
    /// Self-attention puts its keys and values at the end and attends to all of them. Attention to
    /// something else fills an empty one and takes a filled one instead of key and value. What is
    /// in it takes no gradient: throws GraphError under grad mode if one is wanted, ShapeError when
    /// it is of another batch, layer or length. A call that throws leaves it as it was.
    KeyValueCache* cache = nullptr;
    /// The table of `positions`, when layers share one.
    const RotaryTable* rotary = nullptr;
};

/// All that it computes on the way.
struct MultiHeadAttentionPoints {
    Variable query;    ///< (batch, heads, query, head_dim), rotated if it has rotary positions
    Variable key;      ///< (batch, kv_heads, key, head_dim), with what the cache holds
    Variable value;    ///< (batch, kv_heads, key, head_dim)
    Variable scores;   ///< Q Kᵀ            (batch, heads, query, key)
    Variable scaled;   ///< scores scale
    Variable masked;   ///< with biases added and -inf where a query may not look; undefined without
    Variable weights;  ///< softmax over the keys; a query that sees no key has zeros
    Variable dropped;  ///< weights after dropout; undefined without
    Variable heads;    ///< weights V       (batch, heads, query, head_dim)
    Variable output;   ///< out_proj of the heads side by side (batch, query, d_model)
};

/// softmax(mask(Q Kᵀ / √head_dim)) V for each head, with Q = q_proj x and so on, the heads side by
/// side through out_proj. As torch.nn.MultiheadAttention with batch_first, whose packed
/// in_proj_weight is q_proj, k_proj and v_proj here (`split_in_proj`). Source: Vaswani et al. 2017,
/// section 3.2.2; grouped heads: Ainslie et al. 2023.
///
/// Its steps are named points. Called for the output alone, with nobody watching and no hook on a
/// step, it runs `scaled_dot_product_attention` in whichever form suits the length; the numbers are
/// the same to rounding.
class MultiHeadAttention : public Module {
  public:
    /// Weights uniform in ±√(6 / (in + out)) (Xavier), biases 0. torch.nn's is Xavier of the packed
    /// matrix, narrower by √2, with an out_proj like any Linear's. Throws ShapeError or ValueError
    /// unless the sizes fit.
    MultiHeadAttention(const MultiHeadAttentionOptions& options, RandomState& rng);

    /// x (batch, tokens, d_model), or without a batch, attends to itself.
    Variable operator()(const Variable& x, const AttentionCall& call = {}) const;
    /// query (batch, query, d_model) attends to key (batch, key, kdim), value (batch, key, vdim).
    /// Throws ShapeError unless the batch is the same.
    Variable operator()(const Variable& query, const Variable& key, const Variable& value,
                        const AttentionCall& call = {}) const;
    /// The same with all steps.
    MultiHeadAttentionPoints points(const Variable& x, const AttentionCall& call = {}) const;
    MultiHeadAttentionPoints points(const Variable& query, const Variable& key,
                                    const Variable& value, const AttentionCall& call = {}) const;

    std::vector<std::string> point_names() const override;
    const MultiHeadAttentionOptions& options() const noexcept { return options_; }

  private:
    struct Inputs;
    MultiHeadAttentionPoints project(const Inputs& inputs) const;
    AttentionOpOptions options_of(const Inputs& inputs, const Shape& scores, DType dtype) const;
    Variable turned(const Inputs& inputs, const Variable& x, const Tensor& positions,
                    bool side_by_side) const;
    Variable together(const Inputs& inputs) const;
    MultiHeadAttentionPoints attend(const Inputs& inputs) const;
    /// Whether new tokens go on with a text in the cache and nothing but their order hides keys, so
    /// that these can be read where they lie.
    bool continues(const Inputs& inputs, const MultiHeadAttentionPoints& p) const;
    MultiHeadAttentionPoints finish(const Inputs& inputs, MultiHeadAttentionPoints p,
                                    CacheGuard& guard) const;
    bool watched() const;

    MultiHeadAttentionOptions options_;  // with every 0 replaced
    Tensor slopes_;

  public:
    Linear q_proj;  ///< (heads head_dim, d_model)
    Linear k_proj;  ///< (kv_heads head_dim, kdim)
    Linear v_proj;  ///< (kv_heads head_dim, vdim)
    Linear out_proj;
    Dropout dropout;
};

/// torch.nn's names to ours: each `in_proj_weight` and `in_proj_bias` cut in q_proj, k_proj and
/// v_proj, and `q_proj_weight` (and so on) renamed. Throws ShapeError unless the rows are three
/// times something.
StateDict split_in_proj(const StateDict& state);
/// The inverse: q_proj, k_proj and v_proj of one shape joined in `in_proj_weight`, `in_proj_bias`;
/// of several shapes renamed as torch.nn does.
StateDict join_in_proj(const StateDict& state);

}  // namespace glassgrad
