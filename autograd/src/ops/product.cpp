// The matrix product.

#include <glassgrad/autograd/ops.hpp>

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
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "matmul",
     .forward = "y[..., i, j] = sum_k a[..., i, k] b[..., k, j]",
     .backward = "ga = gy bᵀ; gb = aᵀ gy",
     .torch = "torch.matmul",
     .records = "matmul reshape",
     .f32_ulp = 8,
     .samples = matmul_samples},
};

/// gb of a stack `a` times one matrix: the rows of all matrices together, in one product, in
/// place of one product each and a sum.
template <class V>
V flat_product(const V& a, const V& gy, bool swap) {
    const V rows_a = reshape(a, {-1, a.shape().back()});
    const V rows_gy = reshape(gy, {-1, gy.shape().back()});
    return swap ? matmul(rows_gy, rows_a, {.transpose_a = true})
                : matmul(rows_a, rows_gy, {.transpose_a = true});
}

}  // namespace

std::span<const OpRow> detail::product_rows() { return rows; }

Variable matmul(const Variable& a, const Variable& b, const MatmulOptions& options) {
    const bool ta = options.transpose_a;
    const bool tb = options.transpose_b;
    if (a.rank() == 1 || b.rank() == 1) {
        // Checks the call as it stands, then computes with the vector as a matrix.
        const Shape shape = matmul(a.value(), b.value(), options).shape();
        const Variable left = a.rank() == 1 ? reshape(a, {1, -1}) : a;
        const Variable right = b.rank() == 1 ? reshape(b, {-1, 1}) : b;
        return reshape(matmul(left, right, options), shape);
    }
    Tensor value = matmul(a.value(), b.value(), options);
    const bool flat = b.rank() == 2 && a.rank() > 2 && !ta && value.numel() > 0 && a.numel() > 0;
    return record(
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
                return tb ? matmul(gy, left, {.transpose_a = true, .transpose_b = ta})
                          : matmul(left, gy, {.transpose_a = !ta});
            },
            a));
}

}  // namespace glassgrad
