#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

#include <cmath>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

MultiHeadAttentionOptions sizes() {
    return {.d_model = 12, .num_heads = 6, .num_kv_heads = 2, .kdim = 5, .vdim = 7, .dtype = f64};
}
MultiHeadAttentionOptions self_sizes() {
    return {
        .d_model = 12, .num_heads = 6, .num_kv_heads = 2, .rotary = RotaryOptions{}, .dtype = f64};
}

/// y = x W + b with the weight of a layer, in loops of tensor functions.
Tensor projected(const Linear& layer, const Tensor& x) {
    return matmul(x, layer.weight.value(), {.transpose_b = true}) + layer.bias.value();
}

}  // namespace

TEST_CASE("each head attends with its own slice of the projections") {
    RandomState rng(5);
    const MultiHeadAttention layer(sizes(), rng);
    const Tensor x = rng.randn({3, 4, 12});
    const Tensor keys = rng.randn({3, 9, 5});
    const Tensor values = rng.randn({3, 9, 7});
    const auto p = layer.points(Variable(x), Variable(keys), Variable(values));
    CHECK(p.query.shape() == Shape{3, 6, 4, 2});
    CHECK(p.key.shape() == Shape{3, 2, 9, 2});
    CHECK(p.weights.shape() == Shape{3, 6, 4, 9});
    CHECK_FALSE(p.masked.defined());
    // Head 4 belongs to the second of the two groups of three.
    const Tensor q = slice(projected(layer.q_proj, x), -1, {.start = 8, .stop = 10});
    const Tensor k = slice(projected(layer.k_proj, keys), -1, {.start = 2, .stop = 4});
    const Tensor v = slice(projected(layer.v_proj, values), -1, {.start = 2, .stop = 4});
    const Tensor head = scaled_dot_product_attention(q, k, v);
    CHECK(allclose(select(p.heads.value(), 1, 4), head, {.rtol = 1e-12, .atol = 1e-12}));
    // Heads side by side: (batch, tokens, heads * width).
    const Tensor merged = reshape(transpose(p.heads.value(), 1, 2), {3, 4, 12});
    CHECK(allclose(p.output.value(), projected(layer.out_proj, merged),
                   {.rtol = 1e-12, .atol = 1e-12}));
    CHECK(allclose(layer(Variable(x), Variable(keys), Variable(values)).value(), p.output.value(),
                   {.rtol = 1e-12, .atol = 1e-12}));
}

TEST_CASE("a sequence without a batch is a batch of one") {
    RandomState rng(5);
    const MultiHeadAttention layer(self_sizes(), rng);
    const Tensor x = rng.randn({4, 12});
    const Variable y = layer(Variable(x), {.mask = Mask::causal()});
    CHECK(y.shape() == Shape{4, 12});
    const Variable b = layer(Variable(reshape(x, {1, 4, 12})), {.mask = Mask::causal()});
    CHECK(allclose(y.value(), select(b.value(), 0, 0), {.rtol = 1e-12, .atol = 1e-12}));
}

TEST_CASE("gradients of many heads agree with differences, parameters included") {
    RandomState rng(5);
    MultiHeadAttention layer({.d_model = 6,
                              .num_heads = 3,
                              .num_kv_heads = 1,
                              .dropout = 0.3,
                              .rotary = RotaryOptions{.pairing = RotaryPairing::halves},
                              .alibi = true},
                             rng);
    const Tensor keep = tensor({{1, 1, 1, 0}, {0, 0, 1, 1}}, boolean);
    const Variable bias = parameter(rng.randn({4, 4}), "bias");
    const auto report = gradcheck(layer,
                                  [&](std::span<const Variable> in) {
                                      seed_dropout(layer, 3);
                                      const Mask mask = Mask::causal() & Mask::padding(keep) &
                                                        Mask::additive(in[1]) &
                                                        Mask::sliding_window(3);
                                      return layer(in[0], {.mask = mask});
                                  },
                                  {parameter(rng.randn({2, 4, 6}), "x"), bias});
    CAPTURE(report.text);
    CHECK(report);
    CHECK(report.inputs.size() == 10);
}

