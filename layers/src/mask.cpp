#include <glassgrad/layers/mask.hpp>
#include <glassgrad/tensor/detail/attend.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

namespace glassgrad {

Mask Mask::causal() {
    Mask mask;
    mask.causal_ = true;
    return mask;
}

Mask Mask::padding(const Tensor& keep) {
    if (!keep.defined()) throw ValueError("mask: the padding is undefined");
    if (keep.dtype() != boolean) {
        throw TypeError(fmt::format("mask: padding must be boolean, got {} {}", name(keep.dtype()),
                                    to_string(keep.shape())),
                        "true marks the tokens to keep; compare first, or use astype(boolean)");
    }
    if (keep.rank() != 1 && keep.rank() != 2) {
        throw ShapeError(fmt::format("mask: padding must be (key,) or (batch, key), got {}",
                                     to_string(keep.shape())));
    }
    Mask mask;
    mask.keep_ = keep;
    return mask;
}

Mask operator&(const Mask& a, const Mask& b) {
    Mask both;
    both.causal_ = a.causal_ || b.causal_;
    both.keep_ = a.keep_;
    if (b.keep_.defined()) both.keep_ = a.keep_.defined() ? logical_and(a.keep_, b.keep_) : b.keep_;
    return both;
}

Tensor Mask::allowed(const Shape& scores) const {
    const std::int64_t queries = scores[scores.rank() - 2];
    const std::int64_t keys = scores.back();
    Tensor allowed = ones({1, 1}, boolean);
    if (causal_) allowed = detail::causal_mask(queries, keys);
    if (keep_.defined()) {
        const bool batched = keep_.rank() == 2;
        if (keep_.shape().back() != keys ||
            (batched &&
             (scores.rank() < 3 || (keep_.shape()[0] != scores[0] && keep_.shape()[0] != 1)))) {
            throw ShapeError(fmt::format("mask: padding {} does not fit scores {}",
                                         to_string(keep_.shape()), to_string(scores)),
                             "it must be (key,) or (batch, key)");
        }
        // (batch, key) becomes (batch, 1, …, 1, key).
        Shape shape;
        if (batched) {
            shape.push_back(keep_.shape()[0]);
            while (shape.rank() < scores.rank() - 1) shape.push_back(1);
        }
        shape.push_back(keys);
        allowed = logical_and(allowed, reshape(keep_, shape));
    }
    return allowed;
}

}  // namespace glassgrad
