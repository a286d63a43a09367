// Derivatives of derivatives, against formulas.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

/// The k-th derivative of an elementwise function at each element of x.
template <class F>
Tensor derivative(const F& f, const Tensor& at, int k) {
    const Variable x = parameter(at);
    Variable y = f(x);
    for (int i = 0; i < k; ++i) {
        if (!y.requires_grad()) return zeros_like(at);
        const auto g = grad({sum(y)}, {x}, {.create_graph = true, .allow_unused = true});
        if (!g[0].defined()) return zeros_like(at);
        y = g[0];
    }
    return y.value();
}

const Tensor points = tensor({{-1.5, -0.4, 0.3}, {0.8, 1.1, 2.2}}, f64);
const Tensor positive = tensor({{1.5, 0.4, 0.3}, {0.8, 1.1, 2.2}}, f64);

}  // namespace

TEST_CASE("polynomials have the derivatives of the textbook, to the fifth order") {
    const auto quartic = [](const Variable& x) {
        return 2.0 * (x * x * x * x) - 3.0 * (x * x) + x;
    };
    const Tensor& x = points;
    CHECK(close(derivative(quartic, x, 1), pow(x, 3) * 8.0 - x * 6.0 + 1.0));
    CHECK(close(derivative(quartic, x, 2), pow(x, 2) * 24.0 - 6.0));
    CHECK(close(derivative(quartic, x, 3), x * 48.0));
    CHECK(close(derivative(quartic, x, 4), full({2, 3}, 48, f64)));
    CHECK(close(derivative(quartic, x, 5), zeros({2, 3}, f64)));
    const auto cube = [](const Variable& v) { return pow(v, 3.0); };
    CHECK(close(derivative(cube, x, 2), x * 6.0));
    CHECK(close(derivative(cube, x, 3), full({2, 3}, 6, f64)));
    CHECK(close(derivative(cube, x, 4), zeros({2, 3}, f64)));
}

TEST_CASE("exp is its own derivative of any order") {
    for (int k = 1; k <= 5; ++k) {
        INFO(k);
        CHECK(close(derivative([](const Variable& x) { return exp(x); }, points, k), exp(points)));
    }
}

TEST_CASE("tanh has its derivatives to the fourth order") {
    const auto f = [](const Variable& x) { return tanh(x); };
    const Tensor t = tanh(points);
    const Tensor s = 1.0 - t * t;
    CHECK(close(derivative(f, points, 1), s));
    CHECK(close(derivative(f, points, 2), t * s * -2.0));
    CHECK(close(derivative(f, points, 3), s * (t * t * 6.0 - 2.0)));
    CHECK(close(derivative(f, points, 4), t * s * (16.0 - t * t * 24.0)));
}

TEST_CASE("log, sqrt and 1/x have their derivatives to the fourth order") {
    const Tensor& x = positive;
    const auto logarithm = [](const Variable& v) { return log(v); };
    const auto root = [](const Variable& v) { return sqrt(v); };
    const auto inverse = [](const Variable& v) { return 1.0 / v; };
    CHECK(close(derivative(logarithm, x, 3), pow(x, -3) * 2.0));
    CHECK(close(derivative(logarithm, x, 4), pow(x, -4) * -6.0, 1e-11));
    CHECK(close(derivative(root, x, 2), pow(x, -1.5) * -0.25));
    CHECK(close(derivative(root, x, 4), pow(x, -3.5) * (-15.0 / 16), 1e-11));
    CHECK(close(derivative(inverse, x, 3), pow(x, -4) * -6.0, 1e-11));
}

TEST_CASE("a mixed second derivative is the same in either order") {
    const Variable a = parameter(points);
    const Variable b = parameter(positive);
    const Variable y = sum(exp(a * b) + pow(b, a));
    const auto g = grad({y}, {a, b}, {.create_graph = true});
    const Variable ab = grad({sum(g[0])}, {b}, {.retain_graph = true})[0];
    const Variable ba = grad({sum(g[1])}, {a})[0];
    CHECK(close(ab.value(), ba.value()));
}

TEST_CASE("a Hessian times a vector, by two sweeps") {
    // y = xᵀ A x / 2 with A not symmetric: H = (A + Aᵀ) / 2.
    const Tensor a = uneven({3, 3});
    const Variable x = parameter(uneven({1, 3}));
    const Tensor v = uneven({1, 3}, -1, 1, 5);
    const Variable y = sum(matmul(x, Variable(a)) * x) * 0.5;
    const Variable g = grad({y}, {x}, {.create_graph = true})[0];
    const Variable hv = grad({sum(g * Variable(v))}, {x})[0];
    CHECK(close(hv.value(), matmul(v, (a + transpose(a)) * 0.5)));
}

TEST_CASE("a gradient penalty is trained through") {
    // d/dw of |d/dx (w x)²|² = d/dw (2 w² x)² = 16 w³ x².
    const Variable w = parameter(tensor(1.5, f64), "w");
    const Variable x = parameter(tensor(-0.7, f64), "x");
    const Variable g = grad({pow(w * x, 2)}, {x}, {.create_graph = true})[0];
    backward(g * g);
    CHECK(w.grad().item() == Approx(16 * 1.5 * 1.5 * 1.5 * 0.49));
    CHECK(x.grad().item() == Approx(8 * 1.5 * 1.5 * 1.5 * 1.5 * -0.7));
}

TEST_CASE("cotangents are differentiated, too") {
    const Variable x = x64({1.0, 2.0, 3.0});
    const Variable v = x64({4.0, 5.0, 6.0}, "v");
    const Variable g = grad({x * x}, {x}, {.grad_outputs = {v}, .create_graph = true})[0];
    CHECK(close(grad({sum(g)}, {v})[0].value(), x.value() * 2.0));
}

TEST_CASE("create_graph keeps the graph, and gradients without it are constants") {
    const Variable x = x64({1.0, 2.0});
    const Variable y = sum(x * x * x);
    const Variable recorded = grad({y}, {x}, {.create_graph = true})[0];
    CHECK(recorded.requires_grad());
    const Variable plain = grad({y}, {x}, {.retain_graph = true})[0];
    CHECK_FALSE(plain.requires_grad());
    CHECK(same_bits(recorded.value(), plain.value()));
    backward(y);
    CHECK(same_bits(x.grad(), plain.value()));
}

TEST_CASE("a linear op's second derivative has no path") {
    const Variable x = x64({1.0, 2.0});
    const Variable g = grad({sum(x * 3.0)}, {x}, {.create_graph = true})[0];
    CHECK_FALSE(g.requires_grad());
}