TEST_CASE("a cache gives the numbers of the whole sequence, token by token") {
    RandomState rng(5);
    MultiHeadAttention layer(self_sizes(), rng);
    layer.eval();
    const Tensor x = rng.randn({2, 7, 12});
    const Mask mask = Mask::causal() & Mask::sliding_window(4);
    const Tensor whole = layer(Variable(x), {.mask = mask}).value();
    const NoGrad no_grad;
    KeyValueCache cache;
    std::int64_t done = 0;
    for (const std::int64_t step : {3, 1, 2, 1}) {
        const Tensor part = slice(x, 1, {.start = done, .stop = done + step});
        const Tensor y = layer(Variable(part), {.mask = mask, .cache = &cache}).value();
        done += step;
        CHECK(cache.length() == done);
        CHECK(allclose(y, slice(whole, 1, {.start = done - step, .stop = done}),
                       {.rtol = 1e-12, .atol = 1e-12}));
    }
    cache.clear();
    CHECK(cache.length() == 0);
}

TEST_CASE("a cache that grows in place gives the numbers of the whole sequence, shared heads too") {
    RandomState rng(5);
    MultiHeadAttention layer(
        {.d_model = 12, .num_heads = 6, .num_kv_heads = 2, .rotary = RotaryOptions(), .dtype = f64},
        rng);
    layer.eval();
    const Tensor x = rng.randn({2, 90, 12});
    const NoGrad no_grad;
    const Tensor whole = layer(Variable(x), {.mask = Mask::causal()}).value();
    KeyValueCache cache;
    KeyValueCache copy;
    Tensor key_of_copy;
    std::int64_t done = 0;
    while (done < 90) {
        const std::int64_t step = done == 0 ? 4 : done == 40 ? 3 : 1;
        const std::int64_t stop = std::min<std::int64_t>(90, done + step);
        const Tensor part = slice(x, 1, {.start = done, .stop = stop});
        const Tensor y = layer(Variable(part), {.mask = Mask::causal(), .cache = &cache}).value();
        CHECK(allclose(y, slice(whole, 1, {.start = done, .stop = stop}),
                       {.rtol = 1e-12, .atol = 1e-12}));
        done = stop;
        if (done == 60) {
            copy = cache;
            key_of_copy = copy.key();
        }
    }
    CHECK(cache.length() == 90);
    CHECK(copy.length() == 60);
    // What is put at the end of one is not seen in the other.
    layer(Variable(slice(x, 1, {.start = 0, .stop = 5})), {.mask = Mask::causal(), .cache = &copy});
    CHECK(allclose(slice(copy.key(), 2, {.stop = 60}), key_of_copy, {.rtol = 0, .atol = 0}));
    CHECK(allclose(slice(cache.key(), 2, {.stop = 60}), key_of_copy, {.rtol = 0, .atol = 0}));
    CHECK(cache.key().shape() == Shape{2, 2, 90, 2});
}

TEST_CASE("the cache of an attention to something else is filled once") {
    RandomState rng(5);
    MultiHeadAttention layer(sizes(), rng);
    const Variable x(rng.randn({3, 4, 12}));
    const Variable keys(rng.randn({3, 9, 5}));
    const Variable values(rng.randn({3, 9, 7}));
    const NoGrad no_grad;
    KeyValueCache cache;
    const Tensor first = layer(x, keys, values, {.cache = &cache}).value();
    const Tensor again = layer(x, keys * 2, values * 2, {.cache = &cache}).value();
    CHECK(cache.length() == 9);
    CHECK(allclose(first, again, {.rtol = 0, .atol = 0}));
}

TEST_CASE("a call that throws leaves the cache as it was") {
    RandomState rng(5);
    const MultiHeadAttention layer(self_sizes(), rng);
    const Variable x(rng.randn({2, 3, 12}));
    const NoGrad no_grad;
    KeyValueCache cache;
    layer(x, {.mask = Mask::causal(), .cache = &cache});
    const Mask wrong = Mask::padding(ones({2, 5}, boolean));  // six keys by then
    CHECK_THROWS_AS(layer(x, {.mask = wrong, .cache = &cache}), ShapeError);
    CHECK(cache.length() == 3);
    layer(x, {.mask = Mask::padding(ones({2, 6}, boolean)), .cache = &cache});
    CHECK(cache.length() == 6);
}

