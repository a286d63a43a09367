// One head of attention: the worked example's figures, masks, hooks and gradients.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

Tensor matrix(const nlohmann::json& rows) {
    std::vector<double> values;
    for (const auto& row : rows) {
        for (const auto& value : row) values.push_back(value.get<double>());
    }
    return from_values(
        values,
        {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.front().size())},
        f64);
}

/// Largest difference, relative to the larger of the two numbers.
double distance(const Tensor& a, const Tensor& b) {
    REQUIRE(a.shape() == b.shape());
    double worst = 0;
    for (std::size_t i = 0; i < a.values<double>().size(); ++i) {
        const double x = a.values<double>()[i];
        const double y = b.values<double>()[i];
        if (x != y) worst = std::max(worst, std::abs(x - y) / std::max(std::abs(x), std::abs(y)));
    }
    return worst;
}

nlohmann::json expected() {
    std::ifstream file(std::string(GLASSGRAD_TEST_DATA) + "/examples/worked_example.json");
    REQUIRE(file);
    return nlohmann::json::parse(file);
}

/// Attention of a small batch, computed with loops.
Tensor by_loops(const Tensor& x, const Attention& attention, const Tensor& allowed) {
    const auto project = [&](const Variable& w) { return matmul(x, w.value()); };
    const Tensor q = project(attention.W_Q);
    const Tensor k = project(attention.W_K);
    const Tensor v = project(attention.W_V);
    const std::int64_t batch = x.size(0), n = x.size(1), dk = q.size(2), dv = v.size(2);
    const Tensor may = broadcast_to(allowed, {batch, n, n});
    Tensor out = zeros({batch, n, dv}, f64);
    for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t i = 0; i < n; ++i) {
            double total = 0;
            std::vector<double> share(static_cast<std::size_t>(n));
            for (std::int64_t j = 0; j < n; ++j) {
                double score = 0;
                for (std::int64_t d = 0; d < dk; ++d) score += q.at({b, i, d}) * k.at({b, j, d});
                const double e = may.at({b, i, j}) != 0
                                     ? std::exp(score / std::sqrt(static_cast<double>(dk)))
                                     : 0;
                share[static_cast<std::size_t>(j)] = e;
                total += e;
            }
            for (std::int64_t d = 0; d < dv; ++d) {
                double value = 0;
                for (std::int64_t j = 0; j < n; ++j) {
                    value += share[static_cast<std::size_t>(j)] * v.at({b, j, d});
                }
                out.set({b, i, d}, total == 0 ? 0 : value / total);
            }
        }
    }
    return out;
}

}  // namespace

TEST_CASE("attention reproduces every figure of the worked example") {
    const nlohmann::json figures = expected();
    Attention attention(matrix(figures["W_Q"]), matrix(figures["W_K"]), matrix(figures["W_V"]));
    const Variable x = parameter(matrix(figures["X"]), "X");
    AttentionPoints p = attention.points(x);
    CHECK(distance(p.query.value(), matrix(figures["Q"])) < 1e-14);
    CHECK(distance(p.key.value(), matrix(figures["K"])) < 1e-14);
    CHECK(distance(p.value.value(), matrix(figures["V"])) < 1e-14);
    CHECK(distance(p.scores.value(), matrix(figures["scores"])) < 1e-14);
    CHECK(distance(p.scaled.value(), matrix(figures["scaled"])) < 1e-14);
    CHECK(distance(p.weights.value(), matrix(figures["weights"])) < 1e-14);
    CHECK(distance(p.output.value(), matrix(figures["output"])) < 1e-14);
    CHECK_FALSE(p.masked.defined());

    for (Variable* each :
         {&p.query, &p.key, &p.value, &p.scores, &p.scaled, &p.weights, &p.output}) {
        each->retain_grad();
    }
    backward(p.output, {.gradient = matrix(figures["cotangent"])});
    const nlohmann::json& gradients = figures["grad"];
    CHECK(distance(x.grad(), matrix(gradients["X"])) < 1e-13);
    CHECK(distance(attention.W_Q.grad(), matrix(gradients["W_Q"])) < 1e-13);
    CHECK(distance(attention.W_K.grad(), matrix(gradients["W_K"])) < 1e-13);
    CHECK(distance(attention.W_V.grad(), matrix(gradients["W_V"])) < 1e-13);
    CHECK(distance(p.query.grad(), matrix(gradients["Q"])) < 1e-13);
    CHECK(distance(p.key.grad(), matrix(gradients["K"])) < 1e-13);
    CHECK(distance(p.value.grad(), matrix(gradients["V"])) < 1e-13);
    CHECK(distance(p.scores.grad(), matrix(gradients["scores"])) < 1e-13);
    CHECK(distance(p.scaled.grad(), matrix(gradients["scaled"])) < 1e-13);
    CHECK(distance(p.weights.grad(), matrix(gradients["weights"])) < 1e-13);
    CHECK(distance(p.output.grad(), matrix(gradients["output"])) < 1e-13);
}

