#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/autograd/record.hpp>
#include <glassgrad/layers/init.hpp>
#include <glassgrad/layers/multi_head_attention.hpp>
#include <glassgrad/tensor/detail/cached_attention.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "key_value_cache.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

namespace glassgrad {
namespace {

/// `options` with every 0 replaced by what it stands for.
MultiHeadAttentionOptions completed(MultiHeadAttentionOptions options) {
    auto& o = options;
    if (o.d_model < 1 || o.num_heads < 1 || o.num_kv_heads < 0 || o.head_dim < 0 || o.kdim < 0 ||
        o.vdim < 0) {
        throw ShapeError(fmt::format(
            "multi_head_attention: d_model {} and {} heads must be positive, other sizes not "
            "negative",
            o.d_model, o.num_heads));
    }
    if (o.num_kv_heads == 0) o.num_kv_heads = o.num_heads;
    if (o.num_heads % o.num_kv_heads != 0) {
        throw ShapeError(
            fmt::format("multi_head_attention: {} heads cannot share {} key/value "
                        "heads evenly",
                        o.num_heads, o.num_kv_heads));
    }
    if (o.head_dim == 0) {
        if (o.d_model % o.num_heads != 0) {
            throw ShapeError(fmt::format("multi_head_attention: d_model {} is not a multiple of "
                                         "{} heads",
                                         o.d_model, o.num_heads),
                             "give another d_model, or a head_dim");
        }
        o.head_dim = o.d_model / o.num_heads;
    }
    if (o.head_dim > std::numeric_limits<std::int64_t>::max() / o.num_heads) {
        throw ShapeError(fmt::format("multi_head_attention: {} heads of width {} are too many",
                                     o.num_heads, o.head_dim));
    }
    if (o.scale && !std::isfinite(*o.scale)) {
        throw ValueError(
            fmt::format("multi_head_attention: scale {} is not a finite number", *o.scale));
    }
    if (o.rotary && o.head_dim % 2 != 0) {
        throw ShapeError(
            fmt::format("multi_head_attention: rotary positions turn pairs, and "
                        "head_dim is {}",
                        o.head_dim));
    }
    if (o.kdim == 0) o.kdim = o.d_model;
    if (o.vdim == 0) o.vdim = o.d_model;
    return options;
}

/// (batch, tokens, heads width) as (batch, heads, tokens, width).
Variable split_heads(const Variable& x, std::int64_t heads) {
    const Shape& shape = x.shape();
    return transpose(reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), 1, 2);
}
/// The inverse: heads side by side.
Variable merge_heads(const Variable& x) {
    const Shape& shape = x.shape();
    return reshape(transpose(x, 1, 2), {shape[0], shape[2], shape[1] * shape[3]});
}

/// A sequence without a batch as a batch of one.
Variable batched(const Variable& x, std::string_view what, std::int64_t width) {
    if (x.defined() && (x.rank() == 2 || x.rank() == 3) && x.shape().back() == width) {
        return x.rank() == 3 ? x : unsqueeze(x, 0);
    }
    throw ShapeError(
        fmt::format("multi_head_attention: {} must be (batch, tokens, {}) or (tokens, {}), got {}",
                    what, width, width, x.defined() ? to_string(x.shape()) : "nothing"));
}

/// Throws ShapeError unless keys and values are for as many texts as the queries: one of them would
/// be repeated without a word.
void require_one_batch(const Variable& query, const Variable& key, const Variable& value) {
    const std::int64_t batch = query.size(0);
    if (key.size(0) == batch && value.size(0) == batch) return;
    throw ShapeError(
        fmt::format("multi_head_attention: query {}, key {} and value {} are of "
                    "different batches",
                    to_string(query.shape()), to_string(key.shape()), to_string(value.shape())),
        "broadcast_to repeats one text for all");
}

/// Puts `key` and `value` at the end of the cache.
void extend(KeyValueCache& cache, const Variable& key, const Variable& value) {
    if (grad_enabled() && (key.requires_grad() || value.requires_grad())) {
        throw GraphError("multi_head_attention: a cache would lose the gradient of its keys",
                         "call the model under NoGrad");
    }
    cache.append(key.value(), value.value());
}

/// Throws ShapeError unless there is a place for each token.
void require_places(const Tensor& positions, const Shape& queries) {
    const Shape& given = positions.shape();
    const bool fits = (given.rank() == 1 || (given.rank() == 2 && given[0] == queries[0])) &&
                      given.back() == queries[2];
    if (fits) return;
    throw ShapeError(
        fmt::format("multi_head_attention: positions {} are not those of {} tokens in a batch of "
                    "{}",
                    to_string(given), queries[2], queries[0]),
        "they are (tokens,) or (batch, tokens)");
}

/// Attention to keys and values where they lie, for those who measure an op like others.
Variable attended_in_place(const Variable& query, const KeyValueCache& cache, double scale) {
    static constexpr OpRow row{.name = "cached_attention",
                               .forward = "y = softmax(q kᵀ scale, causal) v",
                               .backward = "",
                               .inputs = "q k v"};
    Tensor value = detail::computed(
        row,
        [&] {
            return detail::cached_attention(query.value(), cache.key_places(), cache.value_places(),
                                            cache.length(), scale);
        },
        query);
    if (!detail::observed()) return Variable(std::move(value));
    const Variable inputs[] = {query, Variable(cache.key_places()), Variable(cache.value_places())};
    return record_without_derivative(row, std::move(value), inputs);
}

LinearOptions linear_options(const MultiHeadAttentionOptions& options) {
    return {.bias = options.bias, .dtype = options.dtype};
}

}  // namespace

