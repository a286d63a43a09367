// Products of matrices. einsum has a file of its own.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/products.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples matmul_samples() {
    Samples samples;
    int seed = 0;
    const auto add = [&](const Shape& a, const Shape& b, const MatmulOptions& options = {}) {
        const std::string label = to_string(a) + (options.transpose_a ? "ᵀ" : "") + " by " +
                                  to_string(b) + (options.transpose_b ? "ᵀ" : "");
        const Tensor left = spread(a, {-2, 2}, ++seed);
        const Tensor right = spread(b, {-2, 2}, ++seed);
        samples.push_back(detail::sample(
            label, left, right,
            [options](const Variable& x, const Variable& y) { return matmul(x, y, options); },
            std::string("torch.matmul(") + (options.transpose_a ? "a.mT" : "a") + ", " +
                (options.transpose_b ? "b.mT)" : "b)")));
    };
    add({2, 3}, {3, 4});
    add({3, 2}, {3, 4}, {.transpose_a = true});
    add({2, 3}, {4, 3}, {.transpose_b = true});
    add({3, 2}, {4, 3}, {.transpose_a = true, .transpose_b = true});
    add({5, 2, 3}, {3, 4});
    add({5, 2, 3}, {4, 3}, {.transpose_b = true});
    add({5, 3, 2}, {3, 4}, {.transpose_a = true});
    add({2, 3}, {5, 3, 4});
    add({5, 1, 2, 3}, {6, 3, 4});
    add({5, 3, 2}, {5, 4, 3}, {.transpose_a = true, .transpose_b = true});
    add({3}, {3});
    add({3}, {3, 4});
    add({2, 3}, {3});
    add({5, 2, 3}, {3});
    add({3}, {5, 3, 4});
    add({2, 0}, {0, 4});
    add({0, 3}, {3, 4});
    add({5, 2, 0}, {0, 4});
    add({5, 2, 3}, {3, 0});
    return samples;
}

Samples linear_samples() {
    Samples samples;
    const auto add = [&](const Shape& x, const Shape& weight, bool has_bias) {
        std::vector<Tensor> inputs{spread(x, {-2, 2}, 1), spread(weight, {-2, 2}, 2)};
        if (has_bias) inputs.push_back(spread({weight[0]}, {-2, 2}, 3));
        samples.push_back(OpSample{
            to_string(x) + " by " + to_string(weight) + (has_bias ? "" : " without a bias"), inputs,
            [has_bias](std::span<const Variable> in) {
                return linear(in[0], in[1], has_bias ? in[2] : Variable());
            },
            has_bias ? "torch.nn.functional.linear(a, b, c)" : "torch.nn.functional.linear(a, b)"});
    };
    add({2, 3}, {4, 3}, true);
    add({5, 2, 3}, {4, 3}, true);
    add({3}, {4, 3}, true);
    add({2, 3}, {4, 3}, false);
    add({2, 0}, {4, 0}, true);
    add({0, 3}, {4, 3}, true);
    return samples;
}

template <class F>
OpSample product_of(std::string_view label, const Shape& a, const Shape& b, F f,
                    std::string_view torch) {
    return detail::sample(label, spread(a, {-2, 2}, 1), spread(b, {-2, 2}, 2), f, torch);
}

Samples bmm_samples() {
    Samples samples;
    for (const auto& [a, b] : {std::pair<Shape, Shape>{{2, 3, 4}, {2, 4, 5}},
                               {{1, 1, 3}, {1, 3, 1}},
                               {{0, 2, 3}, {0, 3, 4}},
                               {{2, 3, 0}, {2, 0, 4}}}) {
        samples.push_back(product_of(
            to_string(a) + " by " + to_string(b), a, b,
            [](const Variable& x, const Variable& y) { return bmm(x, y); }, "torch.bmm(a, b)"));
    }
    return samples;
}

Samples outer_samples() {
    Samples samples;
    for (const auto& [a, b] : {std::pair<Shape, Shape>{{3}, {4}}, {{1}, {1}}, {{0}, {2}}}) {
        samples.push_back(product_of(
            to_string(a) + " with " + to_string(b), a, b,
            [](const Variable& x, const Variable& y) { return outer(x, y); }, "torch.outer(a, b)"));
    }
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "matmul",
     .forward = "y[..., i, j] = sum_k a[..., i, k] b[..., k, j]",
     .backward = "ga = gy bᵀ; gb = aᵀ gy",
     .domain = "for gb of a bᵀ, a row of a whose gradient is exactly 0 counts nothing, even if NaN",
     .torch = "torch.matmul",
     .records = "matmul reshape",
     .f32_ulp = 8,
     .samples = matmul_samples},
    {.name = "linear",
     .forward = "y[..., j] = sum_k x[..., k] weight[j, k] + bias[j]",
     .backward = "gx = gy weight; gweight = gyᵀ x; gbias = gy summed over all but its last axis",
     .domain = "for gweight, a row of x whose gradient is exactly 0 counts nothing, even if NaN",
     .inputs = "x weight bias",
     .torch = "torch.nn.functional.linear",
     .records = "linear matmul reshape add",
     .f32_ulp = 8,
     .samples = linear_samples},
    {.name = "bmm",
     .forward = "y[p, i, j] = sum_k a[p, i, k] b[p, k, j]",
     .backward = "ga = gy bᵀ; gb = aᵀ gy",
     .torch = "torch.bmm",
     .records = "matmul",
     .samples = bmm_samples},
    {.name = "outer",
     .forward = "y[i, j] = a[i] b[j]",
     .backward = "ga = gy b; gb = gyᵀ a",
     .domain = "vectors, as in PyTorch (NumPy flattens)",
     .torch = "torch.outer",
     .records = "matmul reshape",
     .samples = outer_samples},
};

