// Losses and norms at the numbers that go wrong elsewhere: the cases of public bug reports.

#include "autograd/support/checks.hpp"

#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Variable classes(std::initializer_list<std::int64_t> list) {
    const std::vector<std::int64_t> values(list);
    return Variable(from_span<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}));
}

Tensor gradient(const Variable& y, const Variable& x) { return grad({y}, {x})[0].value(); }

double tolerance(DType dtype) { return dtype == f64 ? 2e-9 : 2e-6; }

}  // namespace

TEST_CASE("cross entropy averages over the targets that count") {
    for (const DType dtype : {f64, f32}) {
        const Variable x = parameter(tensor({{1.0, 2.0, 3.0}, {1.0, 2.0, 3.0}}, f64).astype(dtype));
        const Variable loss = cross_entropy(x, classes({2, -100}));
        CHECK(loss.item() == Approx(0.407605964).epsilon(tolerance(dtype)));
        const Tensor gx = gradient(loss, x);
        CHECK(same_bits(slice(gx, 0, {.start = 1}), zeros({1, 3}, dtype)));
    }
}

TEST_CASE("cross entropy of nothing is 0 with zero gradient, in both orders and every reduction") {
    for (const DType dtype : {f64, f32}) {
        const Variable x =
            parameter(tensor({{1.0, not_a_number, 3.0}, {inf, 2.0, 3.0}}, f64).astype(dtype));
        for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::batch_mean}) {
            for (const bool recorded : {false, true}) {
                const Variable loss =
                    cross_entropy(x, classes({-100, -100}), {.reduction = reduction});
                CHECK(loss.item() == 0);
                const Tensor gx = grad({loss}, {x}, {.create_graph = recorded})[0].value();
                CHECK(close(gx, zeros({2, 3}, dtype), 0));
            }
        }
        const Variable empty = parameter(zeros({0, 3}, dtype));
        const Variable loss = cross_entropy(empty, Variable(zeros({0}, i64)));
        CHECK(loss.item() == 0);
        CHECK(gradient(loss, empty).shape() == Shape{0, 3});
        // Weights that count nothing.
        const Variable y = parameter(ones({2, 3}, dtype));
        const Variable none =
            cross_entropy(y, classes({1, 1}), {.weight = tensor({1.0, 0.0, 1.0}, f64)});
        CHECK(none.item() == 0);
        CHECK(close(gradient(none, y), zeros({2, 3}, dtype), 0));
    }
}

TEST_CASE("an ignored row may hold anything") {
    const Tensor clean = tensor({{1.0, 2.0, 3.0}, {0.0, 0.0, 0.0}}, f64);
    const Tensor wild = tensor({{1.0, 2.0, 3.0}, {not_a_number, inf, -inf}}, f64);
    for (const bool recorded : {false, true}) {
        const Variable a = parameter(clean), b = parameter(wild);
        const Variable la = cross_entropy(a, classes({0, -100}));
        const Variable lb = cross_entropy(b, classes({0, -100}));
        CHECK(same_bits(la.value(), lb.value()));
        CHECK(same_bits(grad({la}, {a}, {.create_graph = recorded})[0].value(),
                        grad({lb}, {b}, {.create_graph = recorded})[0].value()));
    }
}

TEST_CASE("an ignored row takes zero in the second derivative, too, whatever it holds") {
    for (const std::int64_t ignored : {std::int64_t{-100}, std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min()}) {
        const auto second = [&](const Tensor& logits) {
            const Variable x = parameter(logits);
            const Variable gy = parameter(tensor({0.5, -2.0}, f64));
            const Variable y = cross_entropy(
                x, classes({0, ignored}), {.ignore_index = ignored, .reduction = Reduction::none});
            const Variable gx = grad({y}, {x}, {.grad_outputs = {gy}, .create_graph = true})[0];
            const Tensor w = tensor({{1.0, -1.0, 0.5}, {2.0, 1.0, -1.0}}, f64);
            return grad({gx}, {x, gy}, {.grad_outputs = {w}});
        };
        const auto clean = second(tensor({{1.0, 2.0, 3.0}, {0.0, 0.0, 0.0}}, f64));
        const auto wild = second(tensor({{1.0, 2.0, 3.0}, {not_a_number, inf, -inf}}, f64));
        for (const std::size_t i : {0u, 1u}) {
            CHECK(close(wild[i].value(), clean[i].value(), 0));
        }
        CHECK(wild[1].value().at({1}) == 0);
    }
}

