// Activations. A slope that is a product of something large and something small is taken where it
// is exactly 0 or 1 already, so that infinities and overflow make no NaN.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/slopes.hpp>

#include "family.hpp"

#include <type_traits>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;
using detail::two_sided;
using detail::unary_samples;

namespace {

constexpr double root_half = 0.70710678118654752440;
constexpr double root_two_pi = 2.50662827463100050242;

using Unary = Variable (*)(const Variable&);

/// The smooth ones: also farther out, where they are nearly flat or straight.
Samples smooth(Unary f, std::string_view torch) {
    Samples samples = unary_samples(f, {-2, 2}, torch);
    samples.push_back(detail::sample("far left", spread({3}, {-4.5, -2.5}, 5), f, torch));
    samples.push_back(detail::sample("far right", spread({3}, {2.5, 4.5}, 6), f, torch));
    return samples;
}

/// Those with a kink at 0, which is left out.
Samples kinked(Unary f, std::string_view torch) {
    Samples samples = unary_samples(f, {0.2, 2}, torch);
    samples.push_back(detail::sample("both sides of 0", two_sided({2, 3}, {0.2, 2}, 5), f, torch));
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "tanh",
     .forward = "y = tanh(x)",
     .backward = "gx = gy (1 - y²)",
     .holds = "|y| <= 1",
     .torch = "torch.tanh",
     .f32_ulp = 8,
     .samples = [] { return smooth(tanh, "torch.tanh(a)"); }},
    {.name = "sigmoid",
     .forward = "y = 1 / (1 + exp(-x))",
     .backward = "gx = gy y (1 - y)",
     .holds = "y >= 0; y <= 1",
     .torch = "torch.sigmoid",
     .samples = [] { return smooth(sigmoid, "torch.sigmoid(a)"); }},
    {.name = "softplus",
     .forward = "y = log(1 + exp(x))",
     .backward = "gx = gy sigmoid(x)",
     .holds = "y >= 0",
     .torch = "torch.nn.functional.softplus",
     .samples = [] { return smooth(softplus, "F.softplus(a)"); }},
    {.name = "relu",
     .forward = "y = max(x, 0)",
     .backward = "gx = gy where x > 0, else 0",
     .holds = "y >= 0",
     .domain = "the derivative is 0 at 0 and at NaN",
     .torch = "torch.relu",
     .samples = [] { return kinked(relu, "torch.relu(a)"); }},
    {.name = "leaky_relu",
     .forward = "y = x where x > 0, else negative_slope x",
     .backward = "gx = gy where x > 0, else negative_slope gy",
     .torch = "torch.nn.functional.leaky_relu",
     .samples =
         [] {
             Samples samples =
                 kinked([](const Variable& x) { return leaky_relu(x); }, "F.leaky_relu(a)");
             samples.push_back(detail::sample(
                 "slope 0.3", two_sided({5}, {0.2, 2}, 6),
                 [](const Variable& x) { return leaky_relu(x, 0.3); }, "F.leaky_relu(a, 0.3)"));
             samples.push_back(detail::sample(
                 "slope -0.5", two_sided({5}, {0.2, 2}, 7),
                 [](const Variable& x) { return leaky_relu(x, -0.5); }, "F.leaky_relu(a, -0.5)"));
             return samples;
         }},
    {.name = "elu",
     .forward = "y = x where x > 0, else alpha (exp(x) - 1)",
     .backward = "gx = gy where x > 0, else gy alpha exp(x)",
     .torch = "torch.nn.functional.elu",
     .samples =
         [] {
             Samples samples = kinked([](const Variable& x) { return elu(x); }, "F.elu(a)");
             samples.push_back(detail::sample(
                 "alpha 1.7", two_sided({5}, {0.2, 2}, 6),
                 [](const Variable& x) { return elu(x, 1.7); }, "F.elu(a, 1.7)"));
             return samples;
         }},
    {.name = "gelu",
     .forward = "y = x P, P = (1 + erf(x / sqrt(2))) / 2, or by tanh: (1 + tanh(u)) / 2, "
                "u = sqrt(2 / pi) (x + 0.044715 x³)",
     .backward = "gx = gy (P + x P'), P' = exp(-x² / 2) / sqrt(2 pi), or by tanh: "
                 "2 P (1 - P) sqrt(2 / pi) (1 + 0.134145 x²)",
     .domain = "by erf unless asked; -0 at -inf",
     .torch = "torch.nn.functional.gelu",
     .samples =
         [] {
             Samples samples = smooth([](const Variable& x) { return gelu(x); }, "F.gelu(a)");
             for (OpSample& each : smooth(
                      [](const Variable& x) { return gelu(x, {.approximate = Approximate::tanh}); },
                      "F.gelu(a, approximate='tanh')")) {
                 each.label += " by tanh";
                 samples.push_back(std::move(each));
             }
             return samples;
         }},
    {.name = "silu",
     .forward = "y = x s, s = sigmoid(x)",
     .backward = "gx = gy s (1 + x (1 - s))",
     .domain = "-0 at -inf",
     .torch = "torch.nn.functional.silu",
     .samples = [] { return smooth(silu, "F.silu(a)"); }},
};

