// Embedding, norms, dropout, containers, initialisers, tying, summary.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

#include <cmath>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

std::vector<std::string> names_of(const Module& module) {
    std::vector<std::string> names;
    for (const auto& [name, value] : module.named_parameters()) names.push_back(name);
    return names;
}

}  // namespace

TEST_CASE("an embedding picks rows and adds up the gradients of a token that comes twice") {
    RandomState rng(3);
    const Embedding layer(5, 2, rng, {.dtype = f64});
    const Tensor ids = tensor({{0, 0, 2}, {4, 0, 1}}, i64);
    const Variable y = layer(ids);
    CHECK(y.shape() == Shape{2, 3, 2});
    CHECK(select(select(y.value(), 0, 1), 0, 0).values<double>()[1] ==
          layer.weight.value().values<double>()[9]);
    backward(sum(y));
    CHECK(allclose(layer.weight.grad(),
                   tensor({{3., 3.}, {1., 1.}, {1., 1.}, {0., 0.}, {1., 1.}}, f64)));
    CHECK(text_of<IndexError>([&] {
              layer(tensor({0, 4, 5}, i64));
          }).find("5") != std::string::npos);
}

TEST_CASE("the padding row of an embedding starts at zero and takes no gradient") {
    RandomState rng(3);
    const Embedding layer(4, 3, rng, {.padding_idx = 1, .dtype = f64});
    CHECK(sum(abs(select(layer.weight.value(), 0, 1))).item() == 0);
    backward(sum(layer(tensor({1, 2, 1, 2}, i64))));
    CHECK(allclose(layer.weight.grad(),
                   tensor({{0., 0., 0.}, {0., 0., 0.}, {2., 2., 2.}, {0., 0., 0.}}, f64)));
    CHECK(text_of<IndexError>([&] { Embedding(4, 3, rng, {.padding_idx = 4}); }) ==
          "embedding: padding_idx 4 is not one of 4 rows");
    CHECK(text_of<ShapeError>([&] { Embedding(0, 3, rng); }) ==
          "embedding: 0 rows of width 3: both must be at least 1");
}

TEST_CASE("norms start as the bare norm and refuse other widths") {
    const LayerNorm layer(3);
    const RMSNorm rms(3, {.eps = 1e-6});
    const Variable x(tensor({{1.F, 2.F, 4.F}, {-1.F, 0.F, 3.F}}));
    CHECK(allclose(layer(x).value(), layer_norm(x.value())));
    CHECK(allclose(rms(x).value(), rms_norm(x.value(), {.eps = 1e-6})));
    CHECK(names_of(layer) == std::vector<std::string>{"weight", "bias"});
    CHECK(names_of(rms) == std::vector<std::string>{"weight"});
    CHECK(text_of<ShapeError>([&] {
              layer(Variable(ones({2, 4})));
          }) == "layer_norm: the last axis of (2, 4) is not 3 long");
    CHECK(text_of<ValueError>([] { RMSNorm(3, {.eps = 0}); }) ==
          "rms_norm: eps 0 must be positive");
    CHECK(text_of<ValueError>([] { (void)norm_kind_from("batch_norm"); }) ==
          "norm: there is no 'batch_norm'; there are: layer_norm, rms_norm");
}

TEST_CASE("dropout drops in training only, and seeds give each layer numbers of its own") {
    RandomState rng(3);
    Sequential model;
    model.append<Dropout>(0.5, rng);
    model.append<Dropout>(0.5, rng);
    const Variable x(ones({64}, f64));
    seed_dropout(model, 7);
    const Variable first = model.at(0)(x);
    const Variable second = model.at(1)(x);
    CHECK_FALSE(allclose(first.value(), second.value()));
    CHECK_FALSE(allclose(first.value(), model.at(0)(x).value()));
    seed_dropout(model, 7);
    CHECK(allclose(first.value(), model.at(0)(x).value()));
    seed_dropout(model, 7, 64);
    CHECK_FALSE(allclose(first.value(), model.at(0)(x).value()));
    model.eval();
    CHECK(allclose(model(x).value(), x.value()));
    CHECK(text_of<ValueError>([&] { Dropout(1.5, rng); }) ==
          "dropout: probability 1.5 is outside 0 to 1");
    // The same weights with and without.
    RandomState one(5);
    RandomState other(5);
    Dropout none(0, one);
    Dropout some(0.3, other);
    CHECK(one.state() == other.state());
}

