// Models in files: Hugging Face's names and layouts, .safetensors with a configuration, llama2.c's.

#include "layers/support/model_cases.hpp"
#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/manifest.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <glassgrad/layers.hpp>
#include <glassgrad/tensor/safetensors.hpp>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

using namespace glassgrad;
using namespace glassgrad::testing;
using glassgrad_tests::text_of;

namespace {

const GptConfig gpt_config{.vocab_size = 13,
                           .context_length = 9,
                           .d_model = 12,
                           .num_layers = 2,
                           .num_heads = 3,
                           .d_ff = 20};
const LlamaConfig llama_config{.vocab_size = 13,
                               .context_length = 9,
                               .d_model = 16,
                               .num_layers = 2,
                               .num_heads = 4,
                               .num_kv_heads = 2,
                               .d_ff = 10};

/// Weights large enough for differences to show.
template <class Model, class Config>
std::unique_ptr<Model> make(const Config& config, DType dtype = f64) {
    RandomState rng(5);
    auto model = std::make_unique<Model>(config, rng, ModelOptions{.dtype = dtype});
    for (const auto& [name, x] : model->named_parameters()) {
        if (x.rank() == 2) init::normal(x, rng, 0, 0.5);
    }
    return model;
}

Tensor some_ids() { return tensor({{1, 5, 9, 2, 11}}, i64); }

template <class Model>
double difference(const Model& a, const Model& b) {
    return max(abs(a(some_ids()).value() - b(some_ids()).value())).item();
}

}  // namespace

TEST_CASE("weights under Hugging Face's names give the logits that PyTorch computes with them") {
    const auto state_of = [](const nlohmann::json& each) {
        StateDict state;
        for (const auto& [name, sizes] : each["shapes"].items()) {
            state.emplace_back(name, value(name, shape_of(sizes)));
        }
        return state;
    };
    const auto check = [](const auto& model, const nlohmann::json& each) {
        const Tensor logits = model(integers(each["ids"])).value();
        const Tensor wanted = numbers(each["outputs"]["logits"]);
        CHECK(distance(logits, wanted) < 1e-11);
    };
    RandomState rng(1);
    const nlohmann::json& gpt2 = model_cases().at("Hugging Face's gpt2");
    Gpt gpt(gpt_config_from_json(gpt2["config"].dump()), rng, {.dtype = f64});
    gpt.load_state_dict(gpt2_from_hugging_face(state_of(gpt2)));
    check(gpt, gpt2);

    const nlohmann::json& file = model_cases().at("Hugging Face's llama");
    LlamaConfig config = llama_config_from_json(file["config"].dump());
    for (const RotaryPairing pairing : {RotaryPairing::halves, RotaryPairing::neighbours}) {
        config.rotary_pairing = pairing;
        Llama llama(config, rng, {.dtype = f64});
        llama.load_state_dict(llama_from_hugging_face(state_of(file), config));
        check(llama, file);
    }
}

TEST_CASE("GPT-2's names and Conv1D weights become ours and go back") {
    const auto model = make<Gpt>(gpt_config);
    const StateDict ours = model->state_dict();
    const StateDict theirs = gpt2_to_hugging_face(ours);
    const auto find = [](const StateDict& state, std::string_view name) {
        for (const auto& [each, x] : state) {
            if (each == name) return x;
        }
        return Tensor();
    };
    // Conv1D is x W + b with W (in, out); c_attn has queries, keys and values side by side.
    const Tensor x = RandomState(3).randn({2, 12});
    const Tensor c_attn = find(theirs, "transformer.h.1.attn.c_attn.weight");
    REQUIRE(c_attn.shape() == Shape{12, 36});
    const Tensor keys =
        slice(matmul(x, c_attn), 1, {.start = 12, .stop = 24}) +
        slice(find(theirs, "transformer.h.1.attn.c_attn.bias"), 0, {.start = 12, .stop = 24});
    CHECK(max(abs(keys - model->blocks[1].self_attn.k_proj(x).value())).item() < 1e-14);
    const Tensor square = find(theirs, "transformer.h.0.attn.c_proj.weight");
    CHECK(square.at({2, 5}) == model->blocks[0].self_attn.out_proj.weight.value().at({5, 2}));
    CHECK(find(theirs, "transformer.h.0.mlp.c_fc.weight").shape() == Shape{12, 20});
    CHECK_FALSE(find(theirs, "lm_head.weight").defined());

    StateDict file = theirs;
    file.emplace_back("transformer.h.0.attn.bias", ones({1, 1, 9, 9}, boolean));
    file.emplace_back("h.1.attn.masked_bias", full({}, -1e4, f64));
    RandomState rng(9);
    Gpt other(gpt_config, rng, {.dtype = f64});
    other.load_state_dict(gpt2_from_hugging_face(file));
    CHECK(difference(other, *model) == 0);

    file.emplace_back("h.0.attn.rotary.weight", x);
    file.emplace_back("h.7.mlp.c_fc.weight", ones({3}));
    CHECK(text_of<ValueError>([&] { gpt2_from_hugging_face(file); }) ==
          "gpt2_from_hugging_face: unexpected h.0.attn.rotary.weight; h.7.mlp.c_fc.weight is (3,), "
          "not (in, out)");
    StateDict part = ours;
    std::erase_if(part,
                  [](const auto& each) { return each.first == "blocks.0.self_attn.k_proj.bias"; });
    CHECK_THAT(text_of<ValueError>([&] { gpt2_to_hugging_face(part); }),
               Catch::Matchers::StartsWith("gpt2_to_hugging_face: blocks.0.self_attn.q_proj.bias "
                                           "needs q_proj, k_proj and v_proj beside it"));
}

