// Activations: functions of each element that bend a network. Their tails are exact: what an
// infinity or a large number times 0 would make NaN is taken to its limit.

#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"

#include <cmath>

namespace glassgrad {

using detail::map_float;

namespace {

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

Tensor gelu(const Tensor& x, const GeluOptions& options) {
    if (options.approximate == Approximate::tanh) {
        return map_float("gelu", x, [](auto v) {
            using T = decltype(v);
            constexpr T root = static_cast<T>(gelu_tanh_scale);
            constexpr T cubic = static_cast<T>(gelu_tanh_cubic);
            return shared(v, (1 + std::tanh(root * (v + cubic * v * v * v))) / 2);
        });
    }
    return map_float("gelu", x, [](auto v) {
        using T = decltype(v);
        constexpr T root_half = static_cast<T>(0.70710678118654752440);
        return shared(v, std::erfc(-v * root_half) / 2);
    });
}

Tensor silu(const Tensor& x) {
    return map_float("silu", x, [](auto v) { return shared(v, logistic(v)); });
}

}  // namespace glassgrad