struct MultiHeadAttention::Inputs {
    Variable query;
    Variable key;
    Variable value;
    const AttentionCall& call;
    bool itself;   ///< keys and values come from the queries' tokens
    bool unbatch;  ///< they came without a batch
    bool every_step = false;
};

MultiHeadAttention::MultiHeadAttention(const MultiHeadAttentionOptions& options, RandomState& rng)
    : options_(completed(options)),
      q_proj(options_.d_model, options_.num_heads * options_.head_dim, rng,
             linear_options(options_)),
      k_proj(options_.kdim, options_.num_kv_heads * options_.head_dim, rng,
             linear_options(options_)),
      v_proj(options_.vdim, options_.num_kv_heads * options_.head_dim, rng,
             linear_options(options_)),
      out_proj(options_.num_heads * options_.head_dim, options_.d_model, rng,
               linear_options(options_)),
      dropout(options_.dropout, rng) {
    if (options_.alibi) slopes_ = alibi_slopes(options_.num_heads, f64);
    register_module("q_proj", q_proj);
    register_module("k_proj", k_proj);
    register_module("v_proj", v_proj);
    register_module("out_proj", out_proj);
    register_module("dropout", dropout);
    for (Linear* each : {&q_proj, &k_proj, &v_proj, &out_proj}) {
        init::xavier_uniform(each->weight, rng);
        if (each->bias.defined()) init::zeros(each->bias);
    }
}

std::vector<std::string> MultiHeadAttention::point_names() const {
    return {"query",  "key",     "value",   "scores", "scaled",
            "masked", "weights", "dropped", "heads",  "output"};
}