TEST_CASE("a Conv1D weight is told by its layer, not by its shape") {
    const StateDict file = {
        {"h.0.mlp.c_fc.weight", tensor({{1., 2., 3., 4.}, {0., -1., .5, 2.}, {5., 0., 1., -2.}})},
        {"h.0.attn.c_proj.weight", tensor({{1, 2}, {3, 4}})}};
    const StateDict ours = gpt2_from_hugging_face(file);
    REQUIRE(ours[0].first == "blocks.0.linear1.weight");
    const Tensor y = matmul(tensor({{1, 2, -1}}), ours[0].second, {.transpose_b = true});
    CHECK(allclose(y, tensor({{-4, 0, 3, 10}})));
    CHECK(allclose(ours[1].second, tensor({{1, 3}, {2, 4}})));
}

TEST_CASE("LLaMA's names become ours, in either rotary layout, with the same logits") {
    const Tensor ids = some_ids();
    LlamaConfig halves = llama_config;
    halves.rotary_pairing = RotaryPairing::halves;
    const auto model = make<Llama>(llama_config);
    const Tensor wanted = (*model)(ids).value();
    StateDict theirs = llama_to_hugging_face(model->state_dict(), llama_config);
    theirs.emplace_back("model.layers.0.self_attn.rotary_emb.inv_freq", ones({2}));
    for (const LlamaConfig& config : {llama_config, halves}) {
        RandomState rng(2);
        Llama other(config, rng, {.dtype = f64});
        other.load_state_dict(llama_from_hugging_face(theirs, config));
        CHECK(max(abs(other(ids).value() - wanted)).item() < 1e-12);
    }
    // Without the permutation the logits are others.
    RandomState rng(2);
    Llama wrong(halves, rng, {.dtype = f64});
    wrong.load_state_dict(model->state_dict());
    CHECK(max(abs(wrong(ids).value() - wanted)).item() > 1e-3);
    CHECK(
        text_of<ValueError>([&] {
            llama_from_hugging_face({{"model.layers.x.mlp.up_proj.weight", ones({2, 2})}}, halves);
        }) == "llama_from_hugging_face: unexpected model.layers.x.mlp.up_proj.weight");
}

TEST_CASE("rows that are no such number of heads are refused, however many there shall be") {
    const StateDict state{{"blocks.0.self_attn.q_proj.weight", ones({4, 4}, f64)}};
    for (const std::int64_t heads : {std::int64_t{0}, std::int64_t{4}, std::int64_t{1} << 62,
                                     std::numeric_limits<std::int64_t>::max()}) {
        CHECK_THROWS_AS(llama_to_hugging_face(state, {.num_heads = heads}), ShapeError);
    }
}

TEST_CASE("a model comes back from its file, in its type, with tied weights stored once") {
    const TemporaryFolder folder;
    const std::string path = folder / "gpt.safetensors";
    for (const DType dtype : {f32, f64}) {
        const auto model = make<Gpt>(gpt_config, dtype);
        save_model(path, *model);
        const auto loaded = load_gpt(path);
        CHECK(loaded->config == model->config);
        CHECK(loaded->embedding.weight.dtype() == dtype);
        CHECK(difference(*model, *loaded) == 0);
        CHECK(loaded->head.weight.same_as(loaded->embedding.weight));
        const SafetensorsReader reader(path);
        CHECK(reader.contains("embedding.weight"));
        CHECK_FALSE(reader.contains("head.weight"));
    }
    GptConfig config = gpt_config;
    config.d_ff = 0;
    CHECK(make<Gpt>(config)->config.d_ff == 48);
    const auto other = make<Gpt>(gpt_config, f32);
    CHECK_THAT(text_of<ValueError>([&] { load_model(path, *other); }),
               Catch::Matchers::ContainsSubstring("embedding.weight is f64 (13, 12)"));
}

