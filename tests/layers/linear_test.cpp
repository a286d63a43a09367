#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

using namespace glassgrad;
using glassgrad_tests::text_of;

TEST_CASE("linear is x weight transposed plus bias") {
    RandomState rng(3);
    Linear layer(3, 2, rng, {.dtype = f64});
    layer.load_state_dict({{"weight", tensor({{1.0, 2.0, -1.0}, {0.5, -3.0, 4.0}}, f64)},
                           {"bias", tensor({10.0, 20.0}, f64)}});
    const Variable y = layer(Variable(tensor({{1.0, 0.0, 2.0}, {-1.0, 3.0, 0.5}}, f64)));
    CHECK(allclose(y.value(), tensor({{9.0, 28.5}, {14.5, 12.5}}, f64)));
    // A vector and a stack work alike.
    CHECK(layer(Variable(ones({3}, f64))).shape() == Shape{2});
    CHECK(layer(Variable(ones({5, 4, 3}, f64))).shape() == Shape{5, 4, 2});
    CHECK(layer(Variable(ones({0, 3}, f64))).shape() == Shape{0, 2});
}

TEST_CASE("linear without a bias has one parameter") {
    RandomState rng(3);
    const Linear layer(3, 2, rng, {.bias = false});
    CHECK(layer.parameters().size() == 1);
    CHECK_FALSE(layer.bias.defined());
}

TEST_CASE("linear starts uniform within one over the root of its inputs") {
    RandomState rng(3);
    const Linear layer(100, 50, rng);
    CHECK(max(abs(layer.weight.value())).item() <= 0.1);
    CHECK(max(abs(layer.weight.value())).item() > 0.0999);
    CHECK(var(layer.weight.value()).item() == Approx(0.01 / 3).epsilon(0.05));
    CHECK(max(abs(layer.bias.value())).item() <= 0.1);
}

TEST_CASE("gradients of linear agree with differences, parameters included") {
    RandomState rng(3);
    Linear layer(3, 2, rng);
    const Variable x = parameter(rng.randn({5, 4, 3}), "x");
    const auto report =
        gradcheck(layer, [&](std::span<const Variable> in) { return layer(in[0]); }, {x});
    CAPTURE(report.text);
    CHECK(report);
    CHECK(report.inputs.size() == 3);
    CHECK(layer.weight.dtype() == f32);
}

TEST_CASE("wrong sizes of linear are named") {
    RandomState rng(3);
    CHECK(text_of<ShapeError>([&] { Linear(0, 2, rng); }) ==
          "linear: sizes in 0 and out 2 must be at least 1");
    const Linear layer(3, 2, rng);
    CHECK(text_of<ShapeError>([&] {
              layer(Variable(ones({3, 4})));
          }) == "linear: the last axis of (3, 4) is not 3 long; the weight is (out, in) = (2, 3)");
    CHECK(text_of<ShapeError>([&] { layer(Variable(ones({}))); }) ==
          "linear: the last axis of () is not 3 long; the weight is (out, in) = (2, 3)");
    CHECK(text_of<TypeError>([&] {
              layer(Variable(ones({4, 3}, f64)));
          }) ==
          "linear: f64 (4, 3) and f32 (2, 3) have different types (weight is 'weight', bias is "
          "'bias'); convert one with astype");
}
