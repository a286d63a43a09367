#pragma once
// What the files of ops share: each has one table of rows, in which its functions find their own
// while compiling, and helpers that make the samples of a row.

#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/autograd/ops/elementwise.hpp>
#include <glassgrad/autograd/record.hpp>
#include <glassgrad/tensor/ops/attention.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad::detail {

// Each file's table.
std::span<const OpRow> arithmetic_rows();
std::span<const OpRow> attention_rows();
std::span<const OpRow> cross_entropy_rows();
std::span<const OpRow> tiled_attention_rows();
std::span<const OpRow> elementwise_rows();
std::span<const OpRow> activation_rows();
std::span<const OpRow> choose_rows();
std::span<const OpRow> layer_norm_rows();
std::span<const OpRow> loss_rows();
std::span<const OpRow> product_rows();
std::span<const OpRow> projected_attention_rows();
std::span<const OpRow> einsum_rows();
std::span<const OpRow> reduce_rows();
std::span<const OpRow> extreme_rows();
std::span<const OpRow> shape_rows();
std::span<const OpRow> axes_rows();
std::span<const OpRow> index_rows();
std::span<const OpRow> rearrange_rows();
std::span<const OpRow> rotary_rows();
std::span<const OpRow> normalize_rows();

/// Throws GraphError when the slopes of alibi want a gradient, which they don't get.
void refuse_learned_slopes(const AttentionOptionsOf<Variable>& options);

struct TiledCall;
/// The gradients of q, k and v from ops that are recorded, on the steps of the named form.
std::array<Variable, 3> attention_gradients(const Variable& gy, const TiledCall& call,
                                            std::span<const Variable, 3> inputs);

/// The row of `name`; a name without a row does not compile.
template <std::size_t N>
consteval const OpRow& find(const OpRow (&rows)[N], std::string_view name) {
    for (const OpRow& row : rows) {
        if (row.name == name) return row;
    }
    throw "no row of this name";
}

using Samples = std::vector<OpSample>;

struct Interval {
    double low;
    double high;
};

/// f64 values spread over an interval without repeating or ordering; `seed` sets them apart.
Tensor spread(const Shape& shape, Interval interval, int seed);

/// Values on both sides of 0, whose distance from it is in `distance`.
Tensor two_sided(const Shape& shape, Interval distance, int seed);

/// true, false, true, true, false, true, …: as `torch_checkerboard` of a tensor a.
Tensor checkerboard(const Shape& shape);
inline constexpr const char* torch_checkerboard =
    "torch.arange(a.numel()).reshape(a.shape) % 3 != 1";

// `torch` is the same call in Python, of a, b, c, … (see OpSample).

/// One input of each of the shapes (), (3,), (2, 3), (0, 3).
Samples unary_samples(Variable (*f)(const Variable&), Interval domain, std::string_view torch);

/// Every pair of the shapes (), (3,), (2, 3), (1, 3), (2, 1), and pairs with no elements.
Samples binary_samples(Variable (*f)(const Variable&, const Variable&), Interval a, Interval b,
                       std::string_view torch);

/// A sample with one input.
template <class F>
OpSample sample(std::string_view label, const Tensor& x, F f, std::string_view torch) {
    return {std::string(label),
            {x},
            [f](std::span<const Variable> in) { return f(in[0]); },
            std::string(torch)};
}
/// A sample of a function that moves elements: any values will do.
template <class F>
OpSample moved(std::string_view label, const Shape& shape, F f, std::string_view torch) {
    return sample(label, spread(shape, {-2, 2}, 1), f, torch);
}
/// A sample with two inputs.
template <class F>
OpSample sample(std::string_view label, const Tensor& a, const Tensor& b, F f,
                std::string_view torch) {
    return {std::string(label),
            {a, b},
            [f](std::span<const Variable> in) { return f(in[0], in[1]); },
            std::string(torch)};
}
/// A sample with three inputs.
template <class F>
OpSample sample(std::string_view label, const Tensor& a, const Tensor& b, const Tensor& c, F f,
                std::string_view torch) {
    return {std::string(label),
            {a, b, c},
            [f](std::span<const Variable> in) { return f(in[0], in[1], in[2]); },
            std::string(torch)};
}

/// The edge of an input that no gradient is ever wanted for: indices, masks.
inline auto constant(const Variable& input) {
    return edge(input, [](const auto& gy) { return gy; });
}

/// The tensor behind a rule's argument, whichever kind of pass calls it.
inline const Tensor& tensor_of(const Tensor& x) { return x; }
inline const Tensor& tensor_of(const Variable& x) { return x.value(); }

/// 0 whatever gy is, with a path to it: the gradient where a derivative is 0 everywhere.
template <class V>
V nothing_of(const V& gy) {
    return where(zeros({}, boolean), gy, zeros({}, gy.dtype()));
}

}  // namespace glassgrad::detail