/// A derivative in one pass on Tensors, by its steps when it is to be differentiated itself.
template <class V, class Fused, class Steps>
V pulled_back(const V& x, const V& gy, const Fused& fused, const Steps& steps) {
    if constexpr (std::is_same_v<V, Tensor>) {
        return fused(x, gy);
    } else {
        return grad_enabled() ? steps() : Variable(fused(x.value(), gy.value()));
    }
}

/// gy where x > 0, `left` elsewhere: for functions that are x on the right.
template <class V>
V right_or(const V& x, const V& gy, const V& left) {
    const Tensor& in = tensor_of(x);
    return where(greater(in, zeros({}, in.dtype())), gy, left);
}

/// Beyond ±40, exp(-x² / 2) is exactly 0 and the sigmoid 0 or 1, in f64 too.
template <class V>
V near_gelu(const V& x) {
    return clamp(x, {.min = -40, .max = 40});
}

template <class V>
V gelu_slope(const V& x, Approximate approximate) {
    const V z = near_gelu(x);
    if (approximate == Approximate::none) {
        const V share = scale(erf(scale(z, root_half)) + 1.0, 0.5);
        return share + z * scale(exp(scale(square(z), -0.5)), 1 / root_two_pi);
    }
    // (1 + tanh(u)) / 2 = sigmoid(2 u), which keeps its digits far left.
    const V share = sigmoid(scale(z + scale(pow(z, 3), gelu_tanh_cubic), 2 * gelu_tanh_scale));
    const V bend = scale(scale(square(z), 3 * gelu_tanh_cubic) + 1.0, 2 * gelu_tanh_scale);
    return share + z * share * (1.0 - share) * bend;
}

}  // namespace

std::span<const OpRow> detail::activation_rows() { return rows; }

Variable tanh(const Variable& x) {
    return record(
        find(rows, "tanh"), [&] { return tanh(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& y) {
                return pulled_back(y, gy, detail::tanh_vjp, [&] { return gy * (1.0 - y * y); });
            },
            result));
}

Variable sigmoid(const Variable& x) {
    return record(
        find(rows, "sigmoid"), [&] { return sigmoid(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& y) {
                return pulled_back(y, gy, detail::sigmoid_vjp,
                                   [&] { return gy * (y * (1.0 - y)); });
            },
            result));
}

Variable softplus(const Variable& x) {
    return record(
        find(rows, "softplus"), [&] { return softplus(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& in) {
                return pulled_back(in, gy, detail::softplus_vjp, [&] { return gy * sigmoid(in); });
            },
            x));
}

Variable relu(const Variable& x) {
    return record(
        find(rows, "relu"), [&] { return relu(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& y) {
                return pulled_back(y, gy, detail::relu_vjp, [&] {
                    const Tensor zero = zeros({}, y.dtype());
                    return where(greater(tensor_of(y), zero), gy, zero);
                });
            },
            result));
}

Variable leaky_relu(const Variable& x, double negative_slope) {
    return record(
        find(rows, "leaky_relu"), [&] { return leaky_relu(x.value(), negative_slope); },
        [=] {
            return Attributes{{"negative_slope", negative_slope}};
        },
        edge(
            x,
            [negative_slope](const auto& gy, const auto& in) {
                return right_or(in, gy, scale(gy, negative_slope));
            },
            x));
}

Variable elu(const Variable& x, double alpha) {
    return record(
        find(rows, "elu"), [&] { return elu(x.value(), alpha); },
        [=] {
            return Attributes{{"alpha", alpha}};
        },
        edge(
            x,
            [alpha](const auto& gy, const auto& in) {
                return right_or(in, gy, gy * scale(exp(clamp(in, {.max = 0})), alpha));
            },
            x));
}

Variable gelu(const Variable& x, const GeluOptions& options) {
    const Approximate approximate = options.approximate;
    return record(
        find(rows, "gelu"), [&] { return gelu(x.value(), options); },
        [=] {
            return Attributes{{"approximate", approximate == Approximate::tanh ? "tanh" : "none"}};
        },
        edge(
            x,
            [options](const auto& gy, const auto& in) {
                const auto fused = [&](const Tensor& values, const Tensor& g) {
                    return detail::gelu_vjp(values, g, options);
                };
                return pulled_back(in, gy, fused,
                                   [&] { return gy * gelu_slope(in, options.approximate); });
            },
            x));
}

Variable silu(const Variable& x) {
    return record(
        find(rows, "silu"), [&] { return silu(x.value()); },
        edge(
            x,
            [](const auto& gy, const auto& in) {
                return pulled_back(in, gy, detail::silu_vjp, [&] {
                    // Beyond ±800, sigmoid is exactly 0 or 1, in f64 too.
                    const auto z = clamp(in, {.min = -800, .max = 800});
                    const auto s = sigmoid(z);
                    return gy * (s * (z * (1.0 - s) + 1.0));
                });
            },
            x));
}

}  // namespace glassgrad
