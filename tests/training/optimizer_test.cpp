// Optimizers and schedules against PyTorch's, step for step.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/training.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <limits>
#include <memory>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

nlohmann::json cases() {
    std::ifstream file(GLASSGRAD_TEST_DATA "/training/optimizer_cases.json");
    return nlohmann::json::parse(file);
}

/// The parameters that the script describes.
struct Model : Module {
    explicit Model(const Shape& shape = {3, 4}, bool vector = true) {
        w = register_parameter("w", reshape(sin(arange(1, 13).astype(f64)), shape));
        if (vector) b = register_parameter("b", cos(scale(arange(5).astype(f64), 2)));
    }
    void set_gradients(std::int64_t t) {
        for (Variable& each : parameters()) {
            const Tensor i = reshape(arange(each.numel()).astype(each.dtype()), each.shape());
            const Tensor at = full({}, 0.3 * static_cast<double>(t), each.dtype());
            each.set_grad(sin(scale(i, 0.7) + at) + scale(each.value(), 0.1));
        }
    }
    Variable w;
    Variable b;
};

using Make = std::function<std::unique_ptr<Optimizer>(Model&)>;

template <class O, class... Options>
Make of(const Options&... options) {
    return [=](Model& model) { return std::make_unique<O>(model, options...); };
}

void check_run(const nlohmann::json& expected, Model& model, const Make& make) {
    const auto optimizer = make(model);
    std::size_t kept = 0;
    for (std::int64_t t = 0; t < 100; ++t) {
        model.set_gradients(t);
        optimizer->step();
        if (t + 1 != 1 && t + 1 != 10 && t + 1 != 100) continue;
        const auto parameters = model.parameters();
        for (std::size_t p = 0; p < parameters.size(); ++p) {
            const auto values = parameters[p].value().values<double>();
            const auto& wanted = expected[kept][p];
            REQUIRE(values.size() == wanted.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
                CAPTURE(t, p, i);
                CHECK(std::abs(values[i] - wanted[i].get<double>()) < 1e-12);
            }
        }
        ++kept;
    }
}

void check_schedule(const nlohmann::json& expected, const Schedule& schedule) {
    for (std::size_t step = 0; step < expected.size(); ++step) {
        CAPTURE(step);
        CHECK(schedule(static_cast<std::int64_t>(step)) ==
              Approx(expected[step].get<double>()).epsilon(1e-11));
    }
}

}  // namespace

TEST_CASE("optimizers go where PyTorch's go, over a hundred steps") {
    const nlohmann::json expected = cases()["optimizers"];
    const std::vector<std::pair<std::string, Make>> all{
        {"sgd", of<SGD>(SgdOptions{.lr = 0.1})},
        {"sgd decay", of<SGD>(SgdOptions{.lr = 0.1, .weight_decay = 0.3})},
        {"sgd momentum", of<SGD>(SgdOptions{.lr = 0.03, .momentum = 0.9, .dampening = 0.2})},
        {"sgd nesterov",
         of<SGD>(SgdOptions{.lr = 0.03, .momentum = 0.8, .weight_decay = 0.1, .nesterov = true})},
        {"adam", of<Adam>(AdamOptions{.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6})},
        {"adam decay", of<Adam>(AdamOptions{.lr = 0.02, .weight_decay = 0.3})},
        {"adamw", of<AdamW>(AdamOptions{.lr = 0.02, .beta2 = 0.99, .weight_decay = 0.3})},
        {"adamw groups",
         [](Model& model) {
             std::vector<ParameterGroup> groups = decay_matrices(model, 0.3);
             groups[1].lr_scale = 2;
             return std::make_unique<AdamW>(groups, AdamOptions{.lr = 0.02});
         }},
        {"lion",
         of<Lion>(LionOptions{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.98, .weight_decay = 0.3})},
    };
    for (const auto& [name, make] : all) {
        CAPTURE(name);
        Model model;
        check_run(expected[name], model, make);
    }
    const auto muon = [](const MuonOptions& options) {
        return [=](Model& model) {
            return std::make_unique<Muon>(decay_matrices(model, options.weight_decay), options);
        };
    };
    Model wide({3, 4}, false);
    check_run(expected["muon"], wide, muon({.weight_decay = 0.3}));
    Model tall({4, 3}, false);
    check_run(expected["muon tall"], tall, muon({.momentum = 0.9, .nesterov = false}));
}

