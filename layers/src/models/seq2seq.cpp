#include "config_json.hpp"
#include "support.hpp"

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/models/seq2seq.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <cmath>

namespace glassgrad {
namespace {

template <class Config, class Field>
void list_fields(Config& c, const Field& field) {
    using detail::needed;
    field("source_vocab_size", c.source_vocab_size, needed);
    field("target_vocab_size", c.target_vocab_size, needed);
    field("context_length", c.context_length, needed);
    field("d_model", c.d_model, needed);
    field("num_encoder_layers", c.num_encoder_layers, needed);
    field("num_decoder_layers", c.num_decoder_layers, needed);
    field("num_heads", c.num_heads, needed);
    field("d_ff", c.d_ff);
    field("dropout", c.dropout);
    field("norm_eps", c.norm_eps);
    field("norm_first", c.norm_first);
    field("share_embeddings", c.share_embeddings);
    field("activation", c.activation);
}

Seq2SeqConfig resolved(Seq2SeqConfig config) {
    validate(config);
    if (config.d_ff == 0) config.d_ff = 4 * config.d_model;
    return config;
}

BlockOptions block_of(const Seq2SeqConfig& c, const ModelOptions& options) {
    return {.attention = {.d_model = c.d_model,
                          .num_heads = c.num_heads,
                          .dropout = c.dropout,
                          .dtype = options.dtype},
            .feed_forward = {.d_model = c.d_model,
                             .d_ff = c.d_ff,
                             .activation = c.activation,
                             .dropout = c.dropout,
                             .dtype = options.dtype},
            .norm_first = c.norm_first,
            .norm_eps = c.norm_eps,
            .dropout = c.dropout};
}

void start(const Seq2Seq& model, RandomState& rng) {
    const double width = 1 / std::sqrt(static_cast<double>(model.config.d_model));
    for (const auto& [name, x] : model.named_parameters()) {
        if (name == "head.weight" && model.config.share_embeddings) continue;
        if (name.ends_with("embedding.weight")) {
            init::normal(x, rng, 0, width);
        } else if (x.rank() >= 2) {
            init::xavier_uniform(x, rng);
        } else if (name.ends_with("bias")) {
            init::zeros(x);
        }
    }
}

}  // namespace

void validate(const Seq2SeqConfig& c) {
    detail::check_size("seq2seq", "source_vocab_size", c.source_vocab_size);
    detail::check_size("seq2seq", "target_vocab_size", c.target_vocab_size);
    detail::check_size("seq2seq", "context_length", c.context_length);
    detail::check_size("seq2seq", "d_model", c.d_model);
    detail::check_size("seq2seq", "num_encoder_layers", c.num_encoder_layers);
    detail::check_size("seq2seq", "num_decoder_layers", c.num_decoder_layers);
    detail::check_size("seq2seq", "num_heads", c.num_heads);
    detail::check_optional_size("seq2seq", "d_ff", c.d_ff);
    detail::check_heads("seq2seq", c.d_model, c.num_heads);
    if (c.d_model % 2 != 0) {
        throw ValueError(fmt::format(
            "seq2seq: d_model {} is odd, and sinusoidal positions are pairs", c.d_model));
    }
    if (c.share_embeddings && c.source_vocab_size != c.target_vocab_size) {
        throw ValueError(fmt::format("seq2seq: vocabularies of {} and {} cannot share an embedding",
                                     c.source_vocab_size, c.target_vocab_size),
                         "set share_embeddings to false");
    }
    detail::check_dropout("seq2seq", c.dropout);
    detail::check_positive("seq2seq", "norm_eps", c.norm_eps);
}

std::string to_json(const Seq2SeqConfig& config) {
    detail::ConfigWriter out("seq2seq");
    list_fields(config, out);
    return out.take();
}

Seq2SeqConfig seq2seq_config_from_json(std::string_view text) {
    Seq2SeqConfig config;
    detail::ConfigReader reader;
    list_fields(config, reader);
    reader.read("seq2seq", text);
    validate(config);
    return config;
}

Seq2Seq::Seq2Seq(const Seq2SeqConfig& given, RandomState& rng, const ModelOptions& options)
    : config(resolved(given)),
      source_embedding(config.source_vocab_size, config.d_model, rng, {.dtype = options.dtype}),
      dropout(config.dropout, rng),
      head(detail::make_head(config.share_embeddings, source_embedding, config.target_vocab_size,
                             rng, options)),
      sinusoids_(sinusoidal_positions(config.context_length, config.d_model, f64)) {
    register_module("source_embedding", source_embedding);
    if (!config.share_embeddings) {
        target_embedding =
            std::make_unique<Embedding>(config.target_vocab_size, config.d_model, rng,
                                        EmbeddingOptions{.dtype = options.dtype});
        register_module("target_embedding", *target_embedding);
    }
    register_module("dropout", dropout);
    register_module("encoder", encoder);
    register_module("decoder", decoder);
    BlockOptions block = block_of(config, options);
    for (std::int64_t i = 0; i < config.num_encoder_layers; ++i) encoder.append(block, rng);
    block.cross_attention = true;
    for (std::int64_t i = 0; i < config.num_decoder_layers; ++i) decoder.append(block, rng);
    if (config.norm_first) {
        const LayerNormOptions norm{.eps = config.norm_eps, .dtype = options.dtype};
        encoder_norm = std::make_unique<LayerNorm>(config.d_model, norm);
        decoder_norm = std::make_unique<LayerNorm>(config.d_model, norm);
        register_module("encoder_norm", *encoder_norm);
        register_module("decoder_norm", *decoder_norm);
    }
    register_module("head", head);
    start(*this, rng);
}

Variable Seq2Seq::embed(const Embedding& table, const Tensor& ids, const Tensor& positions) const {
    const Variable x = table(ids) * std::sqrt(static_cast<double>(config.d_model));
    return dropout(x + Variable(index(sinusoids_, positions).astype(x.dtype())));
}

Variable Seq2Seq::encode(const Tensor& source, const Tensor& keep) const {
    const Scope scope = enter();
    detail::check_ids("seq2seq", source);
    detail::check_keep("seq2seq", source, keep, 0);
    const Tensor positions = detail::positions_of("seq2seq", source, {}, 0, config.context_length);
    const Mask mask = detail::padding_of(keep);
    Variable x = point("source", embed(source_embedding, source, positions));
    encoder.each([&](std::size_t, const TransformerBlock& block) { x = block(x, {.mask = mask}); });
    return point("memory", encoder_norm ? (*encoder_norm)(x) : x);
}

Variable Seq2Seq::decode(const Tensor& target, const Variable& memory,
                         const DecodeCall& call) const {
    const Scope scope = enter();
    detail::check_ids("seq2seq", target);
    const std::int64_t cached = call.cache ? call.cache->target.length() : 0;
    detail::check_keep("seq2seq", target, call.target_keep, cached);
    const Tensor positions =
        detail::positions_of("seq2seq", target, call.positions, cached, config.context_length);
    const Mask mask = Mask::causal() & detail::padding_of(call.target_keep);
    const Mask memory_mask = detail::padding_of(call.source_keep);
    Seq2SeqCache* const cache = call.cache;
    detail::LayerCaches own("seq2seq", cache ? &cache->target : nullptr, decoder.size());
    detail::LayerCaches crossed("seq2seq", cache ? &cache->memory : nullptr, decoder.size());
    const Embedding& table = target_embedding ? *target_embedding : source_embedding;
    Variable x = point("target", embed(table, target, positions));
    decoder.each([&](std::size_t i, const TransformerBlock& block) {
        x = block(x, {.mask = mask,
                      .cache = own.at(i),
                      .memory = memory,
                      .memory_mask = memory_mask,
                      .memory_cache = crossed.at(i)});
    });
    x = point("hidden", decoder_norm ? (*decoder_norm)(x) : x);
    x = point("logits", head(x));
    own.keep();
    crossed.keep();
    return x;
}

Variable Seq2Seq::operator()(const Tensor& source, const Tensor& target,
                             const Seq2SeqCall& call) const {
    const Variable memory = encode(source, call.source_keep);
    return decode(target, memory,
                  {.source_keep = call.source_keep, .target_keep = call.target_keep});
}

}  // namespace glassgrad
