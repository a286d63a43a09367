// Layer norm and RMS norm. Rules are for the last axes; others are brought there by permute.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/norm_gradients.hpp>
#include <glassgrad/tensor/detail/trailing.hpp>

#include "family.hpp"

#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

/// `torch` is the same without weight and bias.
template <class F>
void add_samples(Samples& samples, std::string_view label, const Shape& shape, const Shape& part,
                 F f, int parts, std::string_view torch) {
    OpSample sample{std::string(label),
                    {spread(shape, {-2, 2}, static_cast<int>(samples.size()) + 1)},
                    f,
                    std::string(torch)};
    for (int i = 0; i < parts; ++i) sample.inputs.push_back(spread(part, {0.4, 2}, i + 9));
    samples.push_back(std::move(sample));
}

using Inputs = std::span<const Variable>;

Samples layer_norm_samples() {
    Samples samples;
    const NormOptions two{.axes = {-2, -1}};
    const NormOptions middle{.axes = {1}, .eps = 0.1};
    add_samples(
        samples, "(4,)", {4}, {4}, [](Inputs x) { return layer_norm(x[0]); }, 0,
        "F.layer_norm(a, (4,))");
    add_samples(
        samples, "(2, 3) with weight and bias", {2, 3}, {3},
        [](Inputs x) { return layer_norm(x[0], x[1], x[2]); }, 2, "F.layer_norm(a, (3,), b, c)");
    add_samples(
        samples, "(2, 3, 4) with weight", {2, 3, 4}, {4},
        [](Inputs x) { return layer_norm(x[0], x[1], {}); }, 1, "F.layer_norm(a, (4,), b)");
    add_samples(
        samples, "(2, 3, 4) with bias", {2, 3, 4}, {4},
        [](Inputs x) { return layer_norm(x[0], {}, x[1]); }, 1, "F.layer_norm(a, (4,)) + b");
    add_samples(
        samples, "two axes of (2, 3, 4)", {2, 3, 4}, {3, 4},
        [two](Inputs x) { return layer_norm(x[0], x[1], x[2], two); }, 2,
        "F.layer_norm(a, (3, 4), b, c)");
    add_samples(
        samples, "axis 1 of (2, 3, 4), eps 0.1", {2, 3, 4}, {3},
        [middle](Inputs x) { return layer_norm(x[0], x[1], x[2], middle); }, 2,
        "F.layer_norm(a.transpose(1, 2), (3,), b, c, 0.1).transpose(1, 2)");
    add_samples(
        samples, "no rows", {0, 3}, {3}, [](Inputs x) { return layer_norm(x[0], x[1], x[2]); }, 2,
        "F.layer_norm(a, (3,), b, c)");
    add_samples(
        samples, "empty rows", {3, 0}, {0}, [](Inputs x) { return layer_norm(x[0]); }, 0,
        "a * 1.0");
    return samples;
}

Samples rms_norm_samples() {
    Samples samples;
    const std::string root = "a / torch.sqrt((a * a).mean(-1, keepdim=True) + 1e-5)";
    const NormOptions two{.axes = {-2, -1}};
    const NormOptions first{.axes = {0}, .eps = 0.1};
    add_samples(
        samples, "(4,)", {4}, {4}, [](Inputs x) { return rms_norm(x[0]); }, 0, root);
    add_samples(
        samples, "(2, 3) with weight", {2, 3}, {3}, [](Inputs x) { return rms_norm(x[0], x[1]); },
        1, root + " * b");
    add_samples(
        samples, "two axes of (2, 3, 4)", {2, 3, 4}, {3, 4},
        [two](Inputs x) { return rms_norm(x[0], x[1], two); }, 1,
        "a / torch.sqrt((a * a).mean((-2, -1), keepdim=True) + 1e-5) * b");
    add_samples(
        samples, "axis 0 of (3, 2), eps 0.1", {3, 2}, {3},
        [first](Inputs x) { return rms_norm(x[0], x[1], first); }, 1,
        "a / torch.sqrt((a * a).mean(0, keepdim=True) + 0.1) * b[:, None]");
    add_samples(
        samples, "no rows", {0, 3}, {3}, [](Inputs x) { return rms_norm(x[0], x[1]); }, 1,
        root + " * b");
    add_samples(
        samples, "empty rows", {3, 0}, {0}, [](Inputs x) { return rms_norm(x[0]); }, 0, "a * 1.0");
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "layer_norm",
     .forward = "y = h weight + bias, with h = (x - mean(x)) / sqrt(var(x) + eps) over the axes",
     .backward = "gx = (g - mean(g) - h mean(g h)) / sqrt(var(x) + eps), with g = gy weight; "
                 "gweight = sum of gy h; gbias = sum of gy",
     .domain = "eps > 0; a constant row gives the bias, with finite gradients",
     .inputs = "x weight bias",
     .torch = "torch.nn.functional.layer_norm",
     .records = "layer_norm permute",
     .samples = layer_norm_samples},
    {.name = "rms_norm",
     .forward = "y = h weight, with h = x / sqrt(mean(x²) + eps) over the axes",
     .backward = "gx = (g - h mean(g h)) / sqrt(mean(x²) + eps), with g = gy weight; "
                 "gweight = sum of gy h",
     .domain = "eps > 0; a row of zeros gives zeros, with finite gradients",
     .inputs = "x weight",
     .torch = "torch.nn.functional.rms_norm",
     .records = "rms_norm permute",
     .samples = rms_norm_samples},
};

Tensor value_of(const Variable& x) { return x.defined() ? x.value() : Tensor(); }

