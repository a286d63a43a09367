// Layers against torch.nn, from the data of tests/parity/make_layer_cases.py, and proof that the
// cases notice the usual mistakes of those who write such layers anew.

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <glassgrad/layers.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

using namespace glassgrad;
using glassgrad::testing::shape_of;
using nlohmann::json;

namespace {

const json& cases() {
    static const json list = glassgrad::testing::load_json("../layers/layer_cases.json")["cases"];
    return list;
}

const json& case_named(const std::string& name) {
    for (const json& each : cases()) {
        if (each["name"] == name) return each;
    }
    throw std::runtime_error("no case " + name);
}

/// The numbers that the script computes from a name.
Tensor value(std::string_view name, const Shape& shape, DType dtype) {
    std::uint32_t hashed = 2166136261U;
    for (const char c : name) hashed = (hashed ^ static_cast<unsigned char>(c)) * 16777619U;
    Tensor x = Tensor::empty(shape, f64);
    auto* out = x.mutable_data<double>();
    for (std::int64_t i = 0; i < x.numel(); ++i) {
        std::uint32_t z = hashed + static_cast<std::uint32_t>(i) * 2654435761U;
        z = (z ^ z >> 16) * 0x45D9F3BU;
        out[i] = ((z ^ z >> 16) >> 16) / 65536.0 - 0.5;
    }
    return x.astype(dtype);
}

Tensor stored(const json& item, DType dtype) {
    return from_values(item["v"].get<std::vector<double>>(), shape_of(item["s"]), dtype);
}

/// The largest difference, relative to the largest number: a gradient that is truly 0, such as that
/// of k_proj.bias, is compared with 0.1.
double distance(const Tensor& got, const json& item) {
    const Tensor wanted = stored(item, f64);
    REQUIRE(got.shape() == wanted.shape());
    const Tensor difference = abs(got.astype(f64) - wanted);
    return max(difference).item() / std::max(max(abs(wanted)).item(), 0.1);
}

StateDict torch_state(const json& c, DType dtype) {
    StateDict state;
    for (const auto& [name, sizes] : c["state"].items()) {
        state.emplace_back(name, value(name, shape_of(sizes), dtype));
    }
    return state;
}

Mask padding_of(const json& c, const char* keep) {
    return c.contains(keep) ? Mask::padding(stored(c[keep], boolean)) : Mask::none();
}

Mask mask_of(const json& c, const Variable& bias = {}) {
    Mask mask = padding_of(c, "keep");
    if (c.value("causal", false)) mask = mask & Mask::causal();
    if (c.contains("window")) mask = mask & Mask::sliding_window(c["window"]);
    if (c.contains("allowed")) mask = mask & Mask::boolean(stored(c["allowed"], boolean));
    return bias.defined() ? mask & Mask::additive(bias) : mask;
}

MultiHeadAttentionOptions attention_options(const json& o, DType dtype) {
    MultiHeadAttentionOptions options{.d_model = o["d_model"],
                                      .num_heads = o["num_heads"],
                                      .num_kv_heads = o.value("num_kv_heads", 0),
                                      .head_dim = o.value("head_dim", 0),
                                      .kdim = o.value("kdim", 0),
                                      .vdim = o.value("vdim", 0),
                                      .bias = o.value("bias", true),
                                      .alibi = o.value("alibi", false),
                                      .dtype = dtype};
    if (o.contains("scale")) options.scale = o["scale"].get<double>();
    if (o.contains("rotary")) {
        options.rotary = RotaryOptions{rotary_pairing_from(o["rotary"].get<std::string>()),
                                       o["rotary_base"].get<double>()};
    }
    return options;
}

BlockOptions block_options(const json& o, DType dtype) {
    return {.attention = attention_options(o, dtype),
            .feed_forward = {.d_model = o["d_model"],
                             .d_ff = o["d_ff"],
                             .activation = activation_from(o["activation"].get<std::string>()),
                             .dtype = dtype},
            .norm_first = o["norm_first"],
            .cross_attention = o.value("cross_attention", false),
            .norm_eps = o["norm_eps"]};
}

/// torch.nn.TransformerEncoder: layers, then a norm.
struct Encoder : Module {
    Encoder(const BlockOptions& options, int count, RandomState& rng)
        : norm(options.attention.d_model,
               {.eps = options.norm_eps, .dtype = options.attention.dtype}) {
        for (int i = 0; i < count; ++i) layers.append(options, rng);
        register_module("layers", layers);
        register_module("norm", norm);
    }
    ModuleList<TransformerBlock> layers;
    LayerNorm norm;
};

struct Result {
    Variable y;
    Variable weights = {};
};

/// A layer and how a case calls it.
struct Layered {
    std::unique_ptr<Module> module;
    std::function<Result(const std::map<std::string, Variable>& inputs)> call;
};

template <class M, class F>
Layered layered(std::unique_ptr<M> made, F f) {
    const M& module = *made;
    return {std::move(made), [&module, f](const auto& inputs) { return f(module, inputs); }};
}

Layered attention_of(const json& c, DType dtype, RandomState& rng) {
    return layered(
        std::make_unique<MultiHeadAttention>(attention_options(c["options"], dtype), rng),
        [&c](const MultiHeadAttention& module, const auto& in) {
            AttentionCall call{.mask = mask_of(c, in.count("bias") ? in.at("bias") : Variable())};
            if (c.contains("positions")) call.positions = stored(c["positions"], i64);
            const MultiHeadAttentionPoints p =
                in.count("key") ? module.points(in.at("x"), in.at("key"), in.at("value"), call)
                                : module.points(in.at("x"), call);
            return Result{p.output, p.weights};
        });
}

Layered layer_of(const json& c, DType dtype) {
    RandomState rng(1);
    const std::string kind = c["kind"];
    const json& o = c["options"];
    const auto of_x = [](const Layer& layer, const auto& in) { return Result{layer(in.at("x"))}; };
    if (kind == "attention") return attention_of(c, dtype, rng);
    if (kind == "linear") {
        return layered(std::make_unique<Linear>(o["in"], o["out"], rng,
                                                LinearOptions{.bias = o["bias"], .dtype = dtype}),
                       of_x);
    }
    if (kind == "layer_norm") {
        return layered(std::make_unique<LayerNorm>(
                           o["width"], LayerNormOptions{.eps = o["eps"], .dtype = dtype}),
                       of_x);
    }
    if (kind == "rms_norm") {
        return layered(
            std::make_unique<RMSNorm>(o["width"], RMSNormOptions{.eps = o["eps"], .dtype = dtype}),
            of_x);
    }
    if (kind == "embedding") {
        EmbeddingOptions options{.dtype = dtype};
        if (o.contains("padding_idx")) options.padding_idx = o["padding_idx"].get<std::int64_t>();
        return layered(std::make_unique<Embedding>(o["rows"], o["width"], rng, options),
                       [&c](const Embedding& layer, const auto&) {
                           return Result{layer(stored(c["ids"], i64))};
                       });
    }
    if (kind == "block") {
        return layered(std::make_unique<TransformerBlock>(block_options(o, dtype), rng),
                       [&c](const TransformerBlock& block, const auto& in) {
                           BlockCall call{.mask = mask_of(c)};
                           if (in.count("memory")) {
                               call.memory = in.at("memory");
                               call.memory_mask = padding_of(c, "memory_keep");
                           }
                           return Result{block(in.at("x"), call)};
                       });
    }
    REQUIRE(kind == "encoder");
    return layered(std::make_unique<Encoder>(block_options(o, dtype), 2, rng),
                   [&c](const Encoder& encoder, const auto& in) {
                       Variable y = in.at("x");
                       encoder.layers.each([&](std::size_t, const TransformerBlock& block) {
                           y = block(y, {.mask = mask_of(c)});
                       });
                       return Result{encoder.norm(y)};
                   });
}

std::map<std::string, Variable> inputs_of(const json& c, DType dtype) {
    std::map<std::string, Variable> inputs;
    if (!c.contains("inputs")) return inputs;
    for (const auto& [name, sizes] : c["inputs"].items()) {
        inputs[name] = parameter(value(name, shape_of(sizes), dtype), name);
    }
    return inputs;
}

/// The largest distance of any number of the case.
double worst_of(const json& c, DType dtype) {
    Layered layer = layer_of(c, dtype);
    layer.module->load_state_dict(split_in_proj(torch_state(c, dtype)));
    auto inputs = inputs_of(c, dtype);
    const Result result = layer.call(inputs);
    CHECK(result.y.dtype() == dtype);
    double worst = distance(result.y.value(), c["y"]);
    if (c.contains("weights")) {
        worst = std::max(worst, distance(result.weights.value(), c["weights"]));
    }
    backward(result.y, {.gradient = value("gy", result.y.shape(), dtype)});
    StateDict gradients;
    for (const auto& [name, x] : layer.module->named_parameters()) {
        gradients.emplace_back(name, x.grad());
    }
    if (c.value("torch", false)) gradients = join_in_proj(gradients);
    for (const auto& [name, x] : inputs) gradients.emplace_back(name, x.grad());
    CHECK(gradients.size() == c["grad"].size());
    for (const auto& [name, gradient] : gradients) {
        INFO(name);
        REQUIRE(c["grad"].contains(name));
        worst = std::max(worst, distance(gradient, c["grad"][name]));
    }
    return worst;
}

/// The value of the case with `change` made to the layer after its weights are in.
Tensor changed(const json& c, const std::function<void(Module&)>& change) {
    const Layered layer = layer_of(c, f64);
    layer.module->load_state_dict(split_in_proj(torch_state(c, f64)));
    change(*layer.module);
    const NoGrad no_grad;
    return layer.call(inputs_of(c, f64)).y.value();
}

}  // namespace

