#include "config_json.hpp"
#include "support.hpp"

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/models/llama.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

namespace glassgrad {
namespace {

template <class Config, class Field>
void list_fields(Config& c, const Field& field) {
    using detail::needed;
    field("vocab_size", c.vocab_size, needed);
    field("context_length", c.context_length, needed);
    field("d_model", c.d_model, needed);
    field("num_layers", c.num_layers, needed);
    field("num_heads", c.num_heads, needed);
    field("num_kv_heads", c.num_kv_heads);
    field("d_ff", c.d_ff, needed);
    field("rotary_pairing", c.rotary_pairing);
    field("rotary_base", c.rotary_base);
    field("norm_eps", c.norm_eps);
    field("dropout", c.dropout);
    field("tie_head", c.tie_head);
}

BlockOptions block_of(const LlamaConfig& c, const ModelOptions& options) {
    return {
        .attention = {.d_model = c.d_model,
                      .num_heads = c.num_heads,
                      .num_kv_heads = c.num_kv_heads,
                      .bias = false,
                      .dropout = c.dropout,
                      .rotary = RotaryOptions{.pairing = c.rotary_pairing, .base = c.rotary_base},
                      .dtype = options.dtype},
        .feed_forward = {.d_model = c.d_model,
                         .d_ff = c.d_ff,
                         .activation = Activation::silu,
                         .gated = true,
                         .bias = false,
                         .dtype = options.dtype},
        .norm = NormKind::rms_norm,
        .norm_first = true,
        .norm_eps = c.norm_eps,
        .dropout = c.dropout};
}

}  // namespace

void validate(const LlamaConfig& c) {
    detail::check_size("llama", "vocab_size", c.vocab_size);
    detail::check_size("llama", "context_length", c.context_length);
    detail::check_size("llama", "d_model", c.d_model);
    detail::check_size("llama", "num_layers", c.num_layers);
    detail::check_size("llama", "num_heads", c.num_heads);
    detail::check_optional_size("llama", "num_kv_heads", c.num_kv_heads);
    detail::check_size("llama", "d_ff", c.d_ff);
    detail::check_heads("llama", c.d_model, c.num_heads);
    if (c.num_kv_heads != 0 && c.num_heads % c.num_kv_heads != 0) {
        throw ValueError(fmt::format("llama: num_heads {} is not a multiple of num_kv_heads {}",
                                     c.num_heads, c.num_kv_heads));
    }
    if (c.d_model / c.num_heads % 2 != 0) {
        throw ValueError(fmt::format(
            "llama: heads of width {} (d_model {} / num_heads {}) have no pairs to rotate",
            c.d_model / c.num_heads, c.d_model, c.num_heads));
    }
    detail::check_positive("llama", "rotary_base", c.rotary_base);
    detail::check_positive("llama", "norm_eps", c.norm_eps);
    detail::check_dropout("llama", c.dropout);
}

std::string to_json(const LlamaConfig& config) {
    detail::ConfigWriter out("llama");
    list_fields(config, out);
    return out.take();
}

LlamaConfig llama_config_from_json(std::string_view text) {
    LlamaConfig config;
    detail::ConfigReader reader;
    list_fields(config, reader);
    reader.read("llama", text);
    validate(config);
    return config;
}

LlamaConfig detail::resolved(LlamaConfig config) {
    validate(config);
    if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
    return config;
}

Llama::Llama(const LlamaConfig& given, RandomState& rng, const ModelOptions& options)
    : config(detail::resolved(given)),
      embedding(config.vocab_size, config.d_model, rng, {.dtype = options.dtype}),
      dropout(config.dropout, rng),
      norm(config.d_model, {.eps = config.norm_eps, .dtype = options.dtype}),
      head(detail::make_head(config.tie_head, embedding, config.vocab_size, rng, options)) {
    register_module("embedding", embedding);
    register_module("dropout", dropout);
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
    for (std::int64_t i = 0; i < config.num_layers; ++i) {
        blocks.append(block_of(config, options), rng);
    }
    init::gpt2(*this, rng, {.num_layers = config.num_layers, .d_model = config.d_model});
}

Variable Llama::operator()(const Tensor& ids, const CausalCall& call) const {
    const Scope scope = enter();
    detail::check_ids("llama", ids);
    const std::int64_t cached = call.cache ? call.cache->length() : 0;
    detail::check_keep("llama", ids, call.keep, cached);
    const Tensor positions =
        detail::positions_of("llama", ids, call.positions, cached, config.context_length);
    const Mask mask = Mask::causal() & detail::padding_of(call.keep);
    detail::LayerCaches caches("llama", call.cache, blocks.size());
    const RotaryTable table = rotary_table(
        positions, blocks[0].self_attn.options().head_dim,
        {.pairing = config.rotary_pairing, .base = config.rotary_base}, embedding.weight.dtype());

    Variable x = point("embedded", dropout(embedding(ids)));
    blocks.each([&](std::size_t i, const TransformerBlock& block) {
        x = block(x,
                  {.mask = mask, .positions = positions, .cache = caches.at(i), .rotary = &table});
    });
    x = point("hidden", norm(x));
    x = point("logits", head(x));
    caches.keep();
    return x;
}

}  // namespace glassgrad