TEST_CASE("a cache refuses keys and values that don't go together, and grows by nothing else") {
    RandomState rng(5);
    KeyValueCache cache;
    const auto rows = [&](std::int64_t tokens) { return rng.randn({1, 2, tokens, 3}); };
    cache.append(rows(4), rows(4));
    CHECK_THROWS_AS(cache.append(rows(1), rows(2)), ShapeError);
    CHECK_THROWS_AS(cache.append(rng.randn({1, 3, 1, 3}), rng.randn({1, 3, 1, 3})), ShapeError);
    CHECK_THROWS_AS(cache.append(ones({3}), ones({3})), ShapeError);
    CHECK_THROWS_AS(cache.append(rows(1), rows(1).astype(f32)), TypeError);
    CHECK(cache.length() == 4);
    cache.truncate(9);
    CHECK(cache.length() == 4);
    const KeyValueCache same = cache;
    const Tensor before = same.key();
    cache.truncate(2);
    cache.append(rows(30), rows(30));
    CHECK(cache.length() == 32);
    CHECK(allclose(same.key(), before, {.rtol = 0, .atol = 0}));
    CHECK(same.length() == 4);
    cache.set(rows(5), rows(3));
    CHECK_THROWS_AS(cache.append(rows(1), rows(1)), ShapeError);
    cache.set(rows(3), rows(5));
    CHECK_THROWS_AS(cache.append(rows(1), rows(1)), ShapeError);
    cache.truncate(-1);
    CHECK(!cache.key().defined());
}

TEST_CASE("texts of another batch are refused, given or cached") {
    RandomState rng(5);
    const MultiHeadAttention layer(self_sizes(), rng);
    const auto x = [&](std::int64_t batch, std::int64_t tokens) {
        return Variable(rng.randn({batch, tokens, 12}));
    };
    CHECK(text_of<ShapeError>([&] { layer(x(3, 2), x(1, 4), x(1, 4)); }) ==
          "multi_head_attention: query (3, 2, 12), key (1, 4, 12) and value (1, 4, 12) are of "
          "different batches; broadcast_to repeats one text for all");
    CHECK_THROWS_AS(layer(x(1, 2), x(1, 4), x(3, 4)), ShapeError);
    const NoGrad no_grad;
    KeyValueCache cache;
    layer(x(1, 2), x(1, 4), x(1, 4), {.cache = &cache});
    CHECK(
        text_of<ShapeError>([&] { layer(x(3, 2), x(3, 4), x(3, 4), {.cache = &cache}); }) ==
        "multi_head_attention: the cache holds keys (1, 2, 4, 2), those of the call are (3, 2, 4, "
        "2); a cache belongs to one layer and one batch");
    CHECK_THROWS_AS(layer(x(1, 2), x(1, 5), x(1, 5), {.cache = &cache}), ShapeError);
    cache.set(cache.key(), Tensor());
    CHECK_THROWS_AS(layer(x(1, 2), x(1, 4), x(1, 4), {.cache = &cache}), ShapeError);
    cache.set(ones({3}, f64), ones({3}, f64));  // no keys at all
    CHECK(cache.length() == 0);
    CHECK_THROWS_AS(layer(x(1, 2), {.cache = &cache}), ShapeError);
}

TEST_CASE("a hook on a step changes what follows") {
    RandomState rng(5);
    MultiHeadAttention layer(sizes(), rng);
    const Variable x(rng.randn({3, 4, 12}));
    const Variable keys(rng.randn({3, 9, 5}));
    const Variable values(rng.randn({3, 9, 7}));
    layer.hook_point("weights", [](const Variable& w) { return w * 0; });
    const Tensor y = layer(x, keys, values).value();
    CHECK(allclose(y, broadcast_to(layer.out_proj.bias.value(), y.shape())));
}

TEST_CASE("the named steps and the usual call agree under every kind of mask") {
    RandomState rng(5);
    MultiHeadAttention layer({.d_model = 8,
                              .num_heads = 4,
                              .num_kv_heads = 2,
                              .dropout = 0.25,
                              .alibi = true,
                              .dtype = f64},
                             rng);
    const Variable x = parameter(rng.randn({2, 70, 8}), "x");
    Tensor keep = less(rng.rand({2, 70}), full({}, 0.7, f64));
    const Mask mask = Mask::causal() & Mask::padding(keep) & Mask::sliding_window(20) &
                      Mask::boolean(less(rng.rand({4, 70, 70}), full({}, 0.8, f64))) &
                      Mask::additive(Variable(rng.randn({2, 1, 1, 70})));
    seed_dropout(layer, 3);
    const Variable usual = layer(x, {.mask = mask});
    const Tensor gx = grad({sum(usual * usual)}, {x})[0].value();
    seed_dropout(layer, 3);
    const Variable named = layer.points(x, {.mask = mask}).output;
    CHECK(allclose(usual.value(), named.value(), {.rtol = 1e-12, .atol = 1e-12}));
    CHECK(allclose(gx, grad({sum(named * named)}, {x})[0].value(), {.rtol = 1e-11, .atol = 1e-12}));
}

