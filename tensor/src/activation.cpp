// Activations: functions of each element that bend a network. Their tails are exact: what an
// infinity or a large number times 0 would make NaN is taken to its limit.

#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"

#include <cmath>

namespace glassgrad {

using detail::map_float;

namespace {

constexpr double root_half = 0.70710678118654752440;

template <class T>
T logistic(T x) {
    // exp of a negative number only, so that nothing overflows.
    const T e = std::exp(-std::abs(x));
    return (x < 0 ? e : T{1}) / (1 + e);
}

/// x times a share in [0, 1] that falls to 0 faster than x grows.
template <class T>
T shared(T x, T share) {
    return share == 0 ? -T{0} : x * share;
}

}  // namespace

Tensor tanh(const Tensor& x) {
    return map_float("tanh", x, [](auto v) { return std::tanh(v); });
}

Tensor sigmoid(const Tensor& x) {
    return map_float("sigmoid", x, [](auto v) { return logistic(v); });
}

Tensor softplus(const Tensor& x) {
    return map_float("softplus", x, [](auto v) {
        return (v > 0 ? v : decltype(v){0}) + std::log1p(std::exp(-std::abs(v)));
    });
}

Tensor relu(const Tensor& x) {
    return map_float("relu", x, [](auto v) { return v < 0 ? decltype(v){0} : v; });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
    return map_float("leaky_relu", x, [=](auto v) {
        return v > 0 ? v : static_cast<decltype(v)>(negative_slope) * v;
    });
}

Tensor elu(const Tensor& x, double alpha) {
    return map_float("elu", x, [=](auto v) {
        return v > 0 ? v : static_cast<decltype(v)>(alpha) * std::expm1(v);
    });
}

// In f64 for f32 as well: arguments that are rounded cost digits of the tails.
Tensor gelu(const Tensor& x, const GeluOptions& options) {
    if (options.approximate == Approximate::tanh) {
        return map_float("gelu", x, [](double v) {
            // (1 + tanh(u)) / 2 = sigmoid(2 u), which keeps its digits far left.
            return shared(v, logistic(2 * gelu_tanh_scale * (v + gelu_tanh_cubic * v * v * v)));
        });
    }
    return map_float("gelu", x, [](double v) { return shared(v, std::erfc(-v * root_half) / 2); });
}

Tensor silu(const Tensor& x) {
    return map_float("silu", x, [](auto v) { return shared(v, logistic(v)); });
}

}  // namespace glassgrad
