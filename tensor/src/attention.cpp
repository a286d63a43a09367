// Attention's products, its checks and dropout.

#include <glassgrad/tensor/detail/attend.hpp>
#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/detail/small_attention.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::with_float;

namespace {

Shape with_batch(const Shape& product, const Tensor& x) {
    Shape shape = product;
    const int rank = shape.rank();
    shape[rank - 2] = x.shape()[x.rank() - 2];
    shape[rank - 1] = x.shape().back();
    return shape;
}

/// Adds to y what the values that are infinite or NaN give to those who look at them. Where such a
/// value meets an infinite weight, y has got infinity times 0 from the product with bounded values,
/// and is made anew.
template <class T>
void add_unbounded(Tensor& y, const Tensor& weights, const Tensor& values, bool transposed) {
    const Tensor w = broadcast_to(weights, with_batch(y.shape(), weights));
    const Tensor v = broadcast_to(values, with_batch(y.shape(), values));
    const std::int64_t queries = y.shape()[y.rank() - 2];
    const std::int64_t width = y.shape().back();
    const std::int64_t keys = v.shape()[v.rank() - 2];
    const T* pw = w.data<T>();
    const T* pv = v.data<T>();
    T* out = y.mutable_data<T>();
    const std::int64_t count = v.numel() / (keys * width);
    for (std::int64_t b = 0; b < count; ++b, pw += queries * keys, out += queries * width) {
        const T* const block = pv;
        const auto weight_at = [&](std::int64_t i, std::int64_t j) {
            return pw[transposed ? j * queries + i : i * keys + j];
        };
        for (std::int64_t j = 0; j < keys; ++j) {
            for (std::int64_t d = 0; d < width; ++d) {
                const T value = *pv++;
                if (std::isfinite(value)) continue;
                for (std::int64_t i = 0; i < queries; ++i) {
                    const T weight = weight_at(i, j);
                    if (weight == 0) continue;
                    T& sum = out[i * width + d];
                    if (std::isfinite(weight)) {
                        sum += weight * value;
                        continue;
                    }
                    sum = 0;
                    for (std::int64_t k = 0; k < keys; ++k) {
                        if (weight_at(i, k) != 0) sum += weight_at(i, k) * block[k * width + d];
                    }
                }
            }
        }
    }
}

void check_pair(std::string_view op, const Tensor& a, const Tensor& b) {
    detail::require_defined(op, a);
    detail::require_defined(op, b);
    if (a.dtype() != b.dtype()) {
        fail<TypeError>(hint("convert one with astype"), "{}: {} {} and {} {} have different types",
                        op, a.dtype(), a.shape(), b.dtype(), b.shape());
    }
    with_float(op, a.dtype(), [](auto) {});
    if (a.rank() < 2 || b.rank() < 2) {
        fail<ShapeError>("{}: needs matrices, got {} and {}", op, a.shape(), b.shape());
    }
}

/// Throws ShapeError unless the leading axes broadcast.
void check_leading(std::string_view op, const Tensor& a, const Tensor& b) {
    const auto leading = [](const Tensor& x) {
        return Shape(std::span<const std::int64_t>(x.shape().begin(), x.shape().end() - 2));
    };
    if (leading(a) != leading(b)) (void)broadcast_shapes(op, leading(a), leading(b));
}

}  // namespace

Tensor attention_scores(const Tensor& q, const Tensor& k) {
    check_pair("attention_scores", q, k);
    if (q.shape().back() != k.shape().back()) {
        fail<ShapeError>("attention_scores: q {} and k {} have the widths {} and {}", q.shape(),
                         k.shape(), q.shape().back(), k.shape().back());
    }
    check_leading("attention_scores", q, k);
    return matmul(q, k, {.transpose_b = true});
}

Tensor weighted_sum(const Tensor& weights, const Tensor& values,
                    const WeightedSumOptions& options) {
    check_pair("weighted_sum", weights, values);
    const std::int64_t keys = weights.shape()[weights.rank() - (options.transpose_weights ? 2 : 1)];
    if (keys != values.shape()[values.rank() - 2]) {
        fail<ShapeError>("weighted_sum: weights {}{} for {} keys, but {} values in {}",
                         weights.shape(), options.transpose_weights ? " transposed" : "", keys,
                         values.shape()[values.rank() - 2], values.shape());
    }
    check_leading("weighted_sum", weights, values);
    const std::int64_t keys_or_one = std::max<std::int64_t>(1, keys);
    const MatmulOptions product{.transpose_a = options.transpose_weights};
    return with_float("weighted_sum", values.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = values.data<T>();
        // A value that isn't finite makes all that it reaches so, whatever its weight is: looking
        // at the smaller of values and result is enough.
        const bool look_first =
            values.numel() < weights.numel() / keys_or_one * values.shape().back();
        if (look_first && detail::all_finite(values)) return matmul(weights, values, product);
        if (!look_first) {
            Tensor y = matmul(weights, values, product);
            if (detail::all_finite(y) || detail::all_finite(values)) return y;
        }
        Tensor bounded = Tensor::empty(values.shape(), values.dtype());
        T* out = bounded.mutable_data<T>();
        for (std::int64_t i = 0; i < values.numel(); ++i) out[i] = std::isfinite(in[i]) ? in[i] : 0;
        Tensor y = matmul(weights, bounded, product);
        if (y.numel() > 0) add_unbounded<T>(y, weights, values, options.transpose_weights);
        return y;
    });
}

