#pragma once

#include <glassgrad/layers/feed_forward.hpp>
#include <glassgrad/layers/multi_head_attention.hpp>
#include <glassgrad/layers/norm.hpp>

#include <memory>

namespace glassgrad {

struct BlockOptions {
    MultiHeadAttentionOptions attention;  ///< of self_attn; multihead_attn has no positions
    FeedForwardOptions feed_forward;
    NormKind norm = NormKind::layer_norm;
    /// x + f(norm(x)), as GPT-2 and LLaMA; otherwise norm(x + f(x)), as in 2017 and BERT, and as
    /// torch.nn does it by default.
    bool norm_first = true;
    bool cross_attention = false;
    double norm_eps = 1e-5;
    bool norm_bias = true;
    double dropout = 0;  ///< of what is added to x
};

/// What a block is called with beside x.
struct BlockCall {
    Mask mask = {};
    Tensor positions = {};  ///< as in AttentionCall
    KeyValueCache* cache = nullptr;
    Variable memory = {};  ///< (batch, key, d_model) for cross-attention
    Mask memory_mask = {};
    KeyValueCache* memory_cache = nullptr;
    const RotaryTable* rotary = nullptr;  ///< as in AttentionCall
};

/// Self-attention, attention to a memory if wanted, and a feed-forward network, each with a norm
/// and a sum around it. Its parts have the names of torch.nn.TransformerEncoderLayer and
/// TransformerDecoderLayer: self_attn, multihead_attn, linear1, linear2 (linear3), norm1, norm2
/// (norm3). An encoder's block has neither a causal mask nor a memory, GPT's a causal mask, the
/// decoder's of 2017 both.
class TransformerBlock : public Module {
  public:
    /// Throws ShapeError unless the sizes of its parts fit.
    TransformerBlock(const BlockOptions& options, RandomState& rng);

    /// x (batch, tokens, d_model). Throws ValueError when a memory is missing or not expected.
    Variable operator()(const Variable& x, const BlockCall& call = {}) const;
    /// What x is after each part: attended, crossed (with cross-attention), output.
    std::vector<std::string> point_names() const override;

    MultiHeadAttention self_attn;
    std::unique_ptr<MultiHeadAttention> multihead_attn;  ///< null without cross-attention
    FeedForward feed_forward;                   ///< its linear layers appear as the block's own
    std::vector<std::unique_ptr<Layer>> norms;  ///< norm1, norm2, norm3
    Dropout dropout;
    const bool norm_first;
};

}  // namespace glassgrad
