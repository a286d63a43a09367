// Gradients that others got wrong once, with the numbers that are right (karpathy/micrograd#2,
// PR 102; micrograd_c#1; tt-metal#40008; burn#181; pytorch#1813, #8940, #27134; cTensor PR 24;
// mxnet#18563; tt-metal#56383), and what backward() and grad() do with leaves and results.

#include "autograd/support/checks.hpp"

#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

Tensor grad_of(const Variable& y, const Variable& x) { return grad({y}, {x}).front().value(); }

const double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("a value used twice gets both contributions") {
    const Variable x = parameter(tensor(1.5, f64));
    const Variable y = x * x;
    const Variable z = y * y + y;
    backward(z);
    CHECK(z.item() == 7.3125);
    CHECK(x.grad().item() == 16.5);
}

TEST_CASE("a second sweep of a retained graph does not count inner gradients again") {
    Variable x = parameter(tensor(3.0, f64));
    const Variable z = 2.0 * (x * x);
    backward(z, {.retain_graph = true});
    CHECK(x.grad().item() == 12);
    x.zero_grad();
    backward(z, {.retain_graph = true});
    CHECK(x.grad().item() == 12);
    backward(z);
    CHECK(x.grad().item() == 24);
}

TEST_CASE("the right operand of minus has the other sign") {
    const Variable a = parameter(tensor(2.0, f64));
    const Variable b = parameter(tensor(5.0, f64));
    backward(pow(a - b, 2));
    CHECK(a.grad().item() == -6);
    CHECK(b.grad().item() == 6);
}

TEST_CASE("the gradient of a broadcast operand is summed back to its shape") {
    const Variable h = parameter(reshape(arange(0, 24, 1, f64) * 0.1, {2, 1, 4, 3}));
    const Variable m = parameter(reshape(arange(1, 9, 1, f64), {2, 1, 4, 1}));
    backward(sum(h * m));
    CHECK(m.grad().shape() == Shape{2, 1, 4, 1});
    CHECK(close(reshape(m.grad(), {8}), tensor({.3, 1.2, 2.1, 3.0, 3.9, 4.8, 5.7, 6.6}, f64)));
    CHECK(close(reshape(slice(h.grad(), 0, {.stop = 1}), {4, 3}),
                tensor({{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}}, f64)));

    const Variable s = parameter(tensor(2.0, f64));
    const Variable w = parameter(reshape(arange(0, 6, 1, f64), {2, 3}));
    backward(sum(s * w));
    CHECK(s.grad().shape() == Shape{});
    CHECK(s.grad().item() == 15);
    CHECK(close(w.grad(), full({2, 3}, 2, f64)));
}

TEST_CASE("both operands may be broadcast against each other") {
    const Variable column = parameter(tensor({{1.0}, {2.0}}, f64));
    const Variable row = parameter(tensor({{10.0, 20.0, 30.0}}, f64));
    const Tensor weights = tensor({{1.0, 2.0, 4.0}, {8.0, 16.0, 32.0}}, f64);
    backward(sum((column + row) * Variable(weights)));
    CHECK(close(column.grad(), tensor({{7.0}, {56.0}}, f64)));
    CHECK(close(row.grad(), tensor({{9.0, 18.0, 36.0}}, f64)));
}

TEST_CASE("a matrix product with a broadcast bias, squared and summed") {
    // x w + b with x (2, 3), w (3, 1), b (1, 3) broadcasting to (2, 3).
    const Tensor x = tensor({{1.0, -2.0, 0.5}, {3.0, 0.25, -1.0}}, f64);
    const Variable w = parameter(tensor({{0.5}, {-1.0}, {2.0}}, f64));
    const Variable b = parameter(tensor({{0.1, 0.2, 0.3}}, f64));
    backward(sum(pow(matmul(Variable(x), w) + b, 2)));
    // x w = (3.5, -0.75); y = x w + b; db = sum over rows of 2 y; dw = xᵀ (2 y summed over columns)
    CHECK(close(b.grad(), tensor({{5.9, 6.3, 6.7}}, f64)));
    CHECK(close(w.grad(), tensor({{22.2 - 3.3 * 3}, {-44.4 - 3.3 * 0.25}, {11.1 + 3.3}}, f64)));
}