Tensor detail::draw_kept(const Tensor& x, CounterRng& rng, double p) {
    require_defined("dropout", x);
    with_float("dropout", x.dtype(), [](auto) {});
    if (!(p >= 0 && p <= 1)) fail<ValueError>("dropout: probability {} is outside 0 to 1", p);
    return p == 0 ? Tensor() : rng.bernoulli(1 - p, x.shape());
}

Tensor detail::drop(const Tensor& x, const Tensor& kept, double p) {
    return where(kept, scale(x, kept_factor(p)), zeros({}, x.dtype()));
}

Tensor dropout(const Tensor& x, CounterRng& rng, const DropoutOptions& options) {
    const Tensor kept = detail::draw_kept(x, rng, options.p);
    return kept.defined() ? detail::drop(x, kept, options.p) : x;
}

namespace {

constexpr std::string_view sdpa = "scaled_dot_product_attention";

/// `scores`: the shape that a mask or bias has to broadcast to.
void check_added(std::string_view what, const Tensor& x, const Shape& scores) {
    if (broadcast_shapes(sdpa, x.shape(), scores) == scores) return;
    fail<ShapeError>("{}: {} {} does not broadcast to the scores {}", sdpa, what, x.shape(),
                     scores);
}

void check_options(const SdpaOptions& options, DType dtype, const Shape& scores) {
    const Tensor& mask = options.mask;
    const Tensor& bias = options.bias;
    const Tensor& alibi = options.alibi;
    if (!(options.dropout_p >= 0 && options.dropout_p <= 1)) {
        fail<ValueError>("{}: dropout_p {} is outside 0 to 1", sdpa, options.dropout_p);
    }
    if (options.dropout_p > 0 && !options.rng) {
        fail<ValueError>(hint("pass .rng = &rng"), "{}: dropout needs a generator", sdpa);
    }
    if (options.window < 0) {
        fail<ValueError>(hint("pass 0 for none"), "{}: the window {} is negative", sdpa,
                         options.window);
    }
    if (options.tile < 0) {
        fail<ValueError>(hint("pass 0 to leave it to the library"), "{}: the tile {} is negative",
                         sdpa, options.tile);
    }
    if (mask.defined()) {
        if (mask.dtype() != boolean && mask.dtype() != dtype) {
            fail<TypeError>(
                hint("a mask is boolean (true: may look) or of the type of q, to be added"),
                "{}: the mask is {}, q is {}", sdpa, mask.dtype(), dtype);
        }
        check_added("mask", mask, scores);
    }
    if (bias.defined()) {
        if (bias.dtype() != dtype) {
            fail<TypeError>(detail::Hint{bias.dtype() == boolean ? "pass it as .mask"
                                                                 : "convert it with astype"},
                            "{}: the bias is {}, q is {}", sdpa, bias.dtype(), dtype);
        }
        check_added("bias", bias, scores);
    }
    if (!alibi.defined()) return;
    if (alibi.dtype() != dtype) {
        fail<TypeError>(hint("convert them with astype"), "{}: the slopes of alibi are {}, q is {}",
                        sdpa, alibi.dtype(), dtype);
    }
    const std::int64_t heads = scores.rank() > 2 ? scores[scores.rank() - 3] : 1;
    if (alibi.rank() != 1 || alibi.shape()[0] != heads) {
        fail<ShapeError>(hint("one slope a head of q"),
                         "{}: the slopes of alibi {} are not for the {} heads of the scores {}",
                         sdpa, alibi.shape(), heads, scores);
    }
}

}  // namespace

detail::HeadCounts detail::check_heads(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const SdpaOptions& options) {
    check_pair(sdpa, q, k);
    check_pair(sdpa, q, v);
    if (options.heads == 0 && options.kv_heads == 0) return {};
    const HeadCounts heads{options.heads, options.kv_heads > 0 ? options.kv_heads : options.heads};
    if (heads.q < 1 || heads.kv < 1 || heads.q % heads.kv != 0) {
        fail<ValueError>("{}: {} heads side by side cannot share {}", sdpa, options.heads,
                         options.kv_heads);
    }
    const auto check = [](const Tensor& x, std::int64_t count) {
        if (x.shape().back() % count == 0 && x.rank() < max_rank) return;
        fail<ShapeError>("{}: {} has no {} heads side by side", sdpa, x.shape(), count);
    };
    check(q, heads.q);
    check(k, heads.kv);
    check(v, heads.kv);
    return heads;
}