TEST_CASE("a scale of the gradients is what clipping before does") {
    const auto muon = [](Model& model) {
        return std::make_unique<Muon>(decay_matrices(model, 0.1), MuonOptions{});
    };
    const std::vector<std::pair<std::string, Make>> all{
        {"sgd", of<SGD>(SgdOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.3})},
        {"adam", of<Adam>(AdamOptions{.lr = 0.02, .weight_decay = 0.3})},
        {"adamw", of<AdamW>(AdamOptions{.lr = 0.02, .weight_decay = 0.3})},
        {"lion", of<Lion>(LionOptions{.lr = 0.01})},
        {"muon", muon},
    };
    for (const auto& [name, make] : all) {
        CAPTURE(name);
        Model clipped({3, 4}, name != "muon");
        Model scaled({3, 4}, name != "muon");
        const auto one = make(clipped);
        const auto other = make(scaled);
        for (std::int64_t t = 0; t < 5; ++t) {
            clipped.set_gradients(t);
            clip_grad_norm(clipped.parameters(), 0.5);
            one->step();
            scaled.set_gradients(t);
            const double norm = grad_norm(scaled.parameters());
            REQUIRE(norm > 0.5);
            other->step({.grad_scale = clip_scale(norm, 0.5)});
            CHECK(grad_norm(scaled.parameters()) == norm);
            for (std::size_t i = 0; i < clipped.parameters().size(); ++i) {
                const Tensor a = clipped.parameters()[i].value();
                CHECK(max(abs(a - scaled.parameters()[i].value())).item() < 1e-14);
            }
        }
        // The steps of Lion and Muon hardly see a scale; what they keep does.
        const StateDict kept = one->state_dict();
        const StateDict other_kept = other->state_dict();
        REQUIRE(kept.size() == other_kept.size());
        for (std::size_t k = 0; k < kept.size(); ++k) {
            const Tensor a = kept[k].second.astype(f64);
            CHECK(max(abs(a - other_kept[k].second.astype(f64))).item() < 1e-14);
        }
        CHECK(text_of<ValueError>([&] {
                  other->step({.grad_scale = NAN});
              }).ends_with("grad_scale nan must be finite and not negative"));
    }
    CHECK(clip_scale(4, 5) == 1);
    CHECK(clip_scale(INFINITY, 5) == 1);
    CHECK(clip_scale(NAN, 5) == 1);
    CHECK(clip_scale(0, 5) == 1);
    CHECK(text_of<ValueError>([] { clip_scale(1, 0); }) ==
          "clip_scale: max_norm 0 must be positive");
}

TEST_CASE("AdamW in f32 is within rounding of f64, and decays the old value by the rate") {
    // w 1, gradients .5, -.25, .125, lr .1, decay .1.
    for (const DType dtype : {f64, f32}) {
        Model model({3, 4}, false);
        model.to(dtype);
        model.w.set_value(full({3, 4}, 1, dtype));
        AdamW optimizer(model, {.lr = 0.1, .weight_decay = 0.1});
        const double tolerance = dtype == f64 ? 1e-9 : 1e-6;
        for (const auto& [gradient, expected] :
             {std::pair{0.5, 0.8900000020}, {-0.25, 0.8544662987}, {0.125, 0.8118787219}}) {
            model.w.set_grad(full({3, 4}, gradient, dtype));
            optimizer.step();
            CHECK(std::abs(max(model.w.value()).item() - expected) < tolerance);
        }
    }
}

TEST_CASE("Muon's direction has singular values near 1") {
    RandomState rng(3);
    for (const Shape& shape : {Shape{5, 8}, Shape{8, 5}, Shape{4, 4}}) {
        const Tensor u = Muon::orthogonal(rng.randn(shape), 5);
        const bool tall = shape[0] > shape[1];
        const Tensor gram = matmul(u, u, {.transpose_a = tall, .transpose_b = !tall});
        const std::int64_t n = gram.shape()[0];
        for (std::int64_t i = 0; i < n; ++i) {
            const double diagonal = gram.values<double>()[static_cast<std::size_t>(i * n + i)];
            CHECK(diagonal > 0.3);
            CHECK(diagonal < 1.6);
        }
    }
}