TEST_CASE("attention of a batch agrees with loops under every mask") {
    RandomState rng(5);
    const Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng, {.dtype = f64});
    const Tensor x = rng.randn({2, 4, 6});
    const Tensor keep = tensor({{1, 1, 1, 0}, {0, 1, 1, 1}}, boolean);
    for (const Mask& mask : {Mask::none(), Mask::causal(), Mask::padding(keep),
                             Mask::causal() & Mask::padding(keep)}) {
        const Tensor expected = by_loops(x, attention, mask.allowed({2, 4, 4}));
        CHECK(allclose(attention(Variable(x), mask).value(), expected,
                       {.rtol = 1e-12, .atol = 1e-14}));
    }
}

TEST_CASE("a query that sees no key gets zeros, and its gradients are zeros") {
    RandomState rng(5);
    const Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng, {.dtype = f64});
    const Variable x = parameter(rng.randn({4, 6}), "x");
    // Causal, and the first token is padding: query 0 sees nothing.
    const Mask mask = Mask::causal() & Mask::padding(tensor({0, 1, 1, 1}, boolean));
    AttentionPoints p = attention.points(x, mask);
    CHECK(allclose(slice(p.weights.value(), 0, {.stop = 1}), zeros({1, 4}, f64),
                   {.rtol = 0, .atol = 0}));
    CHECK(allclose(slice(p.output.value(), 0, {.stop = 1}), zeros({1, 5}, f64),
                   {.rtol = 0, .atol = 0}));
    p.query.retain_grad();
    backward(p.output, {.gradient = rng.randn({4, 5})});
    CHECK(allclose(slice(p.query.grad(), 0, {.stop = 1}), zeros({1, 3}, f64),
                   {.rtol = 0, .atol = 0}));
    CHECK(allclose(x.grad(), x.grad()));  // no NaN anywhere
    CHECK(allclose(attention.W_K.grad(), attention.W_K.grad()));
}

TEST_CASE("gradients of attention agree with differences under every mask") {
    RandomState rng(11);
    Attention attention({.d_model = 5, .d_k = 3, .d_v = 2}, rng);
    const Variable x = parameter(rng.randn({2, 4, 5}), "x");
    const Tensor keep = tensor({{1, 1, 1, 0}, {0, 1, 1, 1}}, boolean);
    for (const Mask& mask : {Mask::none(), Mask::causal(), Mask::padding(keep),
                             Mask::causal() & Mask::padding(keep)}) {
        const auto report = gradcheck(
            attention, [&](std::span<const Variable> in) { return attention(in[0], mask); }, {x});
        CAPTURE(report.text);
        CHECK(report);
        CHECK(report.inputs.size() == 4);
    }
}

