// Configurations, generation, refusals.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

#include <algorithm>
#include <functional>
#include <vector>

using namespace glassgrad;
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
const Seq2SeqConfig seq2seq_config{.source_vocab_size = 13,
                                   .target_vocab_size = 13,
                                   .context_length = 9,
                                   .d_model = 12,
                                   .num_encoder_layers = 1,
                                   .num_decoder_layers = 2,
                                   .num_heads = 3,
                                   .d_ff = 20};

/// Weights large enough that the next token is no toss-up.
template <class Model, class Config>
std::unique_ptr<Model> make(const Config& config, std::int64_t seed = 5) {
    RandomState rng(seed);
    auto model = std::make_unique<Model>(config, rng, ModelOptions{.dtype = f64});
    for (const auto& [name, x] : model->named_parameters()) {
        if (x.rank() == 2) init::normal(x, rng, 0, 0.5);
    }
    return model;
}

using Texts = std::vector<std::vector<std::int64_t>>;
const Texts prompts = {{1, 5, 9, 2}, {7}, {3, 3, 12}};

Texts tokens_of(const std::vector<Generation>& rows) {
    Texts texts;
    for (const Generation& row : rows) texts.push_back(row.tokens);
    return texts;
}

const SamplingOptions drawn{.temperature = .8, .top_k = 8, .top_p = .95, .repetition_penalty = 1.2};

/// Greedy and drawn, `run` gives the same with and without a cache, and each row as alone.
void check_generation(
    const std::function<std::vector<Generation>(const Texts&, const GenerateOptions&)>& run) {
    for (const SamplingOptions& sampling : {SamplingOptions{.temperature = 0}, drawn}) {
        const GenerateOptions options{.max_tokens = 5, .sampling = sampling, .seed = 3};
        const Texts together = tokens_of(run(prompts, options));
        GenerateOptions uncached = options;
        uncached.use_cache = false;
        CHECK(tokens_of(run(prompts, uncached)) == together);
        for (std::size_t row = 0; row < prompts.size(); ++row) {
            GenerateOptions alone = options;
            alone.stream = row;
            CHECK(tokens_of(run({prompts[row]}, alone)).front() == together[row]);
        }
        CHECK(together[0] != together[1]);
    }
}

}  // namespace

TEST_CASE("configurations are the same after JSON") {
    GptConfig gpt = gpt_config;
    gpt.bias = false;
    gpt.activation = Activation::silu;
    gpt.norm_eps = 1e-7;
    CHECK(gpt_config_from_json(to_json(gpt)) == gpt);
    LlamaConfig llama = llama_config;
    llama.rotary_pairing = RotaryPairing::halves;
    llama.rotary_base = 500000;
    CHECK(llama_config_from_json(to_json(llama)) == llama);
    CHECK(seq2seq_config_from_json(to_json(seq2seq_config)) == seq2seq_config);
    const EncoderConfig encoder{.vocab_size = 9,
                                .context_length = 7,
                                .d_model = 8,
                                .num_layers = 1,
                                .num_heads = 2,
                                .norm_first = true};
    CHECK(encoder_config_from_json(to_json(encoder)) == encoder);
    CHECK(to_json(llama_config).find("{\n \"architecture\":\"llama\",\n \"vocab_size\":13,") == 0);
}