TEST_CASE("an ignored class stays a class of the softmax") {
    const Variable x = parameter(ones({2, 3}, f64));
    const Variable loss = cross_entropy(x, classes({1, 2}), {.ignore_index = 0});
    CHECK(loss.item() == Approx(1.098612289).epsilon(1e-9));
    for (const Reduction reduction : {Reduction::mean, Reduction::sum, Reduction::none}) {
        const Variable y =
            cross_entropy(x, classes({255, 2}), {.ignore_index = 255, .reduction = reduction});
        CHECK(sum(y).item() == Approx(1.098612289).epsilon(1e-9));
    }
}

TEST_CASE("cross entropy of extreme logits is exact") {
    for (const DType dtype : {f64, f32}) {
        const Variable x = parameter(tensor({{1000.0, 0.0, -1000.0}}, f64).astype(dtype));
        const Variable loss = cross_entropy(x, classes({2}));
        CHECK(loss.item() == 2000);
        CHECK(close(gradient(loss, x).astype(f64), tensor({{1.0, 0.0, -1.0}}, f64)));
        const Variable far = parameter(tensor({{1e4, -1e4}, {-1e4, -1e4}}, f64).astype(dtype));
        const Variable both = cross_entropy(far, classes({1, 0}), {.reduction = Reduction::none});
        CHECK(both.value().at({0}) == 2e4);
        CHECK(both.value().at({1}) == Approx(std::log(2.0)));
        // Beside logits this large log 2 is less than the rounding of one.
        const Variable huge = parameter(tensor({{1e30, 1e30, -1e30}}, f64).astype(dtype));
        const Variable tied = cross_entropy(huge, classes({0}));
        CHECK(tied.item() == Approx(std::log(2.0)));
        CHECK(close(gradient(tied, huge).astype(f64), tensor({{-0.5, 0.5, 0.0}}, f64), 1e-6));
        // A class of -inf: no other class learns of it; as the target it costs infinity.
        const Variable shut = parameter(tensor({{0.0, -inf, 0.0}}, f64).astype(dtype));
        CHECK(cross_entropy(shut, classes({0})).item() == Approx(std::log(2.0)));
        CHECK(close(gradient(cross_entropy(shut, classes({0})), shut).astype(f64),
                    tensor({{-0.5, 0.0, 0.5}}, f64), 1e-6));
        CHECK(cross_entropy(shut, classes({1})).item() == inf);
        CHECK(close(gradient(cross_entropy(shut, classes({1})), shut).astype(f64),
                    tensor({{0.5, -1.0, 0.5}}, f64), 1e-6));
        const Variable dead = parameter(full({1, 3}, -inf, dtype));
        CHECK(cross_entropy(dead, classes({1})).item() == inf);
        CHECK(close(gradient(cross_entropy(dead, classes({1})), dead), zeros({1, 3}, dtype), 0));
        // A recorded pass says the same of both.
        const auto recorded = [](const Variable& logits, std::int64_t target) {
            const Variable cost = cross_entropy(logits, classes({target}));
            return grad({cost}, {logits}, {.create_graph = true})[0].value();
        };
        CHECK(close(recorded(shut, 1).astype(f64), tensor({{0.5, -1.0, 0.5}}, f64), 1e-6));
        CHECK(close(recorded(dead, 1), zeros({1, 3}, dtype), 0));
        // A probability of 0 takes nothing from a class of -inf.
        const Variable q = parameter(tensor({{0.5, 0.0, 0.5}}, f64).astype(dtype));
        CHECK(cross_entropy(shut, q).item() == Approx(std::log(2.0)));
        CHECK(close(gradient(cross_entropy(shut, q), q).astype(f64),
                    tensor({{std::log(2.0), 0.0, std::log(2.0)}}, f64), 1e-6));
        CHECK(close(gradient(cross_entropy(shut, q), shut).astype(f64), zeros({1, 3}, f64), 1e-6));
    }
}