TEST_CASE("sequential chains layers and functions under torch's numbers") {
    RandomState rng(3);
    Sequential model;
    model.append<Linear>(3, 4, rng);
    model.append([](const Variable& x) { return relu(x); });
    model.append<Linear>(4, 2, rng, LinearOptions{.bias = false});
    CHECK(names_of(model) == std::vector<std::string>{"0.weight", "0.bias", "2.weight"});
    const Variable x(rng.randn({5, 3}, {.dtype = f32}));
    const Variable y = model.at(2)(relu(model.at(0)(x)));
    CHECK(allclose(model(x).value(), y.value()));
    CHECK(text_of<IndexError>([&] { model.at(3); }) == "sequential: there is no layer 3 among 3");
    CHECK(text_of<ShapeError>([&] {
              model(Variable(ones({5, 4})));
          }) ==
          "linear: the last axis of (5, 4) is not 3 long, in 0; the weight is (out, in) = (4, 3)");
}

TEST_CASE("a module list names its modules by number and opens its scope") {
    struct Stack : Module {
        explicit Stack(RandomState& rng) {
            blocks.append(3, 3, rng);
            blocks.append(3, 3, rng);
            register_module("blocks", blocks);
        }
        ModuleList<Linear> blocks;
    };
    RandomState rng(3);
    const Stack stack(rng);
    CHECK(names_of(stack) == std::vector<std::string>{"blocks.0.weight", "blocks.0.bias",
                                                      "blocks.1.weight", "blocks.1.bias"});
    CHECK(text_of<ShapeError>([&] {
              stack.blocks.each([](std::size_t i, const Linear& each) {
                  if (i == 1) each(Variable(ones({4})));
              });
          }) ==
          "linear: the last axis of (4,) is not 3 long, in blocks.1; the weight is (out, in) = "
          "(3, 3)");
}

TEST_CASE("tied weights are one tensor: gradients add, and a load under one name is enough") {
    struct Tied : Module {
        explicit Tied(RandomState& rng)
            : embedding(3, 2, rng, {.dtype = f64}), head(embedding.weight) {
            register_module("embedding", embedding);
            register_module("head", head);
        }
        Embedding embedding;
        Linear head;
    };
    RandomState rng(3);
    Tied model(rng);
    CHECK(model.parameters().size() == 1);
    CHECK(model.state_dict().size() == 2);
    CHECK(model.state_dict({.repeat_tied = false}).size() == 1);

    const Tensor w = tensor({{1., 2.}, {3., 4.}, {5., 7.}}, f64);
    model.load_state_dict({{"head.weight", w}});
    CHECK(model.embedding.weight.value().values<double>()[5] == 7);
    CHECK(text_of<ValueError>([&] {
              model.load_state_dict({{"embedding.weight", w}, {"head.weight", w + w}});
          }) ==
          "load_state_dict: embedding.weight and head.weight are one tensor here, but have two "
          "values; nothing was loaded");

    // y = W w_0: from the head the row w_0 for each output, from the embedding the sum of rows.
    backward(sum(model.head(model.embedding(tensor({0}, i64)))));
    CHECK(allclose(model.embedding.weight.grad(), tensor({{10., 15.}, {1., 2.}, {1., 2.}}, f64)));
    CHECK(text_of<ShapeError>([] { Linear(Variable(ones({3}))); }) ==
          "linear: a tied weight is a matrix (out, in), got (3,)");
}

TEST_CASE("initialisers have the spread that their papers give") {
    RandomState rng(3);
    const auto spread_of = [&](auto fill) {
        Variable x = parameter(zeros({80, 120}), "x");
        fill(x);
        CHECK(std::abs(mean(x.value()).item()) < 0.02);
        return std::sqrt(var(x.value()).item());
    };
    CHECK(spread_of([&](Variable x) { init::xavier_uniform(x, rng); }) ==
          Approx(std::sqrt(2.0 / 200)).epsilon(0.03));
    CHECK(spread_of([&](Variable x) { init::xavier_normal(x, rng, 2); }) ==
          Approx(2 * std::sqrt(2.0 / 200)).epsilon(0.03));
    CHECK(spread_of([&](Variable x) { init::kaiming_uniform(x, rng); }) ==
          Approx(std::sqrt(2.0 / 120)).epsilon(0.03));
    CHECK(spread_of([&](Variable x) {
              init::kaiming_normal(x, rng, {.slope = 2, .fan = init::Fan::out});
          }) == Approx(std::sqrt(2.0 / 5 / 80)).epsilon(0.03));
    // A standard normal cut at 2 has variance 0.774.
    CHECK(spread_of([&](Variable x) {
              init::trunc_normal(x, rng, {.std = 0.1, .low = -0.2, .high = 0.2});
          }) == Approx(0.1 * std::sqrt(0.7737)).epsilon(0.03));
    Variable x = parameter(zeros({500}), "x");
    init::trunc_normal(x, rng, {.std = 5});
    CHECK(max(abs(x.value())).item() <= 2);
    init::constant(x, 3);
    CHECK(sum(x.value()).item() == 1500);
    CHECK(text_of<ShapeError>([&] { init::xavier_normal(x, rng); }) ==
          "xavier_normal: (500,) has no fan: it needs two axes, (out, in)");
    CHECK(text_of<ValueError>([&] { init::trunc_normal(x, rng, {.low = 5, .high = 6}); }) ==
          "trunc_normal: mean 0 and std 1 leave almost nothing between 5 and 6");
}