TEST_CASE("the mean over the only axis is the full mean") {
    for (const ReduceOptions& options : {ReduceOptions{}, ReduceOptions{.axes = {0}}}) {
        const Variable x = parameter(ones({5}, f64));
        backward(mean(x * x, options));
        CHECK(close(x.grad(), full({5}, 0.4, f64)));
    }
}

TEST_CASE("a mean over rows divides by the length of a row") {
    const Variable x = parameter(ones({2, 3}, f64));
    backward(sum(mean(x, {.axes = {1}}) * Variable(tensor({1.0, 10.0}, f64))));
    CHECK(close(x.grad(), tensor({{1, 1, 1}, {10, 10, 10}}, f64) / 3.0));
}

TEST_CASE("equal largest elements share the gradient") {
    const Variable x = parameter(tensor({1.0, 2.0, 2.0, 2.0}, f64));
    backward(max(x));
    CHECK(close(x.grad(), tensor({0, 1, 1, 1}, f64) / 3.0));
    CHECK(sum(x.grad()).item() == Approx(1));
}

TEST_CASE("powers have the right slope at 0, for negative bases and zero exponents") {
    const Variable x = parameter(tensor({0.0, 1.0}, f64));
    CHECK(close(grad_of(sum(pow(x, 0.0)), x), tensor({0.0, 0.0}, f64), 0));
    const auto slope_at_0 = [](double p) {
        const Variable zero = parameter(tensor(0.0, f64));
        return grad_of(pow(zero, p), zero).item();
    };
    CHECK(slope_at_0(3) == 0);
    CHECK(slope_at_0(2) == 0);
    CHECK(slope_at_0(1) == 1);
    CHECK(slope_at_0(0.5) == inf);

    const Variable a = parameter(tensor({0.0, 2.0}, f64));
    const Variable b = parameter(tensor({1.0, 1.0}, f64));
    backward(sum(pow(a, b)));
    CHECK(close(a.grad(), tensor({1.0, 1.0}, f64)));
    CHECK(close(b.grad(), tensor({0.0, 1.3862943611198906}, f64)));

    const Variable n = parameter(tensor({0.0, 0.0, 0.0}, f64));
    const Variable e = parameter(tensor({0.0, 2.0, 3.0}, f64));
    backward(sum(pow(n, e)));
    CHECK(close(n.grad(), tensor({0.0, 0.0, 0.0}, f64), 0));
    CHECK(close(e.grad(), tensor({0.0, 0.0, 0.0}, f64), 0));

    for (const double p : {3.0}) {
        const Variable m = parameter(tensor({-2.0}, f64));
        const Variable y = pow(m, p);
        CHECK(y.item() == -8);
        CHECK(grad_of(y, m).item() == 12);
        const Variable w = parameter(tensor({-2.0}, f64));
        CHECK(grad_of(pow(w, Variable(tensor({p}, f64))), w).item() == 12);
    }
}

TEST_CASE("a rule that answers zeros and one that answers infinity do not mix") {
    // Only the gradient's own element is affected.
    const Variable x = parameter(tensor({0.0, 4.0}, f64));
    CHECK(close(grad_of(sum(sqrt(x)), x), tensor({inf, 0.25}, f64)));
}

TEST_CASE("leaves keep gradients, results only when asked") {
    const Variable x = x64({1.0, 2.0});
    Variable y = x * 3.0;
    Variable z = y * y;
    y.retain_grad();
    backward(sum(z));
    CHECK(close(x.grad(), tensor({18.0, 36.0}, f64)));
    CHECK(close(y.grad(), tensor({6.0, 12.0}, f64)));
    CHECK_FALSE(z.has_grad());
    y.zero_grad();
    CHECK_FALSE(y.has_grad());
}

