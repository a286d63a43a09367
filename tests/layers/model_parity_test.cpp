// Whole models against their PyTorch twins, from the data of tests/parity/make_model_cases.py, and
// their caches against the whole pass.

#include "layers/support/model_cases.hpp"
#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

#include <cmath>
#include <functional>
#include <map>
#include <memory>

using namespace glassgrad;
using glassgrad_tests::text_of;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

void fill(Module& model) {
    for (auto& [name, x] : model.named_parameters()) {
        const bool tied =
            name == "masked_head.decoder.weight" ||
            (name == "head.weight" && model.parameters().size() < model.named_parameters().size());
        if (!tied) Variable(x).set_value(value(name, x.shape()));
    }
}

std::string config_text(const json& each) { return each["config"].dump(); }

struct Run {
    std::unique_ptr<Module> model;
    std::map<std::string, Variable> outputs;
};

template <class Model, class Config>
Run causal_run(const json& each, const Config& config) {
    RandomState rng(1);
    auto model = std::make_unique<Model>(config, rng, ModelOptions{.dtype = f64});
    fill(*model);
    const Variable logits = (*model)(integers(each["ids"]), {.keep = truths(each["keep"])});
    return {std::move(model), {{"logits", logits}}};
}

Run encoder_run(const json& each) {
    RandomState rng(1);
    auto model = std::make_unique<Encoder>(encoder_config_from_json(config_text(each)), rng,
                                           ModelOptions{.dtype = f64});
    fill(*model);
    const Variable hidden = (*model)(integers(each["ids"]), {.segments = integers(each["segments"]),
                                                             .keep = truths(each["keep"])});
    Run run{nullptr,
            {{"logits", model->token_logits(hidden)}, {"classes", model->class_logits(hidden)}}};
    run.model = std::move(model);
    return run;
}

Run seq2seq_run(const json& each) {
    RandomState rng(1);
    auto model = std::make_unique<Seq2Seq>(seq2seq_config_from_json(config_text(each)), rng,
                                           ModelOptions{.dtype = f64});
    fill(*model);
    const Variable logits =
        (*model)(integers(each["ids"]), integers(each["target_ids"]),
                 {.source_keep = truths(each["keep"]), .target_keep = truths(each["target_keep"])});
    return {std::move(model), {{"logits", logits}}};
}

Run run_of(const json& each) {
    const std::string kind = each["model"];
    if (kind == "gpt") return causal_run<Gpt>(each, gpt_config_from_json(config_text(each)));
    if (kind == "llama") return causal_run<Llama>(each, llama_config_from_json(config_text(each)));
    return kind == "encoder" ? encoder_run(each) : seq2seq_run(each);
}

Variable loss_of(const json& each, const Run& run) {
    const Tensor targets = integers(each["targets"]);
    Variable loss = cross_entropy(run.outputs.at("logits"), Variable(targets));
    if (each.contains("class_targets")) {
        loss = loss +
               cross_entropy(run.outputs.at("classes"), Variable(integers(each["class_targets"])));
    }
    return loss;
}

}  // namespace

TEST_CASE("logits, losses and all gradients of whole models are those of PyTorch, to 1e-11") {
    REQUIRE(model_cases().size() == 10);
    for (const auto& [name, each] : model_cases()) {
        if (!each.contains("grad")) continue;
        INFO(name);
        const Run run = run_of(each);
        for (const auto& [output, x] : run.outputs) {
            INFO(output);
            CHECK(distance(x.value(), numbers(each["outputs"][output])) < 1e-11);
        }
        const Variable loss = loss_of(each, run);
        CHECK(loss.item() == Approx(each["loss"].get<double>()).epsilon(1e-12));
        backward(loss);
        for (const auto& [parameter, wanted] : each["grad"].items()) {
            INFO(parameter);
            CHECK(distance(run.model->parameter_at(parameter).grad(), numbers(wanted)) < 1e-11);
        }
        CHECK(run.model->parameters().size() == each["grad"].size());
    }
}

TEST_CASE("a weight in the wrong layout shows in the logits") {
    const json& each = model_cases().at("gpt, own head");
    const auto changed = [&](const std::string& name, const std::function<Tensor(Tensor)>& f) {
        const Run run = run_of(each);
        Variable x = run.model->parameter_at(name);
        x.set_value(f(x.value()));
        const Variable logits = dynamic_cast<const Gpt&>(*run.model)(
            integers(each["ids"]), {.keep = truths(each["keep"])});
        return distance(logits.value(), numbers(each["outputs"]["logits"]));
    };
    CHECK(changed("blocks.1.self_attn.out_proj.weight", [](const Tensor& x) { return x; }) < 1e-11);
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"}) {
        INFO(name);
        CHECK(changed(std::string("blocks.0.self_attn.") + name + ".weight",
                      [](const Tensor& x) { return transpose(x); }) > 1e-3);
    }
}