TEST_CASE("layers give the values and gradients of torch.nn, to 1e-12") {
    for (const json& c : cases()) {
        INFO(c["name"].get<std::string>());
        CHECK(worst_of(c, f64) < 1e-12);
    }
    CHECK(cases().size() == 32);
}

TEST_CASE("in f32 they stay within 16 ulp of the largest number") {
    for (const json& c : cases()) {
        INFO(c["name"].get<std::string>());
        CHECK(worst_of(c, f32) < 16 * std::ldexp(1.0, -23));
    }
}

TEST_CASE("torch's state dict loads unchanged, and its names come back") {
    for (const json& c : cases()) {
        if (!c.value("torch", false)) continue;
        INFO(c["name"].get<std::string>());
        const Layered layer = layer_of(c, f64);
        const StateDict torch = torch_state(c, f64);
        layer.module->load_state_dict(split_in_proj(torch));
        const StateDict back = join_in_proj(layer.module->state_dict());
        REQUIRE(back.size() == torch.size());
        for (const auto& [name, x] : torch) {
            const auto found =
                std::find_if(back.begin(), back.end(),
                             [&wanted = name](const auto& entry) { return entry.first == wanted; });
            INFO(name);
            REQUIRE(found != back.end());
            CHECK(allclose(found->second, x, {.rtol = 0, .atol = 0}));
        }
    }
}