TEST_CASE("a target that is no class is named with its place and the bound") {
    const Variable x = parameter(zeros({2, 5}));
    const std::string fix = "; targets that do not count have the ignore_index, -100";
    CHECK(message_of<IndexError>([&] {
              cross_entropy(x, classes({1, -4}));
          }) ==
          "cross_entropy: target -4 at (1,) is outside 0 to 4, the 5 classes of logits (2, 5)" +
              fix);
    CHECK(message_of<IndexError>([&] {
              cross_entropy(x, classes({5, 1}));
          }) ==
          "cross_entropy: target 5 at (0,) is outside 0 to 4, the 5 classes of logits (2, 5)" +
              fix);
    const std::int64_t least = std::numeric_limits<std::int64_t>::min();
    CHECK(message_of<IndexError>([&] {
              nll_loss(x, classes({0, least}));
          }) ==
          "nll_loss: target -9223372036854775808 at (1,) is outside 0 to 4, the 5 classes of "
          "logits (2, 5)" +
              fix);
    CHECK(message_of<ShapeError>([&] {
              cross_entropy(x, classes({1, 2, 3}));
          }) ==
          "cross_entropy: targets (3,) do not fit logits (2, 5), they need (2,); class numbers "
          "have the shape of the logits without the axis of the classes; probabilities, in f32 or "
          "f64, their whole shape");
    CHECK(message_of<TypeError>([&] {
              cross_entropy(x, Variable(zeros({2, 5}, f64)));
          }) ==
          "cross_entropy: targets are f64, the logits f32; class numbers are i64, probabilities of "
          "the type of the logits");
    CHECK(message_of<ValueError>([&] {
              cross_entropy(x, classes({1, 2}), {.label_smoothing = 1.5});
          }) == "cross_entropy: label_smoothing 1.5 is outside 0 to 1");
    CHECK(message_of<ShapeError>([&] {
              cross_entropy(x, classes({1, 2}), {.weight = ones({4})});
          }) == "cross_entropy: weight (4,) does not fit the 5 classes of logits (2, 5)");
    CHECK(message_of<ValueError>([&] {
              cross_entropy(x, classes({1, 2}), {.weight = tensor({1.0, 1.0, -2.0, 1.0, 1.0})});
          }) == "cross_entropy: weight -2 of class 2 is negative");
    CHECK(message_of<ShapeError>([&] {
              cross_entropy(parameter(zeros({2, 0})), classes({0, 0}));
          }) == "cross_entropy: logits (2, 0) have no classes");
    CHECK(message_of<TypeError>([&] {
              nll_loss(x, Variable(zeros({2, 5})));
          }) == "nll_loss: targets are f32; class numbers are i64");
}

TEST_CASE("layer norm reduces over all leading axes in its parameters' gradients") {
    const Variable x =
        x64({{{1.69, -0.47, 0.03, 0.41}, {-0.79, 0.0, -0.0, -1.75}, {1.02, 0.6, -0.63, -0.17}},
             {{0.51, -0.26, -0.24, -1.45}, {0.55, 0.12, 0.27, -1.53}, {1.65, 0.15, -0.39, 2.03}}});
    const Tensor gy = tensor(
        {{{-0.05, -1.45, -0.41, -2.29}, {1.05, -0.42, -0.74, 1.07}, {-1.65, 0.54, -2.06, -0.66}},
         {{-1.2, 1.46, 1.77, -0.33}, {0.84, -0.18, 0.57, -0.75}, {-1.71, -1.8, 0.38, 2.25}}},
        f64);
    const Variable weight = parameter(ones({4}, f64));
    const Variable bias = parameter(zeros({4}, f64));
    const auto g = grad({layer_norm(x, weight, bias)}, {x, weight, bias}, {.grad_outputs = {gy}});
    CHECK(close(g[1].value(), tensor({-4.502497405, 2.983268388, 2.340339752, 3.142895941}, f64),
                1e-8));
    CHECK(close(g[2].value(), tensor({-2.72, -1.85, -0.49, -0.71}, f64), 1e-12));
}

TEST_CASE("RMS norm's gradients are those of the formula") {
    const Variable x = x64({1.0, 2.0, 3.0, 4.0});
    const Variable weight = x64({1.0, 0.5, -1.0, 2.0}, "weight");
    const Variable y = rms_norm(x, weight);
    CHECK(
        close(y.value(), tensor({0.365148128, 0.365148128, -1.095444385, 2.921185026}, f64), 1e-6));
    const auto g = grad({y}, {x, weight}, {.grad_outputs = {tensor({1.0, 0.0, -1.0, 0.5}, f64)}});
    CHECK(close(g[0].value(), tensor({0.267775424, -0.194745409, 0.073030015, -0.024342689}, f64),
                1e-6));
    CHECK(close(g[1].value(), tensor({0.365148128, 0.0, -1.095444385, 0.730296256}, f64), 1e-6));
}

