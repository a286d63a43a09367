#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/attention.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace glassgrad {
namespace {

Tensor draw(std::int64_t d_model, std::int64_t width, RandomState& rng,
            const AttentionOptions& options) {
    if (d_model < 1 || width < 1) {
        throw ShapeError(
            fmt::format("attention: a projection of {} to {} is empty", d_model, width));
    }
    const double bound = 1 / std::sqrt(static_cast<double>(d_model));
    return rng.uniform(-bound, bound, {d_model, width}, {.dtype = options.dtype});
}

}  // namespace

Attention::Attention(const AttentionSizes& sizes, RandomState& rng,
                     const AttentionOptions& options) {
    W_Q = register_parameter("W_Q", draw(sizes.d_model, sizes.d_k, rng, options));
    W_K = register_parameter("W_K", draw(sizes.d_model, sizes.d_k, rng, options));
    W_V = register_parameter("W_V", draw(sizes.d_model, sizes.d_v, rng, options));
}

Attention::Attention(Tensor w_q, Tensor w_k, Tensor w_v) {
    if (w_q.rank() != 2 || w_k.shape() != w_q.shape() || w_v.rank() != 2 ||
        w_v.shape()[0] != w_q.shape()[0]) {
        throw ShapeError(
            fmt::format("attention: W_Q {}, W_K {} and W_V {} do not fit together",
                        to_string(w_q.shape()), to_string(w_k.shape()), to_string(w_v.shape())),
            "they are (d_model, d_k), (d_model, d_k) and (d_model, d_v)");
    }
    if (w_k.dtype() != w_q.dtype() || w_v.dtype() != w_q.dtype()) {
        throw TypeError(fmt::format("attention: W_Q is {}, W_K {}, W_V {}", name(w_q.dtype()),
                                    name(w_k.dtype()), name(w_v.dtype())),
                        "convert them to one type with astype");
    }
    W_Q = register_parameter("W_Q", std::move(w_q));
    W_K = register_parameter("W_K", std::move(w_k));
    W_V = register_parameter("W_V", std::move(w_v));
}

std::vector<std::string> Attention::point_names() const {
    return {"query", "key", "value", "scores", "scaled", "masked", "weights", "output"};
}

Variable Attention::operator()(const Variable& x, const Mask& mask) const {
    // Few tokens that nobody watches go the way of one op.
    const bool fits = x.defined() && x.rank() >= 2 && x.shape().back() == W_Q.shape()[0] &&
                      x.dtype() == W_Q.dtype();
    if (fits && !hooked() && !detail::watched() && mask.shows_all_before() &&
        x.size(-2) * x.size(-2) < tiled_attention_threshold) {
        const Scope scope = enter();
        return point("output", projected_attention(x, W_Q, W_K, W_V, {.causal = mask.is_causal()}));
    }
    return points(x, mask).output;
}

AttentionPoints Attention::points(const Variable& x, const Mask& mask) const {
    return points(x, x, mask);
}

AttentionPoints Attention::points(const Variable& x, const Variable& context,
                                  const Mask& mask) const {
    const Scope scope = enter();
    for (const Variable* each : {&x, &context}) {
        if (each->rank() >= 2 && each->shape().back() == W_Q.shape()[0]) continue;
        throw ShapeError(fmt::format("attention: needs (..., tokens, {}), got {}", W_Q.shape()[0],
                                     to_string(each->shape())));
    }
    AttentionPoints p;
    p.query = point("query", matmul(x, W_Q));
    p.key = point("key", matmul(context, W_K));
    p.value = point("value", matmul(context, W_V));
    // What a mask hides must not come back as 0 times NaN.
    const bool hides = !mask.is_none();
    p.scores = point("scores", hides ? attention_scores(p.query, p.key)
                                     : matmul(p.query, p.key, {.transpose_b = true}));
    p.scaled = point("scaled", scale(p.scores, 1 / std::sqrt(static_cast<double>(W_Q.shape()[1]))));
    if (hides) {
        Variable allowed(mask.allowed(p.scaled.shape()));
        Variable forbidden(full({}, -std::numeric_limits<double>::infinity(), p.scaled.dtype()));
        allowed.set_name("allowed");
        forbidden.set_name("forbidden");
        const Variable shifted = mask.bias().defined() ? p.scaled + mask.bias() : p.scaled;
        p.masked = point("masked", where(allowed, shifted, forbidden));
    }
    p.weights = point("weights", softmax(p.masked.defined() ? p.masked : p.scaled));
    p.output =
        point("output", hides ? weighted_sum(p.weights, p.value) : matmul(p.weights, p.value));
    return p;
}

}  // namespace glassgrad