detail::HeadGroups detail::check_attention(const AttentionShapes& given,
                                           const SdpaOptions& options) {
    constexpr std::string_view op = sdpa;
    const Shape& q = given.q;
    const Shape& k = given.k;
    const Shape& v = given.v;
    const auto shapes = [&] { return fmt::format("q {}, k {} and v {}", q, k, v); };
    if (q.back() != k.back()) {
        fail<ShapeError>("{}: {}: q and k have the widths {} and {}", op, shapes(), q.back(),
                         k.back());
    }
    const std::int64_t keys = k[k.rank() - 2];
    if (keys != v[v.rank() - 2]) {
        fail<ShapeError>("{}: {}: {} keys but {} values", op, shapes(), keys, v[v.rank() - 2]);
    }
    HeadGroups groups;
    Shape scores = q;
    scores[scores.rank() - 1] = keys;
    if (q.rank() > 2 && k.rank() == q.rank() && v.rank() == q.rank()) {
        const int at = q.rank() - 3;
        const std::int64_t own = q[at];
        const std::int64_t shared = k[at];
        if (v[at] != shared) {
            fail<ShapeError>("{}: {}: k has {} heads, v {}", op, shapes(), shared, v[at]);
        }
        if (own != shared && shared > 1) {
            if (own % shared != 0) {
                fail<ShapeError>("{}: {}: {} heads of q cannot share {} of k", op, shapes(), own,
                                 shared);
            }
            groups = {true, own / shared};
        }
    }
    check_options(options, given.dtype, scores);
    return groups;
}

Tensor detail::causal_mask(std::int64_t queries, std::int64_t keys) {
    Tensor mask = Tensor::empty({queries, keys}, boolean);
    bool* out = mask.mutable_data<bool>();
    for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t j = 0; j < keys; ++j) *out++ = j <= i + keys - queries;
    }
    return mask;
}

Tensor detail::window_mask(std::int64_t queries, std::int64_t keys, std::int64_t window) {
    Tensor mask = Tensor::empty({queries, keys}, boolean);
    bool* out = mask.mutable_data<bool>();
    for (std::int64_t i = 0; i < queries; ++i) {
        for (std::int64_t j = 0; j < keys; ++j) *out++ = std::abs(i + keys - queries - j) < window;
    }
    return mask;
}

Tensor detail::allowed_keys(const SdpaOptions& options, const Shape& scores) {
    const std::int64_t queries = scores[scores.rank() - 2];
    const std::int64_t keys = scores.back();
    Tensor allowed;
    const auto restrict_to = [&](const Tensor& seen) {
        allowed = allowed.defined() ? logical_and(allowed, seen) : seen;
    };
    if (options.causal) restrict_to(causal_mask(queries, keys));
    if (options.window > 0) restrict_to(window_mask(queries, keys, options.window));
    for (const Tensor& x : {options.mask, options.bias}) {
        if (!x.defined()) continue;
        restrict_to(
            x.dtype() == boolean
                ? x
                : not_equal(x, number(-std::numeric_limits<double>::infinity(), x.dtype())));
    }
    return allowed;
}

Tensor detail::alibi_bias(const Tensor& slopes, const Shape& scores) {
    const std::int64_t queries = scores[scores.rank() - 2];
    const std::int64_t keys = scores.back();
    const Tensor rows = add(arange(queries), full({}, static_cast<double>(keys - queries), i64));
    const Tensor distance = abs(sub(rows.with_shape({queries, 1}), arange(keys)));
    const Tensor each = scores.rank() > 2 ? slopes.with_shape({slopes.numel(), 1, 1}) : slopes;
    return mul(neg(each), distance.astype(slopes.dtype()));
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const SdpaOptions& options) {
    if (!options.on_step && detail::takes_tiles(q, k, v, options, false))
        return tiled_attention(q, k, v, options);
    if (const auto call = detail::small_call(q, k, v, options, false))
        return detail::attend_small(q, k, v, *call).output;
    return detail::attend_in_steps(q, k, v, options).output;
}
SdpaSteps scaled_dot_product_attention_steps(const Tensor& q, const Tensor& k, const Tensor& v,
                                             const SdpaOptions& options) {
    return detail::attend_in_steps(q, k, v, options);
}

Tensor projected_attention(const Tensor& x, const Tensor& w_q, const Tensor& w_k, const Tensor& w_v,
                           const ProjectedAttentionOptions& options) {
    return scaled_dot_product_attention(matmul(x, w_q), matmul(x, w_k), matmul(x, w_v),
                                        {.causal = options.causal});
}

}  // namespace glassgrad