TEST_CASE("a run that is taken up goes on with the same bits") {
    const auto run = [](std::int64_t cut) {
        Model model;
        auto optimizer = std::make_unique<AdamW>(model, AdamOptions{.lr = 0.02});
        for (std::int64_t t = 0; t < 12; ++t) {
            if (t == cut) {
                const StateDict weights = model.state_dict();
                const StateDict state = optimizer->state_dict();
                optimizer = std::make_unique<AdamW>(model, AdamOptions{.lr = 0.02});
                model.load_state_dict(weights);
                optimizer->load_state_dict(state);
                CHECK(optimizer->steps() == t);
            }
            model.set_gradients(t);
            if (t < 3) model.b.zero_grad();  // its state comes later
            optimizer->step();
        }
        return model.state_dict();
    };
    const StateDict whole = run(-1);
    for (const std::int64_t cut : {0, 2, 7}) {
        const StateDict resumed = run(cut);
        for (std::size_t i = 0; i < whole.size(); ++i) {
            CHECK(allclose(whole[i].second, resumed[i].second, {.rtol = 0, .atol = 0}));
        }
    }
}

TEST_CASE("steps write in place and copy only what others hold") {
    Model model;
    AdamW optimizer(model);
    model.set_gradients(0);
    optimizer.step();
    const Tensor kept = model.w.value();
    const double before = kept.values<double>()[0];
    model.set_gradients(1);
    optimizer.step();
    CHECK(kept.values<double>()[0] == before);
    const void* place = model.w.value().bytes();
    model.set_gradients(2);
    optimizer.step();
    CHECK(model.w.value().bytes() != kept.bytes());
    CHECK(model.w.value().bytes() == place);
}

TEST_CASE("schedules are PyTorch's, and warm up in a line") {
    const nlohmann::json expected = cases()["schedules"];
    check_schedule(expected["one_cycle"], one_cycle_schedule({.max_lr = 0.7, .steps = 40}));
    check_schedule(expected["one_cycle early"], one_cycle_schedule({.max_lr = 0.7,
                                                                    .steps = 13,
                                                                    .up_share = 0.2,
                                                                    .first_divisor = 10,
                                                                    .last_divisor = 100}));
    check_schedule(expected["step"], step_schedule({.lr = 0.5, .every = 7, .factor = 0.3}));
    check_schedule(expected["cosine"], cosine_schedule({.lr = 0.5, .last = 0.05, .steps = 30}));
    check_schedule(expected["linear"], linear_schedule({.lr = 0.5, .last = 0.05, .steps = 20}));

    const Schedule warm = cosine_schedule({.lr = 1, .last = 0.1, .steps = 50, .warmup = 4});
    CHECK(warm(0) == Approx(0.2));
    CHECK(warm(3) == Approx(0.8));
    CHECK(warm(4) == 1);
    CHECK(warm(27) == Approx(0.55));
    CHECK(warm(50) == Approx(0.1));
    CHECK(warm(90) == Approx(0.1));
    CHECK(text_of<ValueError>([] { (void)cosine_schedule({.steps = 10, .warmup = 10}); }) ==
          "cosine_schedule: 10 steps with a warm-up of 10; steps must be more than warmup, and "
          "warmup not negative");
}

TEST_CASE("a plateau cuts the rate as PyTorch's does, a NaN counted as no better") {
    const nlohmann::json expected = cases()["plateau"];
    Plateau plateau({.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.05});
    double lr = 0.5;
    for (std::size_t i = 0; i < expected["losses"].size(); ++i) {
        const auto& loss = expected["losses"][i];
        lr = plateau.next(
            lr, loss.is_string() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>());
        CAPTURE(i);
        CHECK(lr == Approx(expected["rates"][i].get<double>()));
    }
}
