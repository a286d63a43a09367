#include "config_json.hpp"
#include "support.hpp"

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/models/gpt.hpp>

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
    field("d_ff", c.d_ff);
    field("dropout", c.dropout);
    field("norm_eps", c.norm_eps);
    field("bias", c.bias);
    field("tie_head", c.tie_head);
    field("activation", c.activation);
}

BlockOptions block_of(const GptConfig& c, const ModelOptions& options) {
    return {.attention = {.d_model = c.d_model,
                          .num_heads = c.num_heads,
                          .bias = c.bias,
                          .dropout = c.dropout,
                          .dtype = options.dtype},
            .feed_forward = {.d_model = c.d_model,
                             .d_ff = c.d_ff,
                             .activation = c.activation,
                             .bias = c.bias,
                             .dtype = options.dtype},
            .norm_first = true,
            .norm_eps = c.norm_eps,
            .norm_bias = c.bias,
            .dropout = c.dropout};
}

}  // namespace

void validate(const GptConfig& c) {
    detail::check_size("gpt", "vocab_size", c.vocab_size);
    detail::check_size("gpt", "context_length", c.context_length);
    detail::check_size("gpt", "d_model", c.d_model);
    detail::check_size("gpt", "num_layers", c.num_layers);
    detail::check_size("gpt", "num_heads", c.num_heads);
    detail::check_optional_size("gpt", "d_ff", c.d_ff);
    detail::check_heads("gpt", c.d_model, c.num_heads);
    detail::check_dropout("gpt", c.dropout);
    detail::check_positive("gpt", "norm_eps", c.norm_eps);
}

std::string to_json(const GptConfig& config) {
    detail::ConfigWriter out("gpt");
    list_fields(config, out);
    return out.take();
}

GptConfig gpt_config_from_json(std::string_view text) {
    GptConfig config;
    detail::ConfigReader reader;
    list_fields(config, reader);
    reader.read("gpt", text);
    validate(config);
    return config;
}

GptConfig detail::resolved(GptConfig config) {
    validate(config);
    if (config.d_ff == 0) config.d_ff = 4 * config.d_model;
    return config;
}

Gpt::Gpt(const GptConfig& given, RandomState& rng, const ModelOptions& options)
    : config(detail::resolved(given)),
      embedding(config.vocab_size, config.d_model, rng, {.dtype = options.dtype}),
      position(config.context_length, config.d_model, rng, {.dtype = options.dtype}),
      dropout(config.dropout, rng),
      norm(config.d_model, {.eps = config.norm_eps, .bias = config.bias, .dtype = options.dtype}),
      head(detail::make_head(config.tie_head, embedding, config.vocab_size, rng, options)) {
    register_module("embedding", embedding);
    register_module("position", position);
    register_module("dropout", dropout);
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
    for (std::int64_t i = 0; i < config.num_layers; ++i) {
        blocks.append(block_of(config, options), rng);
    }
    init::gpt2(*this, rng, {.num_layers = config.num_layers, .d_model = config.d_model});
}

Variable Gpt::operator()(const Tensor& ids, const CausalCall& call) const {
    const Scope scope = enter();
    detail::check_ids("gpt", ids);
    const std::int64_t cached = call.cache ? call.cache->length() : 0;
    detail::check_keep("gpt", ids, call.keep, cached);
    const Tensor positions =
        detail::positions_of("gpt", ids, call.positions, cached, config.context_length);
    const Mask mask = Mask::causal() & detail::padding_of(call.keep);
    detail::LayerCaches caches("gpt", call.cache, blocks.size());

    Variable x = point("embedded", dropout(embedding(ids) + position(positions)));
    blocks.each([&](std::size_t i, const TransformerBlock& block) {
        x = block(x, {.mask = mask, .cache = caches.at(i)});
    });
    x = point("hidden", norm(x));
    x = point("logits", head(x));
    caches.keep();
    return x;
}

}  // namespace glassgrad