TEST_CASE("with a cache the logits are those of the whole pass") {
    for (const char* name :
         {"gpt, tied head", "llama, neighbours", "llama, halves, one key head, tied head"}) {
        INFO(name);
        const json& each = model_cases().at(name);
        const Run run = run_of(each);
        const auto& model = dynamic_cast<const CausalModel&>(*run.model);
        const Tensor ids = integers(each["ids"]);
        const NoGrad no_grad;
        const Tensor whole = model(ids).value();
        DecoderCache cache;
        std::vector<Tensor> parts;
        std::int64_t begin = 0;
        for (const std::int64_t tokens : {2, 1, 1, 1}) {
            const Tensor part = slice(ids, 1, {.start = begin, .stop = begin + tokens});
            parts.push_back(model(part, {.cache = &cache}).value());
            begin += tokens;
            CHECK(cache.length() == begin);
        }
        CHECK(distance(concat(parts, 1), whole) < 1e-13);
    }
}

TEST_CASE("the decoder with a cache gives the logits of the whole pass") {
    for (const char* name : {"seq2seq, shared embedding", "seq2seq, pre-norm"}) {
        INFO(name);
        const json& each = model_cases().at(name);
        const Run run = run_of(each);
        const auto& model = dynamic_cast<const Seq2Seq&>(*run.model);
        const Tensor target = integers(each["target_ids"]), keep = truths(each["keep"]);
        const NoGrad no_grad;
        const Variable memory = model.encode(integers(each["ids"]), keep);
        const Tensor whole = model.decode(target, memory, {.source_keep = keep}).value();
        Seq2SeqCache cache;
        for (std::int64_t i = 0; i < target.size(1); ++i) {
            const Tensor part = slice(target, 1, {.start = i, .stop = i + 1});
            const Tensor logits =
                model.decode(part, memory, {.source_keep = keep, .cache = &cache}).value();
            CHECK(distance(logits, slice(whole, 1, {.start = i, .stop = i + 1})) < 1e-13);
        }
    }
}

TEST_CASE("padding on the left with positions of its own changes nothing for the real tokens") {
    for (const char* name : {"gpt, tied head", "llama, neighbours"}) {
        INFO(name);
        const Run run = run_of(model_cases().at(name));
        const auto& model = dynamic_cast<const CausalModel&>(*run.model);
        const Tensor alone = model(tensor({{4, 9, 2}}, i64)).value();
        const Tensor batch = model(tensor({{8, 1, 0, 3, 5}, {0, 0, 4, 9, 2}}, i64),
                                   {.keep = tensor({{1, 1, 1, 1, 1}, {0, 0, 1, 1, 1}}, boolean),
                                    .positions = tensor({{0, 1, 2, 3, 4}, {0, 0, 0, 1, 2}}, i64)})
                                 .value();
        const Tensor row = slice(slice(batch, 0, {.start = 1}), 1, {.start = 2});
        CHECK(distance(row, alone) < 1e-13);
    }
}

TEST_CASE("what padding holds reaches no real token, not even NaN") {
    for (const char* name : {"gpt, own head", "llama, neighbours"}) {
        INFO(name);
        const Run run = run_of(model_cases().at(name));
        const auto& model = dynamic_cast<const CausalModel&>(*run.model);
        const CausalCall call{.keep = tensor({{0, 0, 1, 1, 1}}, boolean),
                              .positions = tensor({{0, 0, 0, 1, 2}}, i64)};
        const auto real = [&] {
            const Tensor logits = model(tensor({{10, 10, 4, 9, 2}}, i64), call).value();
            return slice(logits, 1, {.start = 2});
        };
        const Tensor before = real();
        Variable table = run.model->parameter_at("embedding.weight");
        Tensor wild = table.value();
        for (std::int64_t i = 0; i < wild.size(1); ++i) wild.set({10, i}, std::nan(""));
        table.set_value(wild);
        CHECK(max(abs(real() - before)).item() == 0);
    }
}

TEST_CASE("a tied head is one tensor with two names: gradients add, and loading keeps it one") {
    const json& each = model_cases().at("gpt, tied head");
    const Run run = run_of(each);
    auto& model = dynamic_cast<Gpt&>(*run.model);
    CHECK(model.head.weight.same_as(model.embedding.weight));
    model.load_state_dict(model.state_dict());
    model.load_state_dict(model.state_dict({.repeat_tied = false}));
    CHECK(model.head.weight.same_as(model.embedding.weight));
    Tensor other = model.embedding.weight.value();
    other.set({2, 3}, 7);
    model.embedding.weight.set_value(other);
    CHECK(model.head.weight.value().at({2, 3}) == 7);

    // As if untied: the embedding's part and the head's part.
    RandomState rng(1);
    GptConfig config = model.config;
    config.tie_head = false;
    Gpt untied(config, rng, {.dtype = f64});
    StateDict state = model.state_dict({.repeat_tied = false});
    state.emplace_back("head.weight", other);
    untied.load_state_dict(state);
    const auto gradient = [&](Gpt& gpt) {
        const Tensor targets = integers(each["targets"]);
        backward(cross_entropy(gpt(integers(each["ids"])), Variable(targets)));
        return gpt.embedding.weight.grad();
    };
    const Tensor tied_gradient = gradient(model);
    const Tensor part = gradient(untied);
    CHECK(distance(tied_gradient, part + untied.head.weight.grad()) < 1e-13);
}