TEST_CASE("the derivative of a norm takes any axes, recorded or not") {
    const Tensor x = uneven({2, 3, 4}, -2, 2, 1);
    const Tensor gy = uneven({2, 3, 4}, -1, 1, 2);
    for (const Axes& axes : {Axes(-1), Axes(0), Axes({0, 2}), Axes()}) {
        const NormOptions options{.axes = axes};
        CHECK(close(layer_norm_vjp(x, gy, options),
                    layer_norm_vjp(parameter(x), Variable(gy), options).value(), 1e-12));
        CHECK(close(rms_norm_vjp(x, gy, options),
                    rms_norm_vjp(parameter(x), Variable(gy), options).value(), 1e-12));
    }
}

TEST_CASE("layer norm keeps small differences of large numbers, and divides by n") {
    const Tensor expected = tensor({-1.34163542, -0.447211807, 0.447211807, 1.34163542}, f64);
    for (const double base : {0.0, 40000.0, 1e6}) {
        for (const DType dtype : {f64, f32}) {
            const Tensor x = (arange(0, 4, 1, f64) + base).astype(dtype);
            CHECK(close(layer_norm(x).astype(f64), expected, 1e-5));
        }
    }
    Tensor narrow = Tensor::empty({16}, f32);
    for (std::int64_t i = 0; i < 16; ++i) narrow.set({i}, 10000 + 0.001 * static_cast<double>(i));
    const Tensor y = layer_norm(narrow);
    CHECK(y.at({0}) == Approx(-1.331333352).epsilon(1e-3));
    CHECK(y.at({15}) == Approx(1.331333352).epsilon(1e-3));
    const Tensor tiny = layer_norm(tensor({0.0, 0.0, 0.0, 0.001}, f64));
    CHECK(close(tiny, tensor({-0.078326045, -0.078326045, -0.078326045, 0.234978135}, f64), 1e-8));
}

TEST_CASE("a constant row is normalised to zeros, with finite gradients in both orders") {
    for (const DType dtype : {f64, f32}) {
        const Variable x = parameter(full({2, 3}, 0.7, dtype));
        const Tensor v = tensor({{1.0, -2.0, 0.5}, {0.0, 0.0, 0.0}}, f64).astype(dtype);
        for (const bool root : {false, true}) {
            const Variable y = root ? rms_norm(x * 0.0) : layer_norm(x);
            CHECK(close(y.value(), zeros({2, 3}, dtype), 1e-4));
            const Variable gx = grad({y}, {x}, {.grad_outputs = {v}, .create_graph = true})[0];
            const Tensor second = grad({sum(gx * gx)}, {x})[0].value();
            for (const Tensor& each : {gx.value(), second}) {
                CHECK(sum(not_equal(each, each).astype(i64)).item() == 0);
                CHECK(max(abs(each)).item() < 1e12);
            }
            CHECK(close(slice(gx.value(), 0, {.start = 1}), zeros({1, 3}, dtype), 0));
        }
    }
    CHECK(message_of<ValueError>([] {
              layer_norm(ones({2, 3}), {.eps = 0});
          }) == "layer_norm: eps must be positive, got 0; 1e-5 is usual");
    CHECK(message_of<ShapeError>([] {
              layer_norm(ones({2, 3}), ones({2}), {});
          }) == "layer_norm: weight (2,) does not fit (2, 3), whose axes have the sizes (3,)");
    CHECK(message_of<TypeError>([] {
              rms_norm(ones({2, 3}), ones({3}, f64));
          }) == "rms_norm: weight is f64, x is f32; convert one with astype");
    CHECK(message_of<IndexError>([] { layer_norm(ones({})); }) ==
          "layer_norm: axis -1 does not exist in shape (), which has no axes");
}

TEST_CASE("a layer norm that subtracts a mean twice is rejected") {
    static constexpr OpRow row{
        .name = "wrong_layer_norm", .forward = "y", .backward = "gx = wrong"};
    const auto wrong = [](std::span<const Variable> in) {
        const Variable& x = in[0];
        return record(row, layer_norm(x.value()),
                      edge(
                          x,
                          [](const auto& gy, const auto& a) {
                              const auto right = layer_norm_vjp(a, gy, {});
                              return right - mean(gy, {.axes = {-1}, .keepdims = true});
                          },
                          x));
    };
    const GradcheckReport report = gradcheck(wrong, {parameter(uneven({2, 5}), "x")});
    CHECK(report.verdict == Verdict::failed);
    CHECK(report.worst().input == "x");
}

