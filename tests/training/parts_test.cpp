// Clipping, the tree of micro-batches, averages, early stop, the search for a rate, refusals.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/training.hpp>

#include <cmath>
#include <cstring>
#include <limits>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

Variable with_grad(const Tensor& gradient) {
    Variable x = parameter(zeros(gradient.shape(), gradient.dtype()), "x");
    x.set_grad(gradient);
    return x;
}

}  // namespace

TEST_CASE("clipping by norm scales all gradients alike, and leaves zeros") {
    const std::vector<Variable> both{with_grad(tensor({3.}, f64)), with_grad(tensor({4.}, f64)),
                                     parameter(zeros({2}, f64), "no gradient")};
    CHECK(clip_grad_norm(both, 10) == 5);
    CHECK(both[0].grad().item() == 3);
    CHECK(clip_grad_norm(both, 1) == 5);
    CHECK(both[0].grad().item() == Approx(0.6).epsilon(2e-6));
    CHECK(both[1].grad().item() == Approx(0.8).epsilon(2e-6));
    const std::vector<Variable> nothing{with_grad(zeros({2}))};
    CHECK(clip_grad_norm(nothing, 1) == 0);
    CHECK(max(abs(nothing[0].grad())).item() == 0);
    // No overflow of f32 squares, and none of f64's.
    const std::vector<Variable> large{with_grad(full({4}, 3e38))};
    CHECK(grad_norm(large) == Approx(6e38));
    const std::vector<Variable> huge{with_grad(full({4}, 1e308, f64)),
                                     with_grad(full({1}, 1e-320, f64))};
    CHECK(clip_grad_norm(huge, 2) == std::numeric_limits<double>::infinity());
    CHECK(huge[0].grad().values<double>()[0] == 1e308);
    const std::vector<Variable> wide{with_grad(full({4}, 2e307, f64))};
    CHECK(clip_grad_norm(wide, 2) == Approx(4e307));
    CHECK(wide[0].grad().values<double>()[0] == Approx(1));
    const std::vector<Variable> bad{with_grad(tensor({1., NAN}, f64))};
    CHECK(std::isnan(clip_grad_norm(bad, 1)));
    CHECK(bad[0].grad().values<double>()[0] == 1);
    // An infinity before a NaN doesn't hide it, and who is listed twice is scaled once.
    const std::vector<Variable> worse{with_grad(full({2}, INFINITY)), with_grad(full({3}, NAN))};
    CHECK(std::isnan(grad_norm(worse)));
    const Variable twice = with_grad(tensor({3.}, f64));
    CHECK(clip_grad_norm({twice, twice}, 1) == Approx(3 * std::sqrt(2)));
    CHECK(twice.grad().item() == Approx(std::sqrt(0.5)).epsilon(2e-6));
    const std::vector<Variable> tiny{with_grad(full({4}, 1e-200, f64))};
    CHECK(grad_norm(tiny) == Approx(2e-200));
    CHECK(text_of<ValueError>([&] { clip_grad_norm(both, 0); }) ==
          "clip_grad_norm: max_norm 0 must be positive");
    clip_grad_value(both, 0.7);
    CHECK(both[1].grad().item() == 0.7);
}

TEST_CASE("the tree of micro-batches has the same bits however passes are cut") {
    RandomState rng(3);
    for (const std::int64_t count : {1, 2, 3, 5, 8}) {
        std::vector<Tensor> parts;
        for (std::int64_t i = 0; i < count; ++i) parts.push_back(rng.randn({7}, {.dtype = f32}));
        // The tree, written out by halves.
        const std::function<Tensor(std::int64_t, std::int64_t)> tree = [&](std::int64_t begin,
                                                                           std::int64_t end) {
            if (end - begin == 1) return parts[static_cast<std::size_t>(begin)];
            std::int64_t half = 1;
            while (2 * half < end - begin) half *= 2;
            return tree(begin, begin + half) + tree(begin + half, end);
        };
        Variable x = parameter(zeros({7}), "x");
        Variable unused = parameter(zeros({2}), "unused");
        GradientTree sum({x, unused});
        for (std::int64_t i = 0; i < count; ++i) {
            x.set_grad(parts[static_cast<std::size_t>(i)]);
            sum.add(i);
            CHECK_FALSE(x.has_grad());
        }
        sum.finish();
        const Tensor whole = tree(0, count);
        CHECK(std::memcmp(x.grad().bytes(), whole.bytes(), 7 * sizeof(float)) == 0);
        CHECK_FALSE(unused.has_grad());
        CHECK(sum.count() == 0);
    }
    GradientTree sum({parameter(zeros({1}), "x")});
    CHECK(text_of<ValueError>([&] { sum.add(1); }) ==
          "gradient_tree: micro-batch 1 comes where 0 is due");
}