/// gyᵀ a, in which a row whose gradient is exactly 0 takes no part, even with NaN in it: what
/// attention hides, or a loss ignores, stays out of the gradients of the weights before it.
template <class V>
V weight_gradient(const V& gy, const V& a) {
    return weighted_sum(gy, a, {.transpose_weights = true});
}

/// gb of a stack `a` times one matrix: the rows of all matrices together, in one product, in
/// place of one product each and a sum.
template <class V>
V flat_product(const V& a, const V& gy, bool swap) {
    const V rows_a = reshape(a, {-1, a.shape().back()});
    const V rows_gy = reshape(gy, {-1, gy.shape().back()});
    return swap ? weight_gradient(rows_gy, rows_a) : matmul(rows_a, rows_gy, {.transpose_a = true});
}

}  // namespace

std::span<const OpRow> detail::product_rows() { return rows; }

Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options) {
    const bool ta = options.transpose_a;
    const bool tb = options.transpose_b;
    const auto product = [&] { return matmul(a.value(), b.value(), options); };
    if (a.rank() == 1 || b.rank() == 1) {
        // Checks the call as it stands, then computes with the vector as a matrix.
        const Shape shape = detail::computed(find(rows, "matmul"), product, a, b).shape();
        const Variable left = a.rank() == 1 ? reshape(a, {1, -1}) : a;
        const Variable right = b.rank() == 1 ? reshape(b, {-1, 1}) : b;
        return reshape(matmul(left, right, options), shape);
    }
    Tensor value = detail::computed(find(rows, "matmul"), product, a, b);
    const bool flat = b.rank() == 2 && a.rank() > 2 && !ta && value.numel() > 0 && a.numel() > 0;
    return detail::recorded(
        find(rows, "matmul"), std::move(value),
        [=] {
            return Attributes{{"transpose_a", ta}, {"transpose_b", tb}};
        },
        edge(
            a,
            [ta, tb](const auto& gy, const auto& right) {
                return ta ? matmul(right, gy, {.transpose_a = tb, .transpose_b = true})
                          : matmul(gy, right, {.transpose_b = !tb});
            },
            b),
        edge(
            b,
            [ta, tb, flat](const auto& gy, const auto& left) {
                if (flat) return flat_product(left, gy, tb);
                if (tb && !ta) return weight_gradient(gy, left);
                return tb ? matmul(gy, left, {.transpose_a = true, .transpose_b = ta})
                          : matmul(left, gy, {.transpose_a = !ta});
            },
            a));
}

Variable linear(const Variable& x, const Variable& weight, const Variable& bias) {
    if (!bias.defined() || detail::watched()) {
        const Variable y = matmul(x, weight, {.transpose_b = true});
        return bias.defined() ? y + bias : y;
    }
    const OpRow& row = find(rows, "linear");
    Tensor value = detail::computed(
        row, [&] { return linear(x.value(), weight.value(), bias.value()); }, x, weight, bias);
    const auto rule = [](const auto& gy, const detail::JointRead<2, 0>& read,
                         const std::array<bool, 3>& wanted) {
        using V = std::remove_cvref_t<decltype(gy)>;
        const Variable& in = read.saved[0];
        const Variable& w = read.saved[1];
        if constexpr (std::is_same_v<V, Variable>) {
            if (grad_enabled()) {
                const auto flat = [](const Variable& each) {
                    std::int64_t count = 1;
                    for (int i = 0; i + 1 < each.rank(); ++i) count *= each.shape()[i];
                    return reshape(each, {count, each.shape().back()});
                };
                return std::array<V, 3>{wanted[0] ? matmul(gy, w) : V(),
                                        wanted[1] ? weight_gradient(flat(gy), flat(in)) : V(),
                                        wanted[2] ? gy : V()};
            }
        }
        detail::LinearGradients all = detail::linear_gradients(
            wanted[1] ? in.value() : Tensor(), wanted[0] ? w.value() : Tensor(),
            detail::tensor_of(gy), {.x = wanted[0], .weight = wanted[1], .bias = wanted[2]});
        const auto given = [](Tensor& each) { return each.defined() ? V(std::move(each)) : V(); };
        return std::array<V, 3>{given(all.x), given(all.weight), given(all.bias)};
    };
    // Each is kept for the other's gradient alone.
    const Variable none;
    return record_joint(
        row, std::move(value), detail::no_attributes, std::array{&x, &weight, &bias},
        std::array{weight.requires_grad() ? &x : &none, x.requires_grad() ? &weight : &none},
        std::array<Tensor, 0>(), rule);
}

Variable bmm(const Variable& a, const Variable& b) {
    detail::computed(
        find(rows, "bmm"), [&] { return detail::check_bmm(a.value(), b.value()); }, a, b);
    return matmul(a, b);
}

Variable outer(const Variable& a, const Variable& b) {
    detail::computed(
        find(rows, "outer"), [&] { return detail::check_outer(a.value(), b.value()); }, a, b);
    return matmul(reshape(a, {a.numel(), 1}), reshape(b, {1, b.numel()}));
}

}  // namespace glassgrad
