#include "config_json.hpp"
#include "support.hpp"

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/models/encoder.hpp>
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
    field("d_ff", c.d_ff);
    field("num_segments", c.num_segments);
    field("num_classes", c.num_classes);
    field("dropout", c.dropout);
    field("norm_eps", c.norm_eps);
    field("norm_first", c.norm_first);
    field("activation", c.activation);
}

EncoderConfig resolved(EncoderConfig config) {
    validate(config);
    if (config.d_ff == 0) config.d_ff = 4 * config.d_model;
    return config;
}

BlockOptions block_of(const EncoderConfig& c, const ModelOptions& options) {
    return {.attention = {.d_model = c.d_model,
                          .num_heads = c.num_heads,
                          .dropout = c.dropout,
                          .dtype = options.dtype},
            .feed_forward = {.d_model = c.d_model,
                             .d_ff = c.d_ff,
                             .activation = c.activation,
                             .dtype = options.dtype},
            .norm_first = c.norm_first,
            .norm_eps = c.norm_eps,
            .dropout = c.dropout};
}

void start(const Module& model, RandomState& rng) {
    for (const auto& [name, x] : model.named_parameters()) {
        if (x.rank() >= 2) {
            init::trunc_normal(x, rng, {.std = 0.02, .low = -0.04, .high = 0.04});
        } else if (name.ends_with("bias")) {
            init::zeros(x);
        }
    }
}

}  // namespace

void validate(const EncoderConfig& c) {
    detail::check_size("encoder", "vocab_size", c.vocab_size);
    detail::check_size("encoder", "context_length", c.context_length);
    detail::check_size("encoder", "d_model", c.d_model);
    detail::check_size("encoder", "num_layers", c.num_layers);
    detail::check_size("encoder", "num_heads", c.num_heads);
    detail::check_optional_size("encoder", "d_ff", c.d_ff);
    detail::check_size("encoder", "num_segments", c.num_segments);
    detail::check_size("encoder", "num_classes", c.num_classes);
    detail::check_heads("encoder", c.d_model, c.num_heads);
    detail::check_dropout("encoder", c.dropout);
    detail::check_positive("encoder", "norm_eps", c.norm_eps);
}

std::string to_json(const EncoderConfig& config) {
    detail::ConfigWriter out("encoder");
    list_fields(config, out);
    return out.take();
}

EncoderConfig encoder_config_from_json(std::string_view text) {
    EncoderConfig config;
    detail::ConfigReader reader;
    list_fields(config, reader);
    reader.read("encoder", text);
    validate(config);
    return config;
}

MaskedTokenHead::MaskedTokenHead(const EncoderConfig& config, const Variable& embedding,
                                 RandomState& rng, const ModelOptions& options)
    : dense(config.d_model, config.d_model, rng, {.dtype = options.dtype}),
      norm(config.d_model, {.eps = config.norm_eps, .dtype = options.dtype}),
      decoder(embedding),
      activation(config.activation) {
    register_module("dense", dense);
    register_module("norm", norm);
    register_module("decoder", decoder);
    bias = register_parameter("bias", zeros({config.vocab_size}, options.dtype));
}

Variable MaskedTokenHead::operator()(const Variable& x) const {
    const Scope scope = enter();
    return decoder(norm(activate(activation, dense(x)))) + bias;
}

Encoder::Encoder(const EncoderConfig& given, RandomState& rng, const ModelOptions& options)
    : config(resolved(given)),
      embedding(config.vocab_size, config.d_model, rng, {.dtype = options.dtype}),
      position(config.context_length, config.d_model, rng, {.dtype = options.dtype}),
      segment(config.num_segments, config.d_model, rng, {.dtype = options.dtype}),
      norm(config.d_model, {.eps = config.norm_eps, .dtype = options.dtype}),
      dropout(config.dropout, rng),
      masked_head(config, embedding.weight, rng, options),
      pooler(config.d_model, config.d_model, rng, {.dtype = options.dtype}),
      classifier(config.d_model, config.num_classes, rng, {.dtype = options.dtype}) {
    register_module("embedding", embedding);
    register_module("position", position);
    register_module("segment", segment);
    if (!config.norm_first) register_module("embedding_norm", norm);
    register_module("dropout", dropout);
    register_module("blocks", blocks);
    if (config.norm_first) register_module("norm", norm);
    register_module("masked_head", masked_head);
    register_module("pooler", pooler);
    register_module("classifier", classifier);
    for (std::int64_t i = 0; i < config.num_layers; ++i) {
        blocks.append(block_of(config, options), rng);
    }
    start(*this, rng);
}

Variable Encoder::operator()(const Tensor& ids, const EncoderCall& call) const {
    const Scope scope = enter();
    detail::check_ids("encoder", ids);
    detail::check_keep("encoder", ids, call.keep, 0);
    if (call.segments.defined() && call.segments.shape() != ids.shape()) {
        throw ShapeError(fmt::format("encoder: segments {} are not of the shape {} of the ids",
                                     to_string(call.segments.shape()), to_string(ids.shape())));
    }
    const Tensor positions = detail::positions_of("encoder", ids, {}, 0, config.context_length);
    const Tensor segments = call.segments.defined() ? call.segments : zeros(ids.shape(), i64);
    const Mask mask = detail::padding_of(call.keep);

    Variable x = embedding(ids) + position(positions) + segment(segments);
    x = point("embedded", dropout(config.norm_first ? x : norm(x)));
    blocks.each([&](std::size_t, const TransformerBlock& block) { x = block(x, {.mask = mask}); });
    return point("hidden", config.norm_first ? norm(x) : x);
}

Variable Encoder::token_logits(const Variable& hidden) const {
    const Scope scope = enter();
    return point("token_logits", masked_head(hidden));
}

Variable Encoder::class_logits(const Variable& hidden) const {
    const Scope scope = enter();
    if (hidden.rank() != 3 || hidden.size(1) == 0) {
        throw ShapeError(
            fmt::format("encoder: hidden states {} are not (batch, tokens, {}) with a "
                        "first token",
                        to_string(hidden.shape()), config.d_model));
    }
    const Variable pooled = point("pooled", tanh(pooler(select(hidden, 1, 0))));
    return point("class_logits", classifier(dropout(pooled)));
}

}  // namespace glassgrad
