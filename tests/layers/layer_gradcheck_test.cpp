// Every layer and every kind of block: gradients of inputs and parameters against differences.

#include "support/catch.hpp"

#include <glassgrad/layers.hpp>

#include <functional>
#include <memory>

using namespace glassgrad;

namespace {

struct Row {
    std::string name;
    std::function<GradcheckReport()> check;
    std::size_t checked;  ///< inputs and parameters
};

Variable input(const Shape& shape, const char* name = "x") {
    return parameter(RandomState(static_cast<std::int64_t>(shape.rank()) + 7).randn(shape), name);
}

/// What is added to all keys alike moves no softmax: unless keys are turned, the gradient of
/// k_proj.bias is 0, and a check of it has no power.
void freeze_key_bias(Module& module) {
    for (const auto& [name, x] : module.named_parameters()) {
        if (name.ends_with("k_proj.bias")) Variable(x).set_requires_grad(false);
    }
}

Row layer(std::string name, const std::function<std::unique_ptr<Layer>(RandomState&)>& make,
          std::size_t checked) {
    return {std::move(name),
            [make] {
                RandomState rng(4);
                const auto module = make(rng);
                // Norms start as ones and zeros, which hides a mistake.
                for (Variable each : module->parameters()) init::uniform(each, rng, -1, 1);
                return gradcheck(*module,
                                 [&](std::span<const Variable> in) { return (*module)(in[0]); },
                                 {input({2, 3, 5})});
            },
            checked};
}

Row feed_forward(Activation activation, bool gated) {
    return layer(
        std::string(name(activation)) + (gated ? ", gated" : ""),
        [=](RandomState& rng) {
            return std::make_unique<FeedForward>(
                FeedForwardOptions{
                    .d_model = 5, .d_ff = 4, .activation = activation, .gated = gated},
                rng);
        },
        gated ? 7 : 5);
}

/// Batch 2, queries 3, keys 4 of width 5, values of width 3, 4 heads in 2 groups, width 8.
Row attention(std::string name, MultiHeadAttentionOptions options, const Mask& mask,
              std::size_t checked, bool every_step = false) {
    options.d_model = 8;
    options.num_heads = 4;
    return {std::move(name),
            [=] {
                RandomState rng(4);
                MultiHeadAttention module(options, rng);
                if (!options.rotary && options.bias) freeze_key_bias(module);
                const bool cross = options.kdim > 0;
                std::vector<Variable> inputs{input({2, 3, 8})};
                if (cross) {
                    inputs.push_back(input({2, 4, 5}, "key"));
                    inputs.push_back(input({2, 4, 3}, "value"));
                }
                if (mask.bias().defined()) inputs.push_back(mask.bias());
                return gradcheck(
                    module,
                    [&, cross](std::span<const Variable> in) {
                        // A bias takes part as an input of the check.
                        AttentionCall call{.mask = mask};
                        if (mask.bias().defined()) {
                            call.mask = Mask::additive(in.back()) & Mask::causal();
                        }
                        if (every_step) return module.points(in[0], call).output;
                        return cross ? module(in[0], in[1], in[2], call) : module(in[0], call);
                    },
                    inputs);
            },
            checked};
}

BlockOptions small_block() {
    return {.attention = {.d_model = 4, .num_heads = 2},
            .feed_forward = {.d_model = 4, .d_ff = 3, .activation = Activation::gelu}};
}

Row block(std::string name, const BlockOptions& options, const Mask& mask, std::size_t checked) {
    return {std::move(name),
            [=] {
                RandomState rng(4);
                TransformerBlock module(options, rng);
                if (!options.attention.rotary) freeze_key_bias(module);
                std::vector<Variable> inputs{input({2, 3, 4})};
                if (options.cross_attention) {
                    module.multihead_attn->k_proj.bias.set_requires_grad(false);
                    inputs.push_back(input({2, 5, 4}, "memory"));
                }
                return gradcheck(
                    module,
                    [&](std::span<const Variable> in) {
                        BlockCall call{.mask = mask};
                        if (in.size() > 1) call.memory = in[1];
                        return module(in[0], call);
                    },
                    inputs);
            },
            checked};
}

std::vector<Row> rows() {
    std::vector<Row> list;
    list.push_back(layer(
        "linear", [](RandomState& rng) { return std::make_unique<Linear>(5, 4, rng); }, 3));
    list.push_back(layer(
        "linear without a bias",
        [](RandomState& rng) {
            return std::make_unique<Linear>(5, 4, rng, LinearOptions{.bias = false});
        },
        2));
    list.push_back(layer(
        "layer_norm", [](RandomState&) { return std::make_unique<LayerNorm>(5); }, 3));
    list.push_back(layer(
        "layer_norm without a bias",
        [](RandomState&) {
            return std::make_unique<LayerNorm>(5, LayerNormOptions{.bias = false});
        },
        2));
    list.push_back(layer(
        "rms_norm", [](RandomState&) { return std::make_unique<RMSNorm>(5); }, 2));
    list.push_back({"embedding",
                    [] {
                        RandomState rng(4);
                        Embedding module(6, 3, rng);
                        const Tensor ids = tensor({{0, 5, 0}, {2, 0, 1}}, i64);
                        return gradcheck(
                            module,
                            [&](std::span<const Variable> in) { return module(ids) * in[0]; },
                            {input({2, 3, 3})});
                    },
                    2});
    for (const Activation each :
         {Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu}) {
        list.push_back(feed_forward(each, false));
        list.push_back(feed_forward(each, true));
    }

    const RotaryOptions neighbours{};
    const RotaryOptions halves{.pairing = RotaryPairing::halves, .base = 50};
    const Tensor keep = tensor({{1, 1, 0}, {0, 1, 1}}, boolean);
    RandomState rng(6);
    const Variable bias = parameter(rng.randn({4, 3, 3}), "bias");
    list.push_back(attention("attention", {}, {}, 8));
    list.push_back(attention("attention, step by step", {}, Mask::causal(), 8, true));
    list.push_back(attention("attention without biases", {.bias = false}, {}, 5));
    list.push_back(attention("attention, grouped heads", {.num_kv_heads = 2}, {}, 8));
    list.push_back(attention("attention, one key head, own width",
                             {.num_kv_heads = 1, .head_dim = 3}, Mask::causal(), 8));
    list.push_back(attention("cross-attention", {.num_kv_heads = 2, .kdim = 5, .vdim = 3}, {}, 10));
    list.push_back(attention("cross-attention, causal and padding", {.kdim = 5, .vdim = 3},
                             Mask::causal() & Mask::padding(tensor({1, 1, 0, 1}, boolean)), 10));
    list.push_back(attention("attention, rotary", {.head_dim = 4, .rotary = neighbours}, {}, 9));
    list.push_back(
        attention("attention, rotary by halves", {.head_dim = 4, .rotary = halves}, {}, 9));
    list.push_back(attention("attention, ALiBi", {.alibi = true}, {}, 8));
    list.push_back(attention("attention, ALiBi, causal", {.alibi = true}, Mask::causal(), 8));
    // The first query of the second sequence sees nothing.
    list.push_back(attention("attention, causal and padding, an empty row", {},
                             Mask::causal() & Mask::padding(keep), 8));
    list.push_back(attention("attention, sliding window", {}, Mask::sliding_window(2), 8));
    list.push_back(attention("attention, boolean mask", {},
                             Mask::boolean(tensor({{1, 0, 1}, {0, 0, 0}, {1, 1, 0}}, boolean)), 8));
    list.push_back(attention("attention, bias that learns, causal", {},
                             Mask::additive(bias) & Mask::causal(), 9));

    BlockOptions options = small_block();
    list.push_back(block("encoder block, pre-norm", options, Mask::none(), 16));
    list.push_back(block("decoder block, pre-norm", options, Mask::causal(), 16));
    options.norm_first = false;
    list.push_back(block("encoder block, post-norm", options, Mask::padding(keep), 16));
    options.cross_attention = true;
    list.push_back(block("block with a memory, post-norm", options, Mask::causal(), 26));
    options.norm_first = true;
    list.push_back(block("block with a memory, pre-norm", options, Mask::causal(), 26));
    options = small_block();
    options.attention = {
        .d_model = 4, .num_heads = 2, .num_kv_heads = 1, .bias = false, .rotary = neighbours};
    options.feed_forward = {
        .d_model = 4, .d_ff = 3, .activation = Activation::silu, .gated = true, .bias = false};
    options.norm = NormKind::rms_norm;
    list.push_back(block("LLaMA's block", options, Mask::causal(), 10));
    return list;
}

}  // namespace

TEST_CASE("gradients of every layer and block agree with differences, parameters included") {
    for (const Row& row : rows()) {
        const GradcheckReport report = row.check();
        INFO(row.name << '\n' << report.text);
        CHECK(report);
        CHECK(report.inputs.size() == row.checked);
    }
}

TEST_CASE("second derivatives through a block agree with differences") {
    for (const bool norm_first : {true, false}) {
        RandomState rng(4);
        BlockOptions options{
            .attention = {.d_model = 4,
                          .num_heads = 2,
                          .num_kv_heads = 1,
                          .rotary = RotaryOptions{},
                          .dtype = f64},
            .feed_forward = {.d_model = 4, .d_ff = 2, .activation = Activation::gelu, .dtype = f64},
            .norm_first = norm_first};
        TransformerBlock module(options, rng);
        const Mask mask = Mask::causal() & Mask::padding(tensor({0, 1, 1}, boolean));
        GradcheckOptions checked;
        checked.parameters = module.parameters();
        const auto report = gradgradcheck(
            [&](std::span<const Variable> in) { return module(in[0], {.mask = mask}); },
            {input({1, 3, 4})}, checked);
        INFO(report.text);
        CHECK(report);
    }
}