TEST_CASE("a file says its rotary layout, and a model of the other one gets converted rows") {
    const TemporaryFolder folder;
    const std::string path = folder / "llama.safetensors";
    const auto model = make<Llama>(llama_config);
    save_model(path, *model);
    CHECK(difference(*model, *load_llama(path)) == 0);
    LlamaConfig halves = llama_config;
    halves.rotary_pairing = RotaryPairing::halves;
    halves.dropout = .1;
    const auto other = make<Llama>(halves);
    other->eval();
    load_model(path, *other);
    CHECK(difference(*model, *other) < 1e-12);
    save_model(path, *other);
    const auto back = make<Llama>(llama_config);
    load_model(path, *back);
    CHECK(difference(*model, *back) == 0);

    SafetensorsFile file = load_safetensors(path);
    const auto says = [&](const auto& change) {
        auto metadata = file.metadata;
        change(metadata);
        save_safetensors(path, file.tensors, metadata);
        return text_of<FileError>([&] { load_llama(path); });
    };
    CHECK(says([](auto& metadata) {
              std::erase_if(metadata, [](const auto& each) { return each.first == "rotary"; });
          }) == "load_model: '" + path + "' does not say its rotary layout in its metadata");
    CHECK_THAT(says([](auto& metadata) {
                   for (auto& [key, text] : metadata) {
                       if (key == "rotary") text = "neighbours";
                   }
               }),
               Catch::Matchers::ContainsSubstring("contradicts itself: the rotary layout is "
                                                  "'neighbours' in its metadata and 'halves'"));
}

TEST_CASE("a file that is no model, or of another one, is refused before anything changes") {
    const TemporaryFolder folder;
    const std::string path = folder / "model.safetensors";
    const auto model = make<Gpt>(gpt_config);
    save_model(path, *model);
    GptConfig config = gpt_config;
    config.num_heads = 4;
    const auto other = make<Gpt>(config);
    CHECK(text_of<ValueError>([&] { load_model(path, *other); }) ==
          "load_model: '" + path +
              "' is of another configuration: \"num_heads\":3, the model has "
              "\"num_heads\":4; nothing was loaded");

    const StateDict state = model->state_dict({.repeat_tied = false});
    const auto says = [&](const StateDict& tensors,
                          const std::vector<std::pair<std::string, std::string>>& metadata) {
        save_safetensors(path, tensors, metadata);
        const std::string text = text_of<FileError>([&] { load_gpt(path); });
        return text.substr(text.find(path) + path.size() + 2);
    };
    CHECK(says(state, {}) ==
          "has no configuration in its metadata; for Hugging Face's files there are "
          "load_safetensors and gpt2_from_hugging_face or llama_from_hugging_face");
    CHECK_THAT(says(state, {{"config", "{}"}}),
               Catch::Matchers::StartsWith("has a wrong configuration: gpt_config: line 1"));
    config = gpt_config;
    config.num_layers = 2000000000;
    CHECK_THAT(
        says(state, {{"config", to_json(config)}}),
        Catch::Matchers::ContainsSubstring("less than its configuration of 2000000000 layers"));
    config = gpt_config;
    config.vocab_size = 2000000000;
    CHECK_THAT(says(state, {{"config", to_json(config)}}),
               Catch::Matchers::ContainsSubstring("less than its configuration"));
    StateDict mixed = state;
    mixed[1].second = mixed[1].second.astype(f32);
    CHECK_THAT(says(mixed, {{"config", to_json(gpt_config)}}),
               Catch::Matchers::EndsWith("position.weight is f32"));
}

TEST_CASE("llama2.c's models give the logits of their manifest") {
    const auto check = [](const ManifestFile& file) {
        if (!file.valid || !file.expect.contains("logits_last")) return false;
        const auto model = load_llama2c(file.path);
        const auto tokens = file.expect["tokens"].get<std::vector<std::int64_t>>();
        const Tensor logits =
            (*model)(from_span<std::int64_t>(tokens, {1, std::int64_t(tokens.size())})).value();
        const Tensor wanted = from_values(file.expect["logits_last"].get<std::vector<double>>(),
                                          {logits.size(-1)}, f32);
        const Tensor last = select(select(logits, 0, 0), 0, -1);
        CHECK(max(abs(last - wanted)).item() < file.expect["tolerance_f32"].get<double>());
        return true;
    };
    const std::size_t count = for_each_file("llama2c", check);
    CHECK((count == 0 || count == 2));
}