TEST_CASE("undefined means no path, zeros mean a path with derivative zero") {
    const Variable x = x64({1.0, 2.0});
    const Variable unused = x64({3.0});
    const Variable flat = x64({-1.0, -2.0});
    backward(sum(x + relu(flat)));
    CHECK(x.has_grad());
    CHECK_FALSE(unused.has_grad());
    REQUIRE(flat.has_grad());
    CHECK(close(flat.grad(), zeros({2}, f64), 0));
}

TEST_CASE("a cotangent weighs the result, and one element needs none") {
    const Variable x = x64({1.0, 2.0});
    backward(x * x, {.gradient = tensor({10.0, 100.0}, f64)});
    CHECK(close(x.grad(), tensor({20.0, 400.0}, f64)));
    const Variable one = x64({{3.0}});
    backward(one * one);
    CHECK(one.grad().item() == 6);
}

TEST_CASE("backward() on a leaf gives it its cotangent") {
    const Variable x = x64({1.0, 2.0});
    backward(x, {.gradient = tensor({5.0, 6.0}, f64)});
    backward(x, {.gradient = tensor({5.0, 6.0}, f64)});
    CHECK(close(x.grad(), tensor({10.0, 12.0}, f64)));
}

TEST_CASE("grad() leaves the gradients of leaves alone, and adds its outputs up") {
    const Variable x = x64({1.0, 2.0});
    const Variable w = x64({5.0, 7.0});
    const Variable y = x * w;
    const Variable z = x * x;
    const auto g = grad({y, z}, {w, x, y},
                        {.grad_outputs = {Variable(ones({2}, f64)), Variable(full({2}, 10, f64))}});
    CHECK(close(g[0].value(), tensor({1.0, 2.0}, f64)));
    CHECK(close(g[1].value(), tensor({25.0, 47.0}, f64)));
    CHECK(close(g[2].value(), ones({2}, f64)));
    CHECK_FALSE(x.has_grad());
    CHECK_FALSE(w.has_grad());
    CHECK_FALSE(g[0].requires_grad());
}

TEST_CASE("grad() of an input that is an output is its cotangent, twice if asked twice") {
    const Variable x = x64({1.0, 2.0});
    const Variable y = x * 3.0;
    const auto g = grad({y, y}, {y, x, x},
                        {.grad_outputs = {Variable(ones({2}, f64)), Variable(full({2}, 2, f64))}});
    CHECK(close(g[0].value(), full({2}, 3, f64)));
    CHECK(close(g[1].value(), full({2}, 9, f64)));
    CHECK(close(g[2].value(), full({2}, 9, f64)));
}

TEST_CASE("allow_unused gives an undefined gradient for an input without a path") {
    const Variable x = x64({1.0, 2.0});
    const Variable unused = x64({3.0});
    const auto g = grad({sum(x)}, {unused, x}, {.allow_unused = true});
    CHECK_FALSE(g[0].defined());
    CHECK(close(g[1].value(), ones({2}, f64)));
}

TEST_CASE("nothing is recorded under NoGrad, by detach() or from constants") {
    const Variable x = x64({1.0, 2.0});
    CHECK(grad_enabled());
    {
        const NoGrad off;
        CHECK_FALSE(grad_enabled());
        CHECK_FALSE((x * x).requires_grad());
        {
            const GradMode on(true);
            CHECK((x * x).requires_grad());
        }
        CHECK_FALSE(grad_enabled());
    }
    CHECK(grad_enabled());
    const Variable d = x.detach();
    CHECK_FALSE(d.requires_grad());
    CHECK(d.value().shares_buffer_with(x.value()));
    CHECK_FALSE((d * 2.0).requires_grad());
    backward(sum(d * x));
    CHECK(close(x.grad(), tensor({1.0, 2.0}, f64)));
}

TEST_CASE("a product whose other factor is a constant keeps no path to it") {
    const Variable c(tensor({1.0, 2.0}, f64));
    const Variable x = x64({3.0, 4.0});
    const Variable y = c * x;
    backward(sum(y));
    CHECK(close(x.grad(), tensor({1.0, 2.0}, f64)));
    CHECK_FALSE(c.has_grad());
}