TEST_CASE("tied weights get both gradients") {
    const Variable W = x64({{0.5, -1.0}, {2.0, 0.25}, {1.0, 1.0}}, "W");
    const Variable hidden = concat({slice(W, 0, {.start = 2}), slice(W, 0, {.stop = 1})});
    const Variable loss = cross_entropy(matmul(hidden, W, {.transpose_b = true}), classes({1, 2}));
    CHECK(loss.item() == Approx(1.469015954).epsilon(1e-9));
    CHECK(close(
        gradient(loss, W),
        tensor(
            {{0.187690609, -0.952964942}, {-0.143490936, -0.399007881}, {-0.25161669, 0.799318201}},
            f64),
        1e-8));
}

TEST_CASE("losses of elements are exact where they are easily lost") {
    const auto one = [](double x, DType dtype) { return parameter(full({}, x, dtype)); };
    for (const DType dtype : {f64, f32}) {
        const auto bce = [&](double x, double t, double loss, double slope) {
            INFO("logit " << x << ", target " << t);
            const Variable logit = one(x, dtype);
            const Variable y = bce_with_logits(logit, Variable(full({}, t, dtype)));
            CHECK(y.item() == loss);
            CHECK(gradient(y, logit).item() == slope);
        };
        bce(1e4, 1, 0, 0);
        bce(1e4, 0, 1e4, 1);
        bce(-1e4, 1, 1e4, -1);
        bce(-1e4, 0, 0, 0);
        bce(inf, 1, 0, 0);
        bce(-inf, 0, 0, 0);
        bce(inf, 0, inf, 1);
        const auto kl = [&](double x, double p, double loss, double slope) {
            const Variable log_q = one(x, dtype);
            const Variable y = kl_div(log_q, Variable(full({}, p, dtype)));
            CHECK(y.item() == loss);
            CHECK(gradient(y, log_q).item() == slope);
        };
        kl(-inf, 0, 0, 0);
        kl(-2, 0, 0, 0);
        kl(-2, 1, 2, -1);
        kl(-inf, 1, inf, -1);
        const Variable p = one(0, dtype);
        const Variable nothing = kl_div(Variable(full({}, -2, dtype)), p);
        CHECK(gradient(nothing, p).item() == 0);
        const Variable log_p = one(-inf, dtype);
        const Variable none_of_it =
            kl_div(Variable(full({}, -2, dtype)), log_p, {.log_target = true});
        CHECK(none_of_it.item() == 0);
        const Variable slope = grad({none_of_it}, {log_p}, {.create_graph = true})[0];
        CHECK(slope.item() == 0);
        CHECK(gradient(slope, log_p).item() == 0);
        // With pos_weight 0 the positive side is nowhere, in the target's gradient neither.
        const Variable share = one(0.5, dtype);
        const Variable negative = bce_with_logits(one(-inf, dtype), share, {.pos_weight = 0});
        CHECK(negative.item() == 0);
        CHECK(gradient(negative, share).item() == 0);

        const Variable x = parameter(tensor({1.0, 3.0, -2.0}, f64).astype(dtype));
        const Variable t(tensor({1.0, 2.0, 2.0}, f64).astype(dtype));
        const auto slopes = [&](const Variable& y) { return gradient(y, x).astype(f64); };
        CHECK(close(slopes(l1_loss(x, t, {.reduction = Reduction::sum})),
                    tensor({0.0, 1.0, -1.0}, f64)));
        CHECK(close(slopes(huber_loss(x, t, {.reduction = Reduction::sum, .delta = 1})),
                    tensor({0.0, 1.0, -1.0}, f64)));
        CHECK(huber_loss(x, t, {.reduction = Reduction::sum, .delta = 1}).item() == 4);
        const Variable none = parameter(zeros({0, 2}, dtype));
        CHECK(mse_loss(none, none).item() == 0);
        CHECK(gradient(mse_loss(none, none), none).shape() == Shape{0, 2});
    }
    CHECK(message_of<ShapeError>([] {
              mse_loss(ones({3, 1}), ones({3}));
          }) ==
          "mse_loss: x (3, 1) and target (3,) have different shapes; reshape one of them; a loss "
          "does not broadcast");
    CHECK(message_of<TypeError>([] { l1_loss(ones({3}), ones({3}, f64)); }) ==
          "l1_loss: x is f32, the target f64; convert one with astype");
    CHECK(message_of<TypeError>([] { mse_loss(arange(3), arange(3)); }) ==
          "mse_loss: needs a floating tensor, got i64; convert with astype(f32) or astype(f64)");
    CHECK(message_of<ValueError>([] { huber_loss(ones({3}), ones({3}), {.delta = 0}); }) ==
          "huber_loss: delta must be positive, got 0");
}
