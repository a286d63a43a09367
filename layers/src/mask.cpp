#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/mask.hpp>
#include <glassgrad/tensor/detail/attend.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <limits>

namespace glassgrad {
namespace {

void require_boolean(std::string_view what, const Tensor& mask, std::string_view meaning) {
    if (!mask.defined()) throw ValueError(fmt::format("mask: the {} is undefined", what));
    if (mask.dtype() == boolean) return;
    throw TypeError(
        fmt::format("mask: {} must be boolean, got {} {}", what, name(mask.dtype()),
                    to_string(mask.shape())),
        fmt::format("true marks the {}; compare first, or use astype(boolean)", meaning));
}

Tensor both(const Tensor& a, const Tensor& b) { return a.defined() ? logical_and(a, b) : b; }

/// (batch, key) as (batch, 1, …, 1, key), to go with the scores.
Tensor padded_keys(const Tensor& keep, const Shape& scores) {
    const bool batched = keep.rank() == 2;
    if (keep.shape().back() != scores.back() ||
        (batched &&
         (scores.rank() < 3 || (keep.shape()[0] != scores[0] && keep.shape()[0] != 1)))) {
        throw ShapeError(fmt::format("mask: padding {} does not fit scores {}",
                                     to_string(keep.shape()), to_string(scores)),
                         "it must be (key,) or (batch, key)");
    }
    Shape shape;
    if (batched) {
        shape.push_back(keep.shape()[0]);
        while (shape.rank() < scores.rank() - 1) shape.push_back(1);
    }
    shape.push_back(scores.back());
    return reshape(keep, shape);
}

void require_fit(std::string_view what, const Shape& mask, const Shape& scores) {
    if (broadcast_shapes("mask", mask, scores) == scores) return;
    throw ShapeError(fmt::format("mask: {} {} does not broadcast to scores {}", what,
                                 to_string(mask), to_string(scores)));
}

/// boolean (query, key): where |i + keys - queries - j| < width.
Tensor window_mask(std::int64_t queries, std::int64_t keys, std::int64_t width) {
    Tensor mask = Tensor::empty({queries, keys}, boolean);
    bool* out = mask.mutable_data<bool>();
    for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t position = i + keys - queries;
        for (std::int64_t j = 0; j < keys; ++j) {
            *out++ = position - j < width && j - position < width;
        }
    }
    return mask;
}

}  // namespace

Mask Mask::causal() {
    Mask mask;
    mask.causal_ = true;
    return mask;
}

Mask Mask::padding(const Tensor& keep) {
    require_boolean("padding", keep, "tokens to keep");
    if (keep.rank() != 1 && keep.rank() != 2) {
        throw ShapeError(fmt::format("mask: padding must be (key,) or (batch, key), got {}",
                                     to_string(keep.shape())));
    }
    Mask mask;
    mask.keep_ = keep;
    return mask;
}

Mask Mask::boolean(const Tensor& allowed) {
    require_boolean("allowed keys", allowed, "keys that a query may look at");
    Mask mask;
    mask.allowed_.push_back(allowed);
    return mask;
}

Mask Mask::additive(const Variable& bias) {
    if (!bias.defined()) throw ValueError("mask: the bias is undefined");
    if (!is_floating(bias.dtype())) {
        throw TypeError(fmt::format("mask: a bias is added to the scores, got {} {}",
                                    name(bias.dtype()), to_string(bias.shape())),
                        "Mask::boolean takes what may be looked at");
    }
    Mask mask;
    mask.bias_ = bias;
    return mask;
}

Mask Mask::sliding_window(std::int64_t width) {
    if (width < 1) {
        throw ValueError(fmt::format("mask: a sliding window of {} keys sees nothing", width));
    }
    Mask mask;
    mask.window_ = width;
    return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
    Mask joined = a;
    joined.causal_ = a.causal_ || b.causal_;
    if (b.window_ > 0 && (a.window_ == 0 || b.window_ < a.window_)) joined.window_ = b.window_;
    if (b.keep_.defined()) joined.keep_ = both(a.keep_, b.keep_);
    joined.allowed_.insert(joined.allowed_.end(), b.allowed_.begin(), b.allowed_.end());
    if (b.bias_.defined()) joined.bias_ = a.bias_.defined() ? a.bias_ + b.bias_ : b.bias_;
    return joined;
}

Tensor Mask::listed(const Shape& scores) const {
    Tensor seen;
    if (keep_.defined()) seen = padded_keys(keep_, scores);
    for (const Tensor& each : allowed_) {
        require_fit("allowed keys", each.shape(), scores);
        seen = both(seen, each);
    }
    if (bias_.defined()) require_fit("bias", bias_.shape(), scores);
    return seen;
}

Tensor Mask::allowed(const Shape& scores) const {
    const std::int64_t queries = scores[scores.rank() - 2];
    const std::int64_t keys = scores.back();
    Tensor seen = listed(scores);
    if (causal_) seen = both(seen, detail::causal_mask(queries, keys));
    if (window_ > 0) seen = both(seen, window_mask(queries, keys, window_));
    if (bias_.defined()) {
        const Tensor hidden = full({}, -std::numeric_limits<double>::infinity(), bias_.dtype());
        seen = both(seen, not_equal(bias_.value(), hidden));
    }
    return seen.defined() ? seen : ones({1, 1}, glassgrad::boolean);
}

}  // namespace glassgrad