/// 1 / sqrt(mean(x²) + eps) over the axes, kept.
Variable inverse_root(const Variable& x, const NormOptions& options) {
    return pow(mean(x * x, {.axes = options.axes, .keepdims = true}) + options.eps, -0.5);
}

/// `f(x, options)` for axes that are not the last ones.
template <class F>
Variable moved(const Variable& x, const detail::Trailing& axes, const NormOptions& options,
               const F& f) {
    const NormOptions last{.axes = axes.last(), .eps = options.eps};
    return permute(f(permute(x, detail::list(axes.order)), last), detail::list(axes.inverse));
}

}  // namespace

std::span<const OpRow> detail::layer_norm_rows() { return rows; }

namespace {

/// A norm over the last axes with its parameters, of which some may be undefined. `fused` gives all
/// gradients of Tensors, `to_x` and `norm` are what they are composed of when they are recorded.
template <class Fused, class ToX, class Norm>
Variable recorded(const OpRow& row, Tensor value, const NormOptions& options, const Variable& x,
                  const Variable& weight, const Variable& bias, const Fused& fused, const ToX& to_x,
                  const Norm& norm) {
    const auto rule = [=](const auto& gy, const detail::JointRead<2, 0>& read,
                          const std::array<bool, 3>& wanted) {
        using V = std::remove_cvref_t<decltype(gy)>;
        const Variable& in = read.saved[0];
        const Variable& w = read.saved[1];
        const detail::NormInputs want{.x = wanted[0], .weight = wanted[1], .bias = wanted[2]};
        if constexpr (std::is_same_v<V, Variable>) {
            if (grad_enabled()) {
                return std::array<V, 3>{want.x ? to_x(in, w.defined() ? gy * w : gy, options) : V(),
                                        want.weight ? gy * norm(in, options) : V(),
                                        want.bias ? gy : V()};
            }
        }
        detail::NormGradients all =
            fused(in.value(), value_of(w), detail::tensor_of(gy), options, want);
        const auto given = [](Tensor& gradient) {
            return gradient.defined() ? V(std::move(gradient)) : V();
        };
        return std::array<V, 3>{given(all.x), given(all.weight), given(all.bias)};
    };
    return record_joint(
        row, std::move(value),
        [&] {
            const int axes = detail::last_count(row.name, x.shape(), options.axes);
            return Attributes{{"axes", axes}, {"eps", options.eps}};
        },
        std::array{&x, &weight, &bias}, std::array{&x, &weight}, std::array<Tensor, 0>(), rule,
        result);
}

}  // namespace

Variable layer_norm_vjp(const Variable& x, const Variable& gy, const NormOptions& options) {
    if (!grad_enabled()) return Variable(layer_norm_vjp(x.value(), gy.value(), options));
    if (x.numel() == 0) return scale(gy, 0);
    const ReduceOptions over{.axes = options.axes, .keepdims = true};
    const Variable h = layer_norm(x, options);
    const Variable slope = gy - mean(gy, over) - h * mean(gy * h, over);
    return slope * inverse_root(x - mean(x, over), options);
}

Variable layer_norm(const Variable& x, const NormOptions& options) {
    return layer_norm(x, {}, {}, options);
}

Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const NormOptions& options) {
    if (detail::last_count("layer_norm", x.shape(), options.axes) < 0) {
        const detail::Trailing axes = detail::trailing("layer_norm", x.shape(), options.axes);
        return moved(x, axes, options, [&](const Variable& turned, const NormOptions& last) {
            return layer_norm(turned, weight, bias, last);
        });
    }
    const OpRow& row = find(rows, "layer_norm");
    Tensor value = detail::computed(
        row, [&] { return layer_norm(x.value(), value_of(weight), value_of(bias), options); }, x,
        weight, bias);
    return recorded(
        row, std::move(value), options, x, weight, bias, detail::layer_norm_gradients,
        [](const Variable& in, const Variable& gy, const NormOptions& o) {
            return layer_norm_vjp(in, gy, o);
        },
        [](const Variable& in, const NormOptions& o) { return layer_norm(in, o); });
}

Variable rms_norm_vjp(const Variable& x, const Variable& gy, const NormOptions& options) {
    if (!grad_enabled()) return Variable(rms_norm_vjp(x.value(), gy.value(), options));
    if (x.numel() == 0) return scale(gy, 0);
    const Variable h = rms_norm(x, options);
    const Variable slope = gy - h * mean(gy * h, {.axes = options.axes, .keepdims = true});
    return slope * inverse_root(x, options);
}

Variable rms_norm(const Variable& x, const NormOptions& options) {
    return rms_norm(x, {}, options);
}

Variable rms_norm(const Variable& x, const Variable& weight, const NormOptions& options) {
    if (detail::last_count("rms_norm", x.shape(), options.axes) < 0) {
        const detail::Trailing axes = detail::trailing("rms_norm", x.shape(), options.axes);
        return moved(x, axes, options, [&](const Variable& turned, const NormOptions& last) {
            return rms_norm(turned, weight, last);
        });
    }
    const OpRow& row = find(rows, "rms_norm");
    Tensor value = detail::computed(
        row, [&] { return rms_norm(x.value(), value_of(weight), options); }, x, weight);
    return recorded(
        row, std::move(value), options, x, weight, {}, detail::rms_norm_gradients,
        [](const Variable& in, const Variable& gy, const NormOptions& o) {
            return rms_norm_vjp(in, gy, o);
        },
        [](const Variable& in, const NormOptions& o) { return rms_norm(in, o); });
}

}  // namespace glassgrad