TEST_CASE("a square weight taken transposed shows in every case") {
    int seen = 0;
    for (const json& c : cases()) {
        if (c["kind"] == "embedding") continue;
        for (const auto& [path, sizes] : layer_of(c, f64).module->state_dict()) {
            if (sizes.rank() != 2 || sizes.shape()[0] != sizes.shape()[1]) continue;
            INFO(c["name"].get<std::string>() << ": " << path);
            const Tensor y = changed(c, [&name = path](Module& module) {
                Variable weight = module.parameter_at(name);
                weight.set_value(transpose(weight.value(), 0, 1));
            });
            CHECK(distance(y, c["y"]) > 1e-3);
            ++seen;
        }
    }
    CHECK(seen > 80);
}

TEST_CASE("a mask for batch and heads in the other order shows") {
    for (const char* name : {"attention, boolean mask for each sequence and head",
                             "attention, boolean mask for each sequence"}) {
        INFO(name);
        json c = case_named(name);
        // As repeat gives it in place of repeat_interleave: the batch changes fastest.
        const Tensor mask = broadcast_to(stored(c["allowed"], boolean), {2, 3, 5, 5});
        const Tensor mixed = reshape(transpose(mask, 0, 1), {2, 3, 5, 5});
        json numbers = json::array();
        for (const bool each : mixed.values<bool>()) numbers.push_back(each ? 1 : 0);
        c["allowed"] = {{"s", {2, 3, 5, 5}}, {"v", numbers}};
        CHECK(distance(changed(c, [](Module&) {}), c["y"]) > 1e-3);
    }
}

TEST_CASE("heads split or merged by reshape alone show") {
    const json& c = case_named("attention, causal and padding, without a bias");
    const Layered layer = layer_of(c, f64);
    layer.module->load_state_dict(split_in_proj(torch_state(c, f64)));
    const auto& module = dynamic_cast<const MultiHeadAttention&>(*layer.module);
    const Variable x = inputs_of(c, f64).at("x");
    const Mask mask = mask_of(c);
    const auto merged = [](const Variable& heads) {
        return reshape(transpose(heads, 1, 2), {2, 5, 12});
    };
    const MultiHeadAttentionPoints p = module.points(x, {.mask = mask});
    CHECK(distance(module.out_proj(merged(p.heads)).value(), c["y"]) < 1e-12);
    CHECK(distance(module.out_proj(reshape(p.heads, {2, 5, 12})).value(), c["y"]) > 1e-3);
    // Split by reshape, which mixes tokens: what a causal mask hides is seen.
    const auto split = [&](const Linear& part) { return reshape(part(x), {2, 3, 5, 4}); };
    const Variable seen(mask.allowed({2, 3, 5, 5}));
    const Variable wrong = scaled_dot_product_attention(split(module.q_proj), split(module.k_proj),
                                                        split(module.v_proj), {.mask = seen});
    CHECK(distance(module.out_proj(merged(wrong)).value(), c["y"]) > 1e-3);
    CHECK(distance(module.out_proj(reshape(wrong, {2, 5, 12})).value(), c["y"]) > 1e-3);
}