TEST_CASE("a wrong configuration is refused with its place and the likely fix") {
    const auto read = [](std::string_view text) {
        return text_of<FileError>([&] { gpt_config_from_json(text); });
    };
    CHECK(
        read("{\"vocab_size\": 11,\n \"d_modle\": 4}") ==
        "gpt_config: line 2, column 11: d_modle: there is no such member; did you mean 'd_model'");
    CHECK_THAT(read("{\"zebra\": 1}"), Catch::Matchers::EndsWith("zebra: there is no such member"));
    CHECK(read("{\"vocab_size\": 11}") ==
          "gpt_config: line 1, column 1: the member 'context_length' is missing");
    CHECK_THAT(read("{\"vocab_size\": 11.5}"), Catch::Matchers::StartsWith("gpt_config: line 1, "));
    CHECK_THAT(read("{\"vocab_size\": 1e3}"), Catch::Matchers::StartsWith("gpt_config: line 1, "));
    CHECK_THAT(read("{\"bias\": 1}"), Catch::Matchers::ContainsSubstring("bias"));
    CHECK_THAT(read("{\"activation\": \"swish\"}"),
               Catch::Matchers::ContainsSubstring("gelu_tanh"));
    CHECK_THAT(read("{\"architecture\": \"llama\"}"),
               Catch::Matchers::EndsWith("'llama' is not 'gpt'"));
    CHECK_THAT(read("{\"d_ff\": 1, \"d_ff\": 2}"), Catch::Matchers::ContainsSubstring("d_ff"));
    CHECK_THAT(read("[]"), Catch::Matchers::StartsWith("gpt_config: line 1, "));

    const auto invalid = [](auto config, const auto& change) {
        change(config);
        return text_of<ValueError>([&] { validate(config); });
    };
    CHECK(invalid(gpt_config, [](auto& c) { c.d_model = 10; }) ==
          "gpt: d_model 10 is not a multiple of num_heads 3");
    CHECK(invalid(gpt_config, [](auto& c) { c.vocab_size = 0; }) ==
          "gpt: vocab_size 0 is outside 1 to 2147483647");
    CHECK(invalid(gpt_config, [](auto& c) { c.dropout = 1; }) == "gpt: dropout 1 is not in [0, 1)");
    CHECK(invalid(gpt_config, [](auto& c) { c.norm_eps = 0; }) ==
          "gpt: norm_eps 0 is not a finite number above 0");
    CHECK(invalid(llama_config, [](auto& c) { c.num_kv_heads = 3; }) ==
          "llama: num_heads 4 is not a multiple of num_kv_heads 3");
    CHECK(invalid(llama_config, [](auto& c) { c.d_model = 12; }) ==
          "llama: heads of width 3 (d_model 12 / num_heads 4) have no pairs to rotate");
    CHECK(invalid(seq2seq_config, [](auto& c) { c.target_vocab_size = 4; }) ==
          "seq2seq: vocabularies of 13 and 4 cannot share an embedding; set share_embeddings to "
          "false");
    RandomState rng(1);
    GptConfig config = gpt_config;
    config.num_heads = 5;
    CHECK(text_of<ValueError>([&] { Gpt(config, rng); }) ==
          "gpt: d_model 12 is not a multiple of num_heads 5");
}

TEST_CASE("a model refuses texts that it cannot read, with value, place and bound") {
    const auto gpt = make<Gpt>(gpt_config);
    const auto says = [&](const Tensor& ids, const CausalCall& call = {}) {
        return text_of<Error>([&] { (*gpt)(ids, call); });
    };
    CHECK(says(zeros({1, 10}, i64)) == "gpt: 10 tokens are longer than the context of 9");
    CHECK_THAT(says(tensor({{0, 13, 2}}, i64)), Catch::Matchers::ContainsSubstring("13"));
    CHECK_THAT(says(tensor({{0, -1, 2}}, i64)), Catch::Matchers::ContainsSubstring("-1"));
    CHECK(says(zeros({3}, i64)) ==
          "gpt: ids (3,) are not (batch, tokens); one text is a batch of 1: unsqueeze(ids, 0)");
    CHECK(says(zeros({1, 3}, f32)) == "gpt: ids are f32, not i64");
    CHECK(says(zeros({2, 3}, i64), {.keep = ones({2, 4}, boolean)}) ==
          "gpt: keep is (2, 4), not (2, 3)");
    CHECK(says(zeros({1, 3}, i64), {.positions = tensor({4, 9, 1}, i64)}) ==
          "gpt: position 9 at (1,) is outside the context of 9");
    DecoderCache cache;
    const NoGrad no_grad;
    (*gpt)(zeros({1, 7}, i64), {.cache = &cache});
    CHECK(says(zeros({1, 3}, i64), {.cache = &cache}) ==
          "gpt: 3 tokens after 7 in the cache are longer than the context of 9");
    cache.layers.resize(3);
    CHECK(says(zeros({1, 1}, i64), {.cache = &cache}) ==
          "gpt: the cache is of a model of 3 layers, not 2; a cache belongs to one model and one "
          "text");
}