TEST_CASE("an average of weights follows, is swapped in and out, and survives saving") {
    RandomState rng(3);
    Linear model(2, 1, rng, {.bias = false, .dtype = f64});
    model.weight.set_value(tensor({{1., 2.}}, f64));
    WeightAverage average(model, 0.9);
    model.weight.set_value(tensor({{3., 4.}}, f64));
    average.update();  // a warm-up: decay 2/11
    average.swap();
    CHECK(model.weight.value().values<double>()[0] == Approx(1 * 2. / 11 + 3 * 9. / 11));
    CHECK(text_of<GraphError>([&] { average.update(); }) ==
          "weight_average: the averages are in the model; swap() before the next step");
    average.swap();
    CHECK(model.weight.value().values<double>()[0] == 3);
    WeightAverage other(model, 0.9);
    other.load_state_dict(average.state_dict());
    other.swap();
    CHECK(model.weight.value().values<double>()[1] == Approx(2 * 2. / 11 + 4 * 9. / 11));
    CHECK(text_of<ValueError>([&] { average.load_state_dict({}); }) ==
          "weight_average: load_state_dict: missing updates; missing weight; nothing was loaded");
}

TEST_CASE("an early stop bears a number of evaluations that are no better") {
    EarlyStop stop({.patience = 2, .min_delta = 0.1});
    const std::vector<double> losses{3, 2, 1.95, NAN, 1.5, 1.45, 1.45, 1.45};
    std::vector<bool> ends;
    for (const double loss : losses) ends.push_back(stop.next(loss));
    CHECK(ends == std::vector<bool>{false, false, false, false, false, false, false, true});
    CHECK(stop.state().best == 1.5);
}

TEST_CASE("the search for a rate suggests where a quadratic falls fastest") {
    double w = 10;
    const LrFinding found = find_lr(
        [&](double lr) {
            const double loss = w * w;
            w -= lr * 2 * w;
            return loss;
        },
        {.first = 1e-4, .last = 10, .steps = 80});
    CHECK(found.suggestion > 0.01);
    CHECK(found.suggestion < 1);
    CHECK(found.rates.size() < 80);  // it ended where the loss exploded

    // A fall from a jump, beyond the least loss, is none.
    int at = 0;
    const double losses[] = {5, 4.5, 3, 2.5, 9, 3, 8};
    const LrFinding jumps = find_lr([&](double) { return losses[at++]; },
                                    {.first = 1e-3, .last = 1, .steps = 7, .smoothing = 0});
    CHECK(jumps.losses.size() == 7);
    CHECK(jumps.suggestion == Approx(0.01));
}

TEST_CASE("optimizers refuse what they cannot train, and change nothing then") {
    RandomState rng(3);
    Linear model(2, 3, rng, {.dtype = f64});
    const auto refusal = [&](auto make) { return text_of<ValueError>(make); };
    CHECK(refusal([&] { AdamW(model, {.lr = -1}); }) ==
          "adamw: lr -1 must be finite and not negative");
    CHECK(refusal([&] { Adam(model, {.beta2 = 1}); }) == "adam: beta2 1 is outside 0 to 1");
    CHECK(refusal([&] { SGD(model, {.nesterov = true}); }) ==
          "sgd: Nesterov's form needs a momentum and no dampening");
    CHECK(refusal([&] {
              SGD(std::vector<ParameterGroup>{{{{"a", model.weight}, {"b", model.weight}}}});
          }) == "sgd: the parameter 'b' is listed twice");
    CHECK(text_of<GraphError>([&] {
              SGD(std::vector<ParameterGroup>{{{{"a", Variable(ones({2}))}}}});
          }) == "sgd: 'a' is no parameter that wants a gradient");

    Muon muon(decay_matrices(model, 0));
    model.weight.set_grad(ones({3, 2}, f64));
    model.bias.set_grad(ones({3}, f64));
    const Tensor before = model.weight.value();
    CHECK(text_of<ShapeError>([&] { muon.step(); }) ==
          "muon: 'bias' (3,) is not a matrix; give vectors to AdamW");
    CHECK(allclose(model.weight.value(), before, {.rtol = 0, .atol = 0}));

    AdamW adamw(model);
    CHECK(text_of<ValueError>([&] {
              adamw.load_state_dict({{"steps", zeros({}, i64)},
                                     {"updates.weight", ones({}, i64)},
                                     {"exp_avg.weight", ones({3, 2})},
                                     {"exp_avg_sq.weight", ones({3, 2}, f64)},
                                     {"other", ones({})}});
          }) ==
          "adamw: load_state_dict: exp_avg.weight is f32 (3, 2), not f64 (3, 2); missing "
          "updates.bias; unexpected other; nothing was loaded");
    model.set_requires_grad(false);
    CHECK(refusal([&] { AdamW{model}; }) ==
          "adamw: there are no parameters to update; frozen ones are left out");
}
