// Activations: functions of each element that bend a network, and their derivatives.

#include <glassgrad/tensor/detail/slopes.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"

namespace glassgrad {

using detail::map_kernel;

Tensor tanh(const Tensor& x) {
    return map_kernel("tanh", x, [](const auto& map) { return map.tanh; });
}

Tensor sigmoid(const Tensor& x) {
    return map_kernel("sigmoid", x, [](const auto& map) { return map.sigmoid; });
}

Tensor softplus(const Tensor& x) {
    return map_kernel("softplus", x, [](const auto& map) { return map.softplus; });
}

Tensor relu(const Tensor& x) {
    return map_kernel("relu", x, [](const auto& map) { return map.relu; });
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
    return map_kernel("leaky_relu", x, negative_slope,
                      [](const auto& map) { return map.leaky_relu; });
}

Tensor elu(const Tensor& x, double alpha) {
    return map_kernel("elu", x, alpha, [](const auto& map) { return map.elu; });
}

Tensor gelu(const Tensor& x, const GeluOptions& options) {
    const bool by_tanh = options.approximate == Approximate::tanh;
    return map_kernel("gelu", x,
                      [=](const auto& map) { return by_tanh ? map.gelu_tanh : map.gelu; });
}

Tensor silu(const Tensor& x) {
    return map_kernel("silu", x, [](const auto& map) { return map.silu; });
}

namespace detail {
namespace {

template <class F>
Tensor pulled_back(std::string_view op, const Tensor& x, const Tensor& gy, const F& choose) {
    require_same_type(op, x, gy);
    if (x.shape() != gy.shape()) {
        fail<ShapeError>("{}: the gradient has shape {}, the values {}", op, gy.shape(), x.shape());
    }
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto kernel = choose(kernels<T>().slope);
        const T* in = x.data<T>();
        const T* g = gy.data<T>();
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        T* out = result.mutable_data<T>();
        write_elements(result.numel(), out, [&](std::int64_t begin, std::int64_t n, T* to) {
            kernel(n, in + begin, g + begin, to);
        });
        return result;
    });
}

}  // namespace

Tensor tanh_vjp(const Tensor& y, const Tensor& gy) {
    return pulled_back("tanh_vjp", y, gy, [](const auto& slope) { return slope.tanh; });
}
Tensor sigmoid_vjp(const Tensor& y, const Tensor& gy) {
    return pulled_back("sigmoid_vjp", y, gy, [](const auto& slope) { return slope.sigmoid; });
}
Tensor relu_vjp(const Tensor& y, const Tensor& gy) {
    return pulled_back("relu_vjp", y, gy, [](const auto& slope) { return slope.relu; });
}
Tensor softplus_vjp(const Tensor& x, const Tensor& gy) {
    return pulled_back("softplus_vjp", x, gy, [](const auto& slope) { return slope.softplus; });
}
Tensor gelu_vjp(const Tensor& x, const Tensor& gy, const GeluOptions& options) {
    const bool by_tanh = options.approximate == Approximate::tanh;
    return pulled_back("gelu_vjp", x, gy,
                       [=](const auto& slope) { return by_tanh ? slope.gelu_tanh : slope.gelu; });
}
Tensor silu_vjp(const Tensor& x, const Tensor& gy) {
    return pulled_back("silu_vjp", x, gy, [](const auto& slope) { return slope.silu; });
}

}  // namespace detail
}  // namespace glassgrad
