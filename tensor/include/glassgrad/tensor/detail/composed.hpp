#pragma once
// Functions made of others, written once for tensors and for values that record what is done to
// them. V is one of the two; the functions it is used with are found by its type.

#include <glassgrad/tensor/counter_rng.hpp>
#include <glassgrad/tensor/detail/class_weights.hpp>
#include <glassgrad/tensor/ops/elementwise.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>
#include <glassgrad/tensor/ops/product.hpp>
#include <glassgrad/tensor/ops/reduce.hpp>
#include <glassgrad/tensor/ops/shape.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace glassgrad::detail {

inline const Tensor& plain(const Tensor& x) { return x; }
template <class V>
const Tensor& plain(const V& x) {
    return x.value();
}

inline bool any(const Tensor& condition) {
    const auto values = condition.values<bool>();
    return std::find(values.begin(), values.end(), true) != values.end();
}

inline Tensor number(double value, DType dtype) { return full({}, value, dtype); }

/// -sum_c q[c] log_softmax(logits)[c] with q from probabilities; the classes lie along the last
/// axis. A class of probability 0 counts nothing, even where its logit is -inf; its gradients
/// are 0 then.
template <class V>
V cross_entropy_of_probabilities(const V& logits, const V& target,
                                 const CrossEntropyOptions& options) {
    const double smoothing = options.label_smoothing;
    const DType dtype = plain(logits).dtype();
    V q = target;
    if (smoothing != 0) {
        q = q * (1 - smoothing) + smoothing / static_cast<double>(plain(logits).shape().back());
    }
    if (options.weight.defined()) q = q * V(options.weight.astype(dtype));
    V log_p = log_softmax(logits, -1);
    const double infinity = std::numeric_limits<double>::infinity();
    const Tensor nothing = logical_and(equal(plain(log_p), number(-infinity, dtype)),
                                       equal(plain(q), number(0, dtype)));
    // Before the product, so that no derivative meets 0 times infinity.
    if (any(nothing)) log_p = where(V(nothing), V(number(0, dtype)), log_p);
    V losses = -sum(q * log_p, {.axes = {-1}});
    if (options.reduction == Reduction::none) return losses;
    const Shape& rows = plain(losses).shape();
    return sum(losses) *
           share(options.reduction, plain(losses).numel(), rows.rank() == 0 ? 1 : rows[0]);
}

}  // namespace glassgrad::detail
