#pragma once
// Scaled dot-product attention, written once for tensors and for values that record what is done
// to them (V, as in composed.hpp).

#include <glassgrad/tensor/detail/composed.hpp>
#include <glassgrad/tensor/ops/attention.hpp>

namespace glassgrad::detail {

/// boolean: which elements of x dropout keeps; undefined, and nothing drawn, for p = 0. Throws
/// TypeError or ValueError.
Tensor draw_kept(const Tensor& x, CounterRng& rng, double p);
/// What is kept is multiplied by this.
inline double kept_factor(double p) { return p == 1 ? 0 : 1 / (1 - p); }
Tensor drop(const Tensor& x, const Tensor& kept, double p);

/// How heads meet: `group` heads of q share one of k and v.
struct HeadGroups {
    bool grouped = false;
    std::int64_t group = 1;
};

/// Heads side by side; none where they are an axis.
struct HeadCounts {
    std::int64_t q = 0;
    std::int64_t kv = 0;
};
/// Throws TypeError or ShapeError unless q, k and v are of one type, matrices, and of a width that
/// the heads divide.
HeadCounts check_heads(const Tensor& q, const Tensor& k, const Tensor& v,
                       const SdpaOptions& options);

/// q (..., heads, query, d), k and v alike.
struct AttentionShapes {
    const Shape& q;
    const Shape& k;
    const Shape& v;
    DType dtype;
};
/// Throws ShapeError, TypeError or ValueError unless all of it fits together.
HeadGroups check_attention(const AttentionShapes& given, const SdpaOptions& options);
/// boolean (query, key): true up to key i + (keys - queries).
Tensor causal_mask(std::int64_t queries, std::int64_t keys);
/// boolean (query, key): true at a distance below `window` from i + (keys - queries).
Tensor window_mask(std::int64_t queries, std::int64_t keys, std::int64_t window);
/// boolean: where masks (boolean or added), order and window let a query look; undefined where
/// nothing hides.
Tensor allowed_keys(const SdpaOptions& options, const Shape& scores);
/// -slope |p - j|: (heads, query, key), or (query, key) for scores without heads.
Tensor alibi_bias(const Tensor& slopes, const Shape& scores);

inline SdpaOptions plain_options(const SdpaOptions& options) { return options; }
template <class V>
SdpaOptions plain_options(const AttentionOptionsOf<V>& options) {
    const auto value = [](const V& x) { return x.defined() ? plain(x) : Tensor(); };
    return {.scale = options.scale,
            .mask = value(options.mask),
            .bias = value(options.bias),
            .causal = options.causal,
            .window = options.window,
            .alibi = value(options.alibi),
            .dropout_p = options.dropout_p,
            .rng = options.rng,
            .form = options.form,
            .heads = options.heads,
            .kv_heads = options.kv_heads,
            .tile = options.tile};
}

/// (..., heads, rows, columns) as (..., heads / group, group, rows, columns).
template <class V>
V split_heads(const V& x, std::int64_t group) {
    Shape shape = plain(x).shape();
    const int at = shape.rank() - 3;
    shape[at] /= group;
    shape.insert(at + 1, group);
    return reshape(x, shape);
}
template <class V>
V merge_heads(const V& x) {
    Shape shape = plain(x).shape();
    const int at = shape.rank() - 4;
    shape[at] *= shape[at + 1];
    shape.erase(at + 1);
    return reshape(x, shape);
}

/// (..., tokens, heads width) as (..., heads, tokens, width), and the inverse.
template <class V>
V heads_apart(const V& x, std::int64_t heads) {
    Shape shape = plain(x).shape();
    shape[shape.rank() - 1] /= heads;
    shape.insert(shape.rank() - 1, heads);
    return transpose(reshape(x, shape), -3, -2);
}
template <class V>
V heads_together(const V& x) {
    const V turned = transpose(x, -3, -2);
    Shape shape = plain(turned).shape();
    const int rank = shape.rank();
    shape[rank - 2] *= shape[rank - 1];
    shape.erase(rank - 1);
    return reshape(turned, shape);
}

template <class V>
AttentionStepsOf<V> attend(const V& q, const V& k, const V& v,
                           const AttentionOptionsOf<V>& options) {
    const SdpaOptions given = plain_options(options);
    check_heads(plain(q), plain(k), plain(v), given);
    const HeadGroups heads = check_attention(
        {plain(q).shape(), plain(k).shape(), plain(v).shape(), plain(q).dtype()}, given);
    const bool hides = given.mask.defined() || given.bias.defined() || given.causal ||
                       given.window > 0 || given.alibi.defined();
    const auto product = [&](const V& a, const V& b) {
        return hides ? attention_scores(a, b) : matmul(a, b, {.transpose_b = true});
    };
    const auto mix = [&](const V& a, const V& b) {
        return hides ? weighted_sum(a, b) : matmul(a, b);
    };

    const auto seen = [&](std::string_view step, V value) {
        return options.on_step ? options.on_step(step, value) : value;
    };
    AttentionStepsOf<V> steps;
    steps.scores =
        seen("scores", heads.grouped
                           ? merge_heads(product(split_heads(q, heads.group), split_heads(k, 1)))
                           : product(q, k));
    // Without a width all scores are 0, and 0 times 1/√0 would be NaN.
    const double width = std::max(1.0, static_cast<double>(plain(q).shape().back()));
    steps.scaled =
        seen("scaled", scale(steps.scores, options.scale ? *options.scale : 1 / std::sqrt(width)));
    const DType dtype = plain(q).dtype();
    if (hides) {
        const Shape& shape = plain(steps.scaled).shape();
        V shifted = steps.scaled;
        if (given.mask.defined() && given.mask.dtype() != boolean) shifted = shifted + options.mask;
        if (given.bias.defined()) shifted = shifted + options.bias;
        if (given.alibi.defined()) {
            shifted = shifted + V(alibi_bias(given.alibi, shape));
        }
        const Tensor allowed = allowed_keys(given, shape);
        steps.masked = allowed.defined()
                           ? where(V(allowed), shifted,
                                   V(number(-std::numeric_limits<double>::infinity(), dtype)))
                           : shifted;
        steps.masked = seen("masked", steps.masked);
    }
    steps.weights = seen("weights", softmax(hides ? steps.masked : steps.scaled, -1));
    V weights = steps.weights;
    if (options.dropout_p > 0) {
        weights = steps.dropped =
            seen("dropped", dropout(weights, *options.rng, {.p = options.dropout_p}));
    }
    steps.output =
        seen("output", heads.grouped
                           ? merge_heads(mix(split_heads(weights, heads.group), split_heads(v, 1)))
                           : mix(weights, v));
    return steps;
}

/// The same for heads side by side as well, whose result lies so, too.
template <class V>
AttentionStepsOf<V> attend_in_steps(const V& q, const V& k, const V& v,
                                    const AttentionOptionsOf<V>& options) {
    const HeadCounts heads = check_heads(plain(q), plain(k), plain(v), plain_options(options));
    if (heads.q == 0) return attend(q, k, v, options);
    AttentionOptionsOf<V> apart = options;
    apart.heads = 0;
    apart.kv_heads = 0;
    AttentionStepsOf<V> steps =
        attend(heads_apart(q, heads.q), heads_apart(k, heads.kv), heads_apart(v, heads.kv), apart);
    steps.output = heads_together(steps.output);
    return steps;
}

}  // namespace glassgrad::detail