MultiHeadAttentionPoints MultiHeadAttention::project(const Inputs& inputs) const {
    MultiHeadAttentionPoints p;
    KeyValueCache* const cache = inputs.call.cache;
    const std::int64_t past = cache && inputs.itself ? cache->length() : 0;
    const bool known = cache && !inputs.itself && cache->length() > 0;
    p.query = split_heads(q_proj(inputs.query), options_.num_heads);
    if (!inputs.itself) require_one_batch(inputs.query, inputs.key, inputs.value);
    if (known) {
        const Shape expected{inputs.key.size(0), options_.num_kv_heads, inputs.key.size(1),
                             options_.head_dim};
        detail::require_held(*cache, expected,
                             fmt::format("those of the call are {}", to_string(expected)));
        p.key = Variable(cache->key());
        p.value = Variable(cache->value());
    } else {
        p.key = split_heads(k_proj(inputs.key), options_.num_kv_heads);
        p.value = split_heads(v_proj(inputs.value), options_.num_kv_heads);
    }
    if (options_.rotary) {
        const Tensor& given = inputs.call.positions;
        if (given.defined()) require_places(given, p.query.shape());
        const Tensor places = given.defined() ? given
                                              : arange(static_cast<double>(past),
                                                       static_cast<double>(past + p.query.size(2)));
        p.query = turned(inputs, p.query, places, false);
        if (!known) {
            const Tensor own = inputs.itself ? places : arange(p.key.size(2));
            p.key = turned(inputs, p.key, own, false);
        }
    }
    if (cache && !known) {
        extend(*cache, p.key, p.value);
        if (past > 0 && !continues(inputs, p)) {
            p.key = Variable(cache->key());
            p.value = Variable(cache->value());
        }
    }
    p.query = point("query", p.query);
    p.key = point("key", p.key);
    p.value = point("value", p.value);
    return p;
}

bool MultiHeadAttention::continues(const Inputs& inputs, const MultiHeadAttentionPoints& p) const {
    const KeyValueCache* const cache = inputs.call.cache;
    const Mask& mask = inputs.call.mask;
    return cache && inputs.itself && !inputs.every_step && !watched() &&
           !detail::values_observed() && cache->length() > p.query.size(2) &&
           (mask.is_causal() || p.query.size(2) == 1) && mask.shows_all_before() &&
           !slopes_.defined() && dropout.active_p() == 0 &&
           !(grad_enabled() && p.query.requires_grad());
}

/// Options for scores (batch, heads, query, key).
AttentionOpOptions MultiHeadAttention::options_of(const Inputs& inputs, const Shape& scores,
                                                  DType dtype) const {
    const Mask& mask = inputs.call.mask;
    AttentionOpOptions options{.scale = options_.scale,
                               .bias = mask.bias(),
                               .causal = mask.is_causal(),
                               .window = mask.window(),
                               .dropout_p = dropout.active_p(),
                               .rng = &dropout.rng()};
    if (const Tensor seen = mask.listed(scores); seen.defined()) options.mask = Variable(seen);
    if (slopes_.defined()) options.alibi = Variable(slopes_.astype(dtype));
    return options;
}

/// x (batch, heads, tokens, width), or (batch, tokens, heads, width), turned by its places.
Variable MultiHeadAttention::turned(const Inputs& inputs, const Variable& x,
                                    const Tensor& positions, bool side_by_side) const {
    const RotaryTable* const shared = inputs.itself ? inputs.call.rotary : nullptr;
    RotaryTable table =
        shared ? *shared : rotary_table(positions, options_.head_dim, *options_.rotary, x.dtype());
    if (side_by_side) {
        // (tokens, pairs) or (batch, 1, tokens, pairs): one row serves all heads of a token.
        Shape shape = table.cos.shape();
        if (shape.rank() == 4) shape.erase(1);
        shape.insert(shape.rank() - 1, 1);
        table.cos = reshape(table.cos, shape);
        table.sin = reshape(table.sin, shape);
    }
    return rotary(x, Variable(table.cos), Variable(table.sin), options_.rotary->pairing);
}

/// What nobody watches: heads stay side by side, where projections leave and read them.
Variable MultiHeadAttention::together(const Inputs& inputs) const {
    Variable query = q_proj(inputs.query);
    if (!inputs.itself) require_one_batch(inputs.query, inputs.key, inputs.value);
    Variable key = k_proj(inputs.key);
    const Variable value = v_proj(inputs.value);
    const Shape scores{query.size(0), options_.num_heads, query.size(1), key.size(1)};
    if (options_.rotary) {
        const auto turn = [&](const Variable& x, std::int64_t heads, const Tensor& places) {
            const Variable apart = reshape(x, {x.size(0), x.size(1), heads, options_.head_dim});
            return reshape(turned(inputs, apart, places, true), x.shape());
        };
        const Tensor& given = inputs.call.positions;
        if (given.defined()) require_places(given, scores);
        const Tensor places = given.defined() ? given : arange(query.size(1));
        query = turn(query, options_.num_heads, places);
        const Tensor own = inputs.itself ? places : arange(key.size(1));
        key = turn(key, options_.num_kv_heads, own);
    }
    AttentionOpOptions options = options_of(inputs, scores, query.dtype());
    options.heads = options_.num_heads;
    options.kv_heads = options_.num_kv_heads;
    const Variable y = out_proj(scaled_dot_product_attention(query, key, value, options));
    return inputs.unbatch ? squeeze(y, 0) : y;
}

