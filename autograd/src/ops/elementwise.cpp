// Functions of one Variable, element by element, and the choice between two.

#include <glassgrad/autograd/ops.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::tensor_of;
using detail::unary_samples;

namespace {

Tensor checkerboard(const Shape& shape) {
    Tensor mask = Tensor::empty(shape, boolean);
    bool* out = mask.mutable_data<bool>();
    for (std::int64_t i = 0; i < mask.numel(); ++i) out[i] = i % 3 != 1;
    return mask;
}

constexpr OpRow rows[] = {
    {.name = "exp",
     .forward = "y = exp(x)",
     .backward = "gx = gy y",
     .holds = "y >= 0",
     .torch = "torch.exp",
     .samples =
         [] {
             return unary_samples(exp, {-2, 2}, "torch.exp(a)");
         }},
    {.name = "log",
     .forward = "y = log(x)",
     .backward = "gx = gy / x",
     .domain = "x > 0; -inf at 0, NaN below",
     .torch = "torch.log",
     .samples =
         [] {
             return unary_samples(log, {0.3, 3}, "torch.log(a)");
         }},
    {.name = "sqrt",
     .forward = "y = sqrt(x)",
     .backward = "gx = gy / (2 y)",
     .holds = "y >= 0",
     .domain = "x >= 0; NaN below; the derivative is inf at 0",
     .torch = "torch.sqrt",
     .samples =
         [] {
             return unary_samples(sqrt, {0.3, 3}, "torch.sqrt(a)");
         }},
    {.name = "tanh",
     .forward = "y = tanh(x)",
     .backward = "gx = gy (1 - y²)",
     .holds = "|y| <= 1",
     .torch = "torch.tanh",
     .samples =
         [] {
             return unary_samples(tanh, {-2, 2}, "torch.tanh(a)");
         }},
    {.name = "relu",
     .forward = "y = max(x, 0)",
     .backward = "gx = gy where x > 0, else 0",
     .holds = "y >= 0",
     .torch = "torch.relu",
     .samples =
         [] {
             // The kink at 0 is left out of the domain.
             Samples samples = unary_samples(relu, {0.2, 2}, "torch.relu(a)");
             samples.push_back(detail::sample(
                 "both sides of 0",
                 where(checkerboard({2, 3}), spread({2, 3}, {0.2, 2}, 5),
                       spread({2, 3}, {-2, -0.2}, 6)),
                 [](const Variable& x) { return relu(x); }, "torch.relu(a)"));
             return samples;
         }},
    {.name = "where",
     .forward = "y = a where condition, else b",
     .backward = "ga = gy where condition, else 0; gb = 0 where condition, else gy",
     .inputs = "condition a b",
     .torch = "torch.where",
     .samples =
         [] {
             return detail::binary_samples(
                 [](const Variable& a, const Variable& b) {
                     return where(checkerboard(broadcast_shapes("where", a.shape(), b.shape())), a,
                                  b);
                 },
                 {-2, 2}, {-2, 2},
                 "torch.where(torch.arange((a + b).numel()).reshape((a + b).shape) % 3 != 1, a, "
                 "b)");
         }},
};

}  // namespace

std::span<const OpRow> detail::elementwise_rows() { return rows; }

Variable exp(const Variable& x) {
    return record(find(rows, "exp"), exp(x.value()),
                  edge(
                      x, [](const auto& gy, const auto& y) { return gy * y; }, result));
}

Variable log(const Variable& x) {
    return record(find(rows, "log"), log(x.value()),
                  edge(
                      x, [](const auto& gy, const auto& in) { return gy / in; }, x));
}

Variable sqrt(const Variable& x) {
    return record(find(rows, "sqrt"), sqrt(x.value()),
                  edge(
                      x, [](const auto& gy, const auto& y) { return gy / scale(y, 2); }, result));
}

Variable tanh(const Variable& x) {
    return record(find(rows, "tanh"), tanh(x.value()),
                  edge(
                      x, [](const auto& gy, const auto& y) { return gy * (1.0 - y * y); }, result));
}

Variable relu(const Variable& x) {
    return record(find(rows, "relu"), relu(x.value()),
                  edge(
                      x,
                      [](const auto& gy, const auto& y) {
                          const Tensor zero = zeros({}, y.dtype());
                          return where(greater(tensor_of(y), zero), gy, zero);
                      },
                      result));
}

Variable where(const Variable& condition, const Variable& a, const Variable& b) {
    // boolean, so no gradient is ever wanted for it
    constexpr auto nothing = [](const auto& gy) { return gy; };
    return record(find(rows, "where"), where(condition.value(), a.value(), b.value()),
                  edge(condition, nothing),
                  edge(
                      a,
                      [](const auto& gy, const auto& chosen) {
                          return where(tensor_of(chosen), gy, zeros({}, gy.dtype()));
                      },
                      condition),
                  edge(
                      b,
                      [](const auto& gy, const auto& chosen) {
                          return where(tensor_of(chosen), zeros({}, gy.dtype()), gy);
                      },
                      condition));
}

}  // namespace glassgrad