TEST_CASE("what goes into the blocks and comes out of a model can be hooked and replaced") {
    const auto model = make<Gpt>(gpt_config);
    const Tensor ids = tensor({{1, 5, 9}}, i64);
    const Tensor other = (*model)(tensor({{2, 2, 7}}, i64)).value();
    Variable embedded;
    const auto keep = model->hook_point("embedded", [&](const Variable& x) {
        embedded = x;
        return Variable();
    });
    (*model)(tensor({{2, 2, 7}}, i64));
    model->remove_point_hook(keep);
    model->hook_point("embedded", [&](const Variable&) { return embedded; });
    CHECK(max(abs((*model)(ids).value() - other)).item() == 0);
    CHECK((*model)(ids).name() == "logits");
}

TEST_CASE("a call of a model that throws half way leaves its cache as it was") {
    const auto model = make<Gpt>(gpt_config);
    const Tensor first = tensor({{1, 2}}, i64);
    const Tensor next = tensor({{3}}, i64);
    const NoGrad no_grad;
    DecoderCache cache;
    (*model)(first, {.cache = &cache});
    DecoderCache same = cache;
    const Tensor expected = (*model)(next, {.cache = &same}).value();
    const auto hook = model->blocks[1].hook_point(
        "attended", [](const Variable&) -> Variable { throw ValueError("stop"); });
    CHECK_THROWS_AS((*model)(next, {.cache = &cache}), ValueError);
    model->blocks[1].remove_point_hook(hook);
    CHECK(cache.length() == 2);
    const Tensor again = (*model)(next, {.cache = &cache}).value();
    CHECK(allclose(again, expected, {.rtol = 0, .atol = 0}));
    CHECK_THROWS_AS(model->hook_point("hidden", nullptr), ValueError);
}

TEST_CASE("models give the same text with and without a cache, and in a batch as alone") {
    const auto gpt = make<Gpt>(gpt_config);
    check_generation([&](const Texts& texts, const GenerateOptions& options) {
        return generate(*gpt, texts, options);
    });
    const auto llama = make<Llama>(llama_config);
    check_generation([&](const Texts& texts, const GenerateOptions& options) {
        return generate(*llama, texts, options);
    });
    const auto seq2seq = make<Seq2Seq>(seq2seq_config, 6);
    check_generation([&](const Texts& texts, const GenerateOptions& options) {
        return generate(*seq2seq, texts, 1, options);
    });
}

TEST_CASE("a row ends at a stop token, after max_tokens, or when the context is full") {
    const auto model = make<Llama>(llama_config);
    const GenerateOptions greedy{.sampling = {.temperature = 0}};
    const std::vector<Generation> full = generate(*model, prompts, greedy);
    for (std::size_t row = 0; row < prompts.size(); ++row) {
        CHECK(full[row].reason == FinishReason::context_length);
        CHECK(full[row].tokens.size() == 9 - prompts[row].size() + 1);
    }
    GenerateOptions options = greedy;
    options.max_tokens = 3;
    CHECK(generate(*model, prompts, options)[1].reason == FinishReason::max_tokens);
    CHECK(generate(*model, prompts, options)[1].tokens.size() == 3);
    options.max_tokens = 0;
    CHECK(generate(*model, prompts, options)[2].tokens.empty());
    CHECK(generate(*model, {}, options).empty());

    options = greedy;
    options.stop_tokens = {full[1].tokens[2]};
    const Generation stopped = generate(*model, prompts, options)[1];
    const auto first = std::find(full[1].tokens.begin(), full[1].tokens.end(), full[1].tokens[2]);
    CHECK(stopped.reason == FinishReason::stop_token);
    CHECK(stopped.tokens == std::vector<std::int64_t>(full[1].tokens.begin(), first));
}