MultiHeadAttentionPoints MultiHeadAttention::attend(const Inputs& inputs) const {
    const bool seen = inputs.every_step || watched();
    if (!seen && !inputs.call.cache) {
        MultiHeadAttentionPoints p;
        p.output = together(inputs);
        return p;
    }
    CacheGuard guard(inputs.call.cache);
    MultiHeadAttentionPoints p = project(inputs);
    if (continues(inputs, p)) {
        const double scale =
            options_.scale.value_or(1 / std::sqrt(static_cast<double>(options_.head_dim)));
        p.heads = attended_in_place(p.query, *inputs.call.cache, scale);
        return finish(inputs, std::move(p), guard);
    }
    AttentionOpOptions options =
        options_of(inputs, {p.query.size(0), options_.num_heads, p.query.size(2), p.key.size(2)},
                   p.query.dtype());
    if (seen) {
        options.on_step = [this](std::string_view name, const Variable& value) {
            return name == "output" ? value : point(name, value);  // here it is "heads"
        };
        const AttentionSteps steps =
            scaled_dot_product_attention_steps(p.query, p.key, p.value, options);
        p.scores = steps.scores;
        p.scaled = steps.scaled;
        p.masked = steps.masked;
        p.weights = steps.weights;
        p.dropped = steps.dropped;
        p.heads = steps.output;
    } else {
        p.heads = scaled_dot_product_attention(p.query, p.key, p.value, options);
    }
    return finish(inputs, std::move(p), guard);
}

MultiHeadAttentionPoints MultiHeadAttention::finish(const Inputs& inputs,
                                                    MultiHeadAttentionPoints p,
                                                    CacheGuard& guard) const {
    p.heads = point("heads", p.heads);
    const Variable y = out_proj(merge_heads(p.heads));
    p.output = point("output", inputs.unbatch ? squeeze(y, 0) : y);
    guard.keep();
    return p;
}

bool MultiHeadAttention::watched() const { return hooked() || detail::watched(); }

MultiHeadAttentionPoints MultiHeadAttention::points(const Variable& x,
                                                    const AttentionCall& call) const {
    const Scope scope = enter();
    const Variable tokens = batched(x, "x", options_.d_model);
    return attend({tokens, tokens, tokens, call, true, x.rank() == 2, true});
}
MultiHeadAttentionPoints MultiHeadAttention::points(const Variable& query, const Variable& key,
                                                    const Variable& value,
                                                    const AttentionCall& call) const {
    const Scope scope = enter();
    return attend({batched(query, "query", options_.d_model), batched(key, "key", options_.kdim),
                   batched(value, "value", options_.vdim), call, false, query.rank() == 2, true});
}

Variable MultiHeadAttention::operator()(const Variable& x, const AttentionCall& call) const {
    const Scope scope = enter();
    const Variable tokens = batched(x, "x", options_.d_model);
    return attend({tokens, tokens, tokens, call, true, x.rank() == 2}).output;
}
Variable MultiHeadAttention::operator()(const Variable& query, const Variable& key,
                                        const Variable& value, const AttentionCall& call) const {
    const Scope scope = enter();
    return attend({batched(query, "query", options_.d_model), batched(key, "key", options_.kdim),
                   batched(value, "value", options_.vdim), call, false, query.rank() == 2})
        .output;
}

}  // namespace glassgrad
