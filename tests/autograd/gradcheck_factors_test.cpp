// gradcheck itself under test: gradients that are right but for a factor or the place of their
// elements.

#include "autograd/support/faults.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

std::vector<Fault> factors() {
    return {
        {"the sign of exp",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 exp(in[0].value()), in[0], [](const auto& gy, const auto& y) { return -(gy * y); },
                 result);
         },
         GradFault::sign,
         "the sign is wrong"},
        {"the 2 of a square",
         {named(x43, "x")},
         [](In in) {
             return seeded(
                 pow(in[0].value(), 2), in[0], [](const auto& gy, const auto& x) { return gy * x; },
                 in[0]);
         },
         GradFault::factor,
         "analytic = 0.5 numeric everywhere: a factor 2 is missing"},
        {"a 2 too much, and the sign",
         {named(x43, "x")},
         [](In in) {
             return seeded(neg(in[0].value()), in[0], [](const auto& gy) { return gy * 2.0; });
         },
         GradFault::factor,
         "analytic = -2 numeric everywhere: the sign is wrong, and a factor 2 too much"},
        {"1/n of a mean over rows",
         {named(x43, "x")},
         [](In in) {
             return seeded(mean(in[0].value(), {.axes = {1}, .keepdims = true}), in[0],
                           [](const auto& gy) {
                               return broadcast_to(gy, {4, 3});
                           });
         },
         GradFault::factor,
         "1/3 is missing, the size of axis 1 of x"},
        {"a mean over rows divided by the number of rows",
         {named(x43, "x")},
         [](In in) {
             return seeded(mean(in[0].value(), {.axes = {1}, .keepdims = true}), in[0],
                           [](const auto& gy) {
                               return broadcast_to(gy / 12.0, {4, 3});
                           });
         },
         GradFault::factor,
         "1/4 too much, the size of axis 0 of x"},
        {"1/sqrt(d) of scores",
         {named(uneven({4, 5}), "q")},
         [](In in) {
             const Variable k(uneven({3, 5}, -1, 1, 4));
             return seeded(
                 matmul(in[0].value(), k.value(), {.transpose_b = true}) / std::sqrt(5.0), in[0],
                 [](const auto& gy, const auto& keys) { return matmul(gy, keys); }, k);
         },
         GradFault::factor,
         "1/sqrt(5) is missing, the size of axis 1 of q"},
        {"1/sqrt(d) twice",
         {named(uneven({4, 5}), "q")},
         [](In in) {
             const Variable k(uneven({3, 5}, -1, 1, 4));
             return seeded(
                 matmul(in[0].value(), k.value(), {.transpose_b = true}) / std::sqrt(5.0), in[0],
                 [](const auto& gy, const auto& keys) { return matmul(gy, keys) / 5.0; }, k);
         },
         GradFault::factor,
         "1/sqrt(5) too much, the size of axis 1 of q"},
        {"1/n in place of 1/(n - 1)",
         {named(uneven({7}), "x")},
         [](In in) {
             return seeded(
                 var(in[0].value(), {.correction = 1}), in[0],
                 [](const auto& gy, const auto& x) { return gy * (x - mean(x)) * (2.0 / 7); },
                 in[0]);
         },
         GradFault::factor,
         "1/7 in place of 1/(7 - 1), the size of axis 0 of x"},
        {"a broadcast operand averaged in place of summed",
         {named(uneven({3}), "bias")},
         [](In in) {
             return seeded(x43 + in[0].value(), in[0],
                           [](const auto& gy) { return mean(gy, {.axes = {0}}); });
         },
         GradFault::factor,
         "1/4 too much, the size of axis 0 of the result"},
    };
}

std::vector<Fault> moves() {
    const Tensor a33 = uneven({3, 3}, -2, 2, 6);
    return {
        {"a square operand transposed",
         {named(uneven({3, 3}), "w")},
         [a33](In in) {
             return seeded(matmul(a33, in[0].value()), in[0], [a33](const auto& gy) {
                 return matmul(gy, std::remove_cvref_t<decltype(gy)>(a33), {.transpose_a = true});
             });
         },
         GradFault::transposed,
         "axes 0 and 1 are exchanged"},
        {"a transposed gradient forced into shape",
         {named(uneven({4, 5}), "w")},
         [](In in) {
             return seeded(in[0].value() * 3.0, in[0], [](const auto& gy) {
                 return reshape(transpose(gy * 3.0), {4, 5});
             });
         },
         GradFault::transposed,
         "axes 0 and 1 are exchanged"},
        {"a gradient shifted by one column",
         {named(x43, "x")},
         [](In in) {
             const Tensor& x = in[0].value();
             return seeded(concat({slice(x, 1, {.start = 1}), slice(x, 1, {.stop = 1})}, 1), in[0],
                           [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::shifted,
         "along axis 1"},
        {"a reversed axis not turned back",
         {named(x43, "x")},
         [](In in) {
             return seeded(slice(in[0].value(), 0, {.step = -1}), in[0],
                           [](const auto& gy) { return gy * 1.0; });
         },
         GradFault::reversed,
         "back to front along axis 0"},
        {"exchanged operands",
         {named(x43, "a"), named(uneven({4, 3}, -2, 2, 3), "b")},
         [](In in) {
             constexpr auto times = [](const auto& gy, const auto& own) { return gy * own; };
             return record(seeded_row, in[0].value() * in[1].value(), edge(in[0], times, in[0]),
                           edge(in[1], times, in[1]));
         },
         GradFault::exchanged,
         "this is the gradient of "},
    };
}

}  // namespace

TEST_CASE("gradcheck names a constant factor and where it may come from") {
    expect_caught(factors());
}

TEST_CASE("gradcheck names gradients that are transposed, shifted, reversed or exchanged") {
    expect_caught(moves());
}
