// gradcheck of a module: its parameters are part of the check, and come back as they were.

#include "support/catch.hpp"

#include <glassgrad/layers.hpp>

using namespace glassgrad;

namespace {

/// A layer whose weight gets a gradient twice too large.
struct Doubled : Module {
    explicit Doubled(RandomState& rng) {
        weight = register_parameter("weight", rng.randn({3, 4}, {.dtype = f32}));
    }
    Variable operator()(const Variable& x) const {
        static const OpRow row{.name = "doubled", .forward = "y = x w", .backward = "wrong"};
        return record(
            row, matmul(x.value(), weight.value()),
            edge(
                x,
                [](const auto& gy, const auto& w) { return matmul(gy, w, {.transpose_b = true}); },
                weight),
            edge(
                weight,
                [](const auto& gy, const auto& in) {
                    return scale(matmul(in, gy, {.transpose_a = true}), 2);
                },
                x));
    }
    Variable weight;
};

struct Outer : Module {
    explicit Outer(RandomState& rng) : inner(rng) { register_module("inner", inner); }
    Variable operator()(const Variable& x) const { return inner(x); }
    Doubled inner;
};

}  // namespace

TEST_CASE("a wrong gradient of a parameter is found and named by its path") {
    RandomState rng(2);
    Outer module(rng);
    const Variable x = parameter(rng.randn({5, 3}), "x");
    const auto f = [&](std::span<const Variable> in) { return module(in[0]); };
    const GradcheckReport report = gradcheck(module, f, {x});
    CAPTURE(report.text);
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.worst().input == "inner.weight");
    CHECK(report.worst().fault == GradFault::factor);
}

TEST_CASE("a frozen parameter is listed, not checked") {
    RandomState rng(2);
    Outer module(rng);
    module.inner.weight.set_requires_grad(false);
    const Variable x = parameter(rng.randn({5, 3}), "x");
    const auto f = [&](std::span<const Variable> in) { return module(in[0]); };
    const GradcheckReport report = gradcheck(module, f, {x});
    CAPTURE(report.text);
    CHECK(report);
    CHECK(report.text.find("frozen, so not checked: inner.weight") != std::string::npos);
    CHECK_FALSE(module.inner.weight.requires_grad());
}

TEST_CASE("the module comes back with its values, types, names and gradients") {
    RandomState rng(2);
    Outer module(rng);
    const Tensor value = module.inner.weight.value();
    module.inner.weight.set_grad(ones({3, 4}));
    const Variable x = parameter(rng.randn({5, 3}), "x");
    (void)gradcheck(module, [&](std::span<const Variable> in) { return module(in[0]); }, {x});
    CHECK(module.inner.weight.dtype() == f32);
    CHECK(module.inner.weight.value().shares_buffer_with(value));
    CHECK(module.inner.weight.name() == "weight");
    CHECK(allclose(module.inner.weight.grad(), ones({3, 4})));
}