TEST_CASE("positions of 2017 and ALiBi's slopes are those of the papers") {
    const Tensor table = sinusoidal_positions(5, 4, f64);
    CHECK(table.values<double>()[3 * 4] == Approx(std::sin(3.0)));
    CHECK(table.values<double>()[3 * 4 + 3] == Approx(std::cos(3.0 / 100)));
    CHECK(allclose(
        alibi_slopes(8, f64),
        tensor({0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625}, f64)));
    CHECK(allclose(alibi_slopes(3, f64), tensor({0.0625, 0.00390625, 0.25}, f64)));
    CHECK(text_of<ShapeError>([] { (void)sinusoidal_positions(5, 3); }) ==
          "sinusoidal_positions: (5, 3): the length must be positive, d_model even and positive");
}

TEST_CASE("rotary positions turn neighbours or halves, by name") {
    const Tensor at = tensor({1}, i64);
    const RotaryTable table = rotary_table(at, 4, {}, f64);
    const Variable x(tensor({{1., 2., 3., 4.}}, f64));
    const auto turned = [&](RotaryPairing pairing) {
        return rotary(x, Variable(table.cos), Variable(table.sin), pairing).value();
    };
    CHECK(allclose(turned(RotaryPairing::neighbours),
                   tensor({{-1.142639664, 1.922075597, 2.959850668, 4.029799502}}, f64),
                   {.rtol = 0, .atol = 1e-9}));
    CHECK(allclose(turned(RotaryPairing::halves),
                   tensor({{-1.984110649, 1.959900667, 2.462377902, 4.019799668}}, f64),
                   {.rtol = 0, .atol = 1e-9}));
    CHECK(rotary_table(tensor({{0, 1}, {5, 6}}, i64), 6).cos.shape() == Shape{2, 1, 2, 3});
    // Angles are made in f64: far out, f32 keeps its digits.
    const Tensor far = tensor({10000000}, i64);
    CHECK(rotary_table(far, 4).cos.values<float>()[0] == static_cast<float>(std::cos(10000000.0)));
    CHECK(text_of<ValueError>([] { (void)rotary_table(tensor({-1}, i64), 4); }) ==
          "rotary_table: position -1 is negative");
    CHECK(text_of<ShapeError>([] { (void)rotary_table(tensor({1}, i64), 3); }) ==
          "rotary_table: heads of width 3 have no pairs; it must be even and positive");
    CHECK(text_of<ShapeError>([&] {
              rotary(Variable(ones({2, 3, 4})), Variable(ones({2, 2})), Variable(ones({2, 2})));
          }).starts_with("rotary: "));
}

TEST_CASE("a summary lists paths, shapes and counts, tied tensors once") {
    struct Model : Module {
        explicit Model(RandomState& rng) : embedding(1200, 3, rng), head(embedding.weight) {
            register_module("embedding", embedding);
            register_module("head", head);
            register_module("norm", norm);
        }
        Embedding embedding;
        Linear head;
        LayerNorm norm{3};
    };
    RandomState rng(3);
    const Model model(rng);
    CHECK(summary(model) ==
          "parameter         shape      type               count\n"
          "embedding.weight  (1200, 3)  f32                3,600\n"
          "head.weight       (1200, 3)  f32   = embedding.weight\n"
          "norm.weight       (3,)       f32                    3\n"
          "norm.bias         (3,)       f32                    3\n"
          "total                                           3,606\n"
          "14,424 bytes\n");
}