TEST_CASE("torch's packed projections come apart and together again") {
    const StateDict torch{{"a.in_proj_weight", arange(0, 18).astype(f32).with_shape({9, 2})},
                          {"a.in_proj_bias", arange(0, 9).astype(f32)},
                          {"a.out_proj.weight", ones({2, 3})},
                          {"b.q_proj_weight", ones({4, 4})},
                          {"b.k_proj_weight", ones({4, 5})},
                          {"b.v_proj_weight", ones({4, 6})},
                          {"b.in_proj_bias", ones({12})}};
    const StateDict ours = split_in_proj(torch);
    std::string names;
    for (const auto& [name, value] : ours) names += name + to_string(value.shape()) + ' ';
    CHECK(names ==
          "a.q_proj.weight(3, 2) a.k_proj.weight(3, 2) a.v_proj.weight(3, 2) a.q_proj.bias(3,) "
          "a.k_proj.bias(3,) a.v_proj.bias(3,) a.out_proj.weight(2, 3) b.q_proj.weight(4, 4) "
          "b.k_proj.weight(4, 5) b.v_proj.weight(4, 6) b.q_proj.bias(4,) b.k_proj.bias(4,) "
          "b.v_proj.bias(4,) ");
    CHECK(ours[1].second.values<float>()[0] == 6);
    const StateDict back = join_in_proj(ours);
    REQUIRE(back.size() == torch.size());
    for (std::size_t i = 0; i < back.size(); ++i) {
        CHECK(back[i].first == torch[i].first);
        CHECK(allclose(back[i].second, torch[i].second));
    }
    CHECK(text_of<ShapeError>([] {
              split_in_proj({{"in_proj_weight", ones({4, 2})}});
          }) == "split_in_proj: in_proj_weight (4, 2) is not three projections");
}

TEST_CASE("wrong sizes and calls of many heads are named") {
    RandomState rng(5);
    const auto refusal = [&](const MultiHeadAttentionOptions& options) {
        return text_of<ShapeError>([&] { MultiHeadAttention(options, rng); });
    };
    CHECK(refusal({.d_model = 10, .num_heads = 3}) ==
          "multi_head_attention: d_model 10 is not a multiple of 3 heads; give another d_model, or "
          "a head_dim");
    CHECK(refusal({.d_model = 12, .num_heads = 4, .num_kv_heads = 3}) ==
          "multi_head_attention: 4 heads cannot share 3 key/value heads evenly");
    CHECK(refusal({.d_model = 9, .num_heads = 3, .rotary = RotaryOptions{}}) ==
          "multi_head_attention: rotary positions turn pairs, and head_dim is 3");
    CHECK(refusal({}) ==
          "multi_head_attention: d_model 0 and 0 heads must be positive, other sizes not negative");
    CHECK(refusal({.d_model = 4, .num_heads = 1LL << 32, .head_dim = 1LL << 32}) ==
          "multi_head_attention: 4294967296 heads of width 4294967296 are too many");
    CHECK(text_of<ValueError>([&] {
              MultiHeadAttention({.d_model = 4, .num_heads = 2, .scale = std::nan("")}, rng);
          }) == "multi_head_attention: scale nan is not a finite number");
    const MultiHeadAttention layer(self_sizes(), rng);
    for (const Tensor& places : {arange(0, 1), zeros({3, 3}, i64), zeros({2, 3, 1}, i64)}) {
        CHECK(text_of<ShapeError>([&] {
                  layer(Variable(ones({2, 3, 12}, f64)), {.positions = places});
              }) == "multi_head_attention: positions " + to_string(places.shape()) +
                        " are not those of 3 tokens in a batch of 2; they are (tokens,) or (batch, "
                        "tokens)");
    }
    CHECK(text_of<ShapeError>([&] {
              layer(Variable(ones({2, 3, 4}, f64)));
          }) ==
          "multi_head_attention: x must be (batch, tokens, 12) or (tokens, 12), got (2, 3, 4)");
    KeyValueCache cache;
    CHECK(text_of<GraphError>([&] {
              layer(Variable(ones({2, 3, 12}, f64)), {.cache = &cache});
          }) ==
          "multi_head_attention: a cache would lose the gradient of its keys; call the model under "
          "NoGrad");
    const NoGrad no_grad;
    layer(Variable(ones({2, 3, 12}, f64)), {.cache = &cache});
    CHECK(text_of<ShapeError>([&] {
              layer(Variable(ones({1, 3, 12}, f64)), {.cache = &cache});
          }) ==
          "multi_head_attention: the cache holds keys (2, 2, 3, 2), new ones are (1, 2, 3, 2); a "
          "cache belongs to one layer and one batch");
}