TEST_CASE("the seed decides what is drawn, and the callback hears each token with its logits") {
    const auto model = make<Gpt>(gpt_config);
    GenerateOptions options{.max_tokens = 5, .sampling = drawn, .seed = 1};
    const Texts one = tokens_of(generate(*model, prompts, options));
    CHECK(tokens_of(generate(*model, prompts, options)) == one);
    Texts heard(prompts.size());
    options.sampling = {.temperature = 0};
    options.on_token = [&](const GeneratedToken& each) {
        heard[each.row].push_back(each.token);
        CHECK(each.logits.shape() == Shape{13});
        CHECK(argmax(each.logits).item<std::int64_t>() == each.token);
    };
    CHECK(tokens_of(generate(*model, prompts, options)) == heard);
    options.on_token = {};
    options.sampling = drawn;
    options.seed = 2;
    CHECK(tokens_of(generate(*model, prompts, options)) != one);
}

TEST_CASE("generation runs in evaluation, without a graph, and leaves each mode as it was") {
    GptConfig config = gpt_config;
    config.dropout = .5;
    const auto model = make<Gpt>(config);
    model->blocks[1].eval();
    const auto modes = [&] {
        std::vector<bool> list;
        for (const auto& [name, module] : model->named_modules())
            list.push_back(module->training());
        return list;
    };
    const std::vector<bool> before = modes();
    GenerateOptions options{.max_tokens = 4, .sampling = {.temperature = 0}};
    options.on_token = [&](const GeneratedToken&) {
        CHECK_FALSE(model->training());
        CHECK_FALSE(grad_enabled());
    };
    const Texts texts = tokens_of(generate(*model, prompts, options));
    CHECK(modes() == before);
    CHECK(grad_enabled());
    CHECK(tokens_of(generate(*model, prompts, options)) == texts);
    options.on_token = [](const GeneratedToken&) { throw ValueError("enough"); };
    CHECK(text_of<ValueError>([&] { generate(*model, prompts, options); }) == "enough");
    CHECK(modes() == before);
}

TEST_CASE("generation refuses prompts and options that cannot be meant") {
    const auto model = make<Gpt>(gpt_config);
    const auto says = [&](const Texts& texts, const GenerateOptions& options = {}) {
        return text_of<Error>([&] { generate(*model, texts, options); });
    };
    CHECK(says({{1}, {}}) ==
          "generate: prompt 1 is empty; begin with the token that starts a text");
    CHECK(says({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}) ==
          "generate: prompt 0 of 10 tokens is longer than the context of 9");
    CHECK(says({{1}, {2, 13}}) ==
          "generate: token 13 at 1 of prompt 1 is outside the vocabulary of 13");
    CHECK(says({{1}}, {.max_tokens = -1}) == "generate: max_tokens -1 is negative");
    CHECK(
        says({{1}}, {.sampling = {.temperature = -1}}) ==
        "sample_token: temperature -1 is not a finite number from 0 on; 0 takes the most probable "
        "token");
}

TEST_CASE("a tied head gives the gradient of both its uses") {
    RandomState rng(1);
    const Embedding table(3, 2, rng, {.dtype = f64});
    Variable(table.weight).set_value(tensor({{.5, -1.}, {2., .25}, {1., 1.}}, f64));
    const Linear head(table.weight);
    const Variable loss =
        cross_entropy(head(table(tensor({2, 0}, i64))), Variable(tensor({1, 2}, i64)));
    CHECK(loss.item() == Approx(1.469015954).epsilon(1e-9));
    backward(loss);
    CHECK(allclose(
        table.weight.grad(),
        tensor({{.187690609, -.952964942}, {-.143490936, -.399007881}, {-.25161669, .799318201}},
               f64),
        {.rtol = 0, .atol = 1e-9}));
}