TEST_CASE("cross attention takes keys and values from the context") {
    RandomState rng(5);
    const Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng, {.dtype = f64});
    const Tensor x = rng.randn({2, 6});
    const Tensor context = rng.randn({4, 6});
    const AttentionPoints p = attention.points(Variable(x), Variable(context), Mask::causal());
    CHECK(p.scores.shape() == Shape{2, 4});
    CHECK(p.output.shape() == Shape{2, 5});
    // Lower-right alignment: the first of two queries sees three of four keys.
    CHECK(p.weights.value().at({0, 2}) > 0);
    CHECK(p.weights.value().at({0, 3}) == 0);
    const Tensor scores = matmul(matmul(x, attention.W_Q.value()),
                                 matmul(context, attention.W_K.value()), {.transpose_b = true});
    CHECK(allclose(p.scores.value(), scores, {.rtol = 1e-13}));
}

TEST_CASE("points are named, and hooks see and replace them") {
    RandomState rng(5);
    Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng, {.dtype = f64});
    const Variable x(rng.randn({4, 6}));
    CHECK(attention.points(x, Mask::causal()).masked.name() == "masked");

    std::vector<std::string> seen;
    for (const std::string& name : attention.point_names()) {
        attention.hook_point(name, [&seen](const Variable& value) {
            seen.push_back(value.name());
            return Variable();
        });
    }
    attention(x, Mask::causal());
    CHECK(seen == attention.point_names());

    // Every weight to the first token: the output is its value in every row.
    const std::int64_t hook = attention.hook_point("weights", [](const Variable& value) {
        Tensor first = zeros_like(value.value());
        for (std::int64_t i = 0; i < first.size(0); ++i) first.set({i, 0}, 1);
        return Variable(first);
    });
    const AttentionPoints patched = attention.points(x);
    const Tensor first = slice(patched.value.value(), 0, {.stop = 1});
    CHECK(allclose(patched.output.value(), broadcast_to(first, {4, 5})));
    attention.remove_point_hook(hook);
    CHECK_FALSE(allclose(attention(x).value(), broadcast_to(first, {4, 5})));
}

TEST_CASE("hooks that do not fit are refused") {
    RandomState rng(5);
    Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng);
    CHECK(text_of<ValueError>([&] { attention.hook_point("weight", nullptr); }) ==
          "hook_point: there is no point 'weight'; there are: query, key, value, scores, scaled, "
          "masked, weights, output");
    attention.hook_point("scores", [](const Variable&) { return Variable(ones({2, 2})); });
    CHECK(text_of<ShapeError>([&] {
              attention(Variable(ones({4, 6})));
          }) == "hook of 'scores': returned f32 (2, 2), the point is f32 (4, 4)");
}

TEST_CASE("wrong sizes and types of attention are named") {
    RandomState rng(5);
    CHECK(text_of<ShapeError>([&] { Attention({.d_model = 6, .d_k = 0, .d_v = 5}, rng); }) ==
          "attention: a projection of 6 to 0 is empty");
    CHECK(
        text_of<ShapeError>([&] {
            Attention(ones({6, 3}), ones({6, 4}), ones({6, 5}));
        }) ==
        "attention: W_Q (6, 3), W_K (6, 4) and W_V (6, 5) do not fit together; they are (d_model, "
        "d_k), (d_model, d_k) and (d_model, d_v)");
    CHECK(text_of<TypeError>([&] {
              Attention(ones({6, 3}), ones({6, 3}, f64), ones({6, 5}));
          }) == "attention: W_Q is f32, W_K f64, W_V f32; convert them to one type with astype");
    const Attention attention({.d_model = 6, .d_k = 3, .d_v = 5}, rng);
    CHECK(text_of<ShapeError>([&] {
              attention(Variable(ones({4, 5})));
          }) == "attention: needs (..., tokens, 6), got (4, 5)");
    CHECK(text_of<ShapeError>([&] { attention(Variable(ones({6}))); }) ==
          "attention: needs (..., tokens, 6), got (6,)");
}