TEST_CASE("a block has torch's names, and its gradients agree with differences") {
    RandomState rng(5);
    TransformerBlock block({.attention = {.d_model = 6, .num_heads = 3},
                            .feed_forward = {.d_model = 6,
                                             .d_ff = 5,
                                             .activation = Activation::silu,
                                             .gated = true,
                                             .dropout = 0.2},
                            .norm = NormKind::rms_norm,
                            .cross_attention = true,
                            .dropout = 0.2},
                           rng);
    std::string names;
    for (const auto& [name, value] : block.named_parameters()) names += name + ' ';
    CHECK(names ==
          "self_attn.q_proj.weight self_attn.q_proj.bias self_attn.k_proj.weight "
          "self_attn.k_proj.bias self_attn.v_proj.weight self_attn.v_proj.bias "
          "self_attn.out_proj.weight self_attn.out_proj.bias multihead_attn.q_proj.weight "
          "multihead_attn.q_proj.bias multihead_attn.k_proj.weight multihead_attn.k_proj.bias "
          "multihead_attn.v_proj.weight multihead_attn.v_proj.bias multihead_attn.out_proj.weight "
          "multihead_attn.out_proj.bias linear1.weight linear1.bias linear2.weight linear2.bias "
          "linear3.weight linear3.bias norm1.weight norm2.weight norm3.weight ");
    // What is added to all keys alike moves no softmax: these gradients are 0, a check without
    // power.
    block.self_attn.k_proj.bias.set_requires_grad(false);
    block.multihead_attn->k_proj.bias.set_requires_grad(false);
    const auto report = gradcheck(
        block,
        [&](std::span<const Variable> in) {
            seed_dropout(block, 3);
            return block(in[0], {.mask = Mask::causal(), .memory = in[1]});
        },
        {parameter(rng.randn({2, 3, 6}), "x"), parameter(rng.randn({2, 4, 6}), "memory")});
    CAPTURE(report.text);
    CHECK(report);
    CHECK(text_of<ValueError>([&] {
              block(Variable(ones({2, 3, 6})));
          }) ==
          "transformer_block: cross-attention needs a memory; pass .memory, the encoder's output");
}

TEST_CASE("pre-norm and post-norm place the norm where they say") {
    RandomState rng(5);
    for (const bool first : {true, false}) {
        TransformerBlock block({.attention = {.d_model = 6, .num_heads = 3, .dtype = f64},
                                .feed_forward = {.d_model = 6, .d_ff = 5, .dtype = f64},
                                .norm_first = first},
                               rng);
        const Variable x(rng.randn({2, 3, 6}));
        const Layer& one = *block.norms[0];
        const Layer& two = *block.norms[1];
        Variable y;
        if (first) {
            y = x + block.self_attn(one(x));
            y = y + block.feed_forward(two(y));
        } else {
            y = one(x + block.self_attn(x));
            y = two(y + block.feed_forward(y));
        }
        CHECK(allclose(block(x).value(), y.value(), {.rtol = 0, .atol = 0}));
    }
}

TEST_CASE("a checkpoint whose backward pass alone is watched takes the form of its first run") {
    struct Count : Observer {
        void on_forward(const ForwardEvent&) override { ++ops; }
        int ops = 0;
    };
    RandomState rng(5);
    const MultiHeadAttention layer({.d_model = 8, .num_heads = 2, .dtype = f64}, rng);
    const Variable x = parameter(rng.randn({1, 140, 8}), "x");
    const auto call = [&](std::span<const Variable> in) {
        return layer(in[0], {.mask = Mask::causal()});
    };
    const Variable plain = layer(x, {.mask = Mask::causal()});
    const Tensor expected = grad({sum(plain * plain)}, {x})[0].value();
    const Variable y = checkpoint(call, {x});
    Count count;
    const Observing observing(count);
    CHECK(allclose(grad({sum(y * y)}, {x})[0].value(), expected, {.rtol = 1e-12, .atol = 1e-12}));
    CHECK(count.ops > 0);
}
