#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/transformer_block.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <utility>

namespace glassgrad {
namespace {

/// The attention to a memory: that of the tokens, without places.
MultiHeadAttentionOptions crossed(MultiHeadAttentionOptions options) {
    options.rotary.reset();
    options.alibi = false;
    return options;
}

}  // namespace

TransformerBlock::TransformerBlock(const BlockOptions& options, RandomState& rng)
    : self_attn(options.attention, rng),
      multihead_attn(options.cross_attention
                         ? std::make_unique<MultiHeadAttention>(crossed(options.attention), rng)
                         : nullptr),
      feed_forward(options.feed_forward, rng),
      dropout(options.dropout, rng),
      norm_first(options.norm_first) {
    const std::int64_t width = options.attention.d_model;
    if (options.feed_forward.d_model != width) {
        throw ShapeError(fmt::format("transformer_block: attention is {} wide, feed_forward {}",
                                     width, options.feed_forward.d_model));
    }
    register_module("self_attn", self_attn);
    if (multihead_attn) register_module("multihead_attn", *multihead_attn);
    register_parts_of(feed_forward);
    for (std::size_t i = 0; i < (multihead_attn ? 3U : 2U); ++i) {
        norms.push_back(make_norm(options.norm, width,
                                  {.eps = options.norm_eps,
                                   .bias = options.norm_bias,
                                   .dtype = options.attention.dtype}));
        register_module(fmt::format("norm{}", i + 1), *norms.back());
    }
    register_module("dropout1", dropout);
}

std::vector<std::string> TransformerBlock::point_names() const {
    if (multihead_attn) return {"attended", "crossed", "output"};
    return {"attended", "output"};
}

Variable TransformerBlock::operator()(const Variable& x, const BlockCall& call) const {
    const Scope scope = enter();
    if (call.memory.defined() != static_cast<bool>(multihead_attn)) {
        throw ValueError(call.memory.defined()
                             ? "transformer_block: there is no cross-attention for the memory"
                             : "transformer_block: cross-attention needs a memory",
                         call.memory.defined() ? "make the block with .cross_attention = true"
                                               : "pass .memory, the encoder's output");
    }
    CacheGuard own(call.cache);
    CacheGuard crossed_keys(call.memory_cache);
    const auto around = [&](const Layer& norm, const Variable& in, const auto& part) {
        return norm_first ? in + dropout(part(norm(in))) : norm(in + dropout(part(in)));
    };
    Variable y = around(*norms[0], x, [&](const Variable& in) {
        return self_attn(in, {.mask = call.mask,
                              .positions = call.positions,
                              .cache = call.cache,
                              .rotary = call.rotary});
    });
    y = point("attended", y);
    if (multihead_attn) {
        y = around(*norms[1], y, [&](const Variable& in) {
            return (*multihead_attn)(in, call.memory, call.memory,
                                     {.mask = call.memory_mask, .cache = call.memory_cache});
        });
        y = point("crossed", y);
    }
    y = point("output", around(*norms.back(), y, feed_forward));
    own.keep();
    crossed_keys.keep();
    return y;
}

}  // namespace glassgrad
