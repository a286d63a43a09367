// What holds for attention with any sizes, heads, masks and positions: random cases of one seed.

#include "support/catch.hpp"

#include <glassgrad/layers.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

using namespace glassgrad;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

bool same_bits(const Tensor& a, const Tensor& b) {
    const std::size_t bytes = static_cast<std::size_t>(a.numel()) * item_size(a.dtype());
    return a.shape() == b.shape() && a.dtype() == b.dtype() &&
           std::equal(a.bytes(), a.bytes() + bytes, b.bytes());
}

bool close(const Tensor& a, const Tensor& b, double tolerance = 1e-12) {
    return allclose(a, b, {.rtol = tolerance, .atol = tolerance});
}

bool finite(const Tensor& x) {
    const auto values = x.values<double>();
    return std::all_of(values.begin(), values.end(),
                       [](double each) { return std::isfinite(each); });
}

class Draw {
  public:
    explicit Draw(std::int64_t seed) : rng(seed) {}
    /// From low to high, both included.
    std::int64_t number(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(rng.next_interval(static_cast<std::uint64_t>(high - low)));
    }
    bool flip() { return number(0, 1) == 1; }
    std::int64_t of(std::initializer_list<std::int64_t> choices) {
        return choices.begin()[number(0, static_cast<std::int64_t>(choices.size()) - 1)];
    }
    /// Leading axes of `full`, some of them 1, some left out.
    Shape part_of(Shape full) {
        for (int i = 0; i + 1 < full.rank(); ++i) {
            if (flip()) full[i] = 1;
        }
        const std::int64_t left_out = number(0, full.rank() - 1);
        return Shape(std::span<const std::int64_t>(full.begin() + left_out, full.end()));
    }
    Tensor truths(double p, const Shape& shape) { return less(rng.rand(shape), full({}, p, f64)); }

    RandomState rng;
};

/// Masks, their parts kept apart so that `sees` and `added` say what they mean without Mask.
struct Masks {
    bool causal = false;
    std::int64_t window = 0;
    Tensor keep, allowed, bias;

    static Masks drawn(Draw& draw, const Shape& scores) {
        Masks m;
        const std::int64_t keys = scores.back();
        m.causal = draw.flip();
        if (draw.number(0, 2) == 0) m.window = draw.number(1, keys);
        if (draw.flip()) {
            m.keep = draw.truths(0.7, draw.flip() ? Shape{scores[0], keys} : Shape{keys});
        }
        if (draw.number(0, 2) == 0) m.allowed = draw.truths(0.7, draw.part_of(scores));
        if (draw.number(0, 2) == 0) {
            m.bias = draw.rng.randn(draw.part_of(scores));
            m.bias = where(draw.truths(0.2, m.bias.shape()), full({}, -infinity, f64), m.bias);
        }
        return m;
    }

    Mask mask() const {
        Mask m;
        if (bias.defined()) m = m & Mask::additive(Variable(bias));
        if (keep.defined()) m = m & Mask::padding(keep);
        if (allowed.defined()) m = Mask::boolean(allowed) & m;
        if (window > 0) m = m & Mask::sliding_window(window);
        return causal ? m & Mask::causal() : m;
    }

    /// (batch, heads, query, key): what is added to a score; -inf where the query may not look.
    Tensor added(const Shape& scores) const {
        const auto spread = [&](const Tensor& x) { return broadcast_to(x, scores); };
        const Tensor shown = !keep.defined()    ? Tensor()
                             : keep.rank() == 2 ? spread(unsqueeze(unsqueeze(keep, 1), 1))
                                                : spread(keep);
        const Tensor may = allowed.defined() ? spread(allowed) : Tensor();
        Tensor sums = bias.defined() ? spread(bias) : zeros(scores, f64);
        auto* out = sums.mutable_data<double>();
        for (std::int64_t n = 0; n < sums.numel(); ++n) {
            const std::int64_t j = n % scores[3];
            const std::int64_t position = n / scores[3] % scores[2] + scores[3] - scores[2];
            if ((causal && j > position) || (window > 0 && std::abs(position - j) >= window) ||
                (shown.defined() && !shown.data<bool>()[n]) ||
                (may.defined() && !may.data<bool>()[n])) {
                out[n] = -infinity;
            }
        }
        return sums;
    }
};

/// Weights and heads by loops.
struct ByHand {
    Tensor weights, heads;
    std::int64_t empty = 0;  ///< queries of a head that see nothing
};

ByHand by_hand(const MultiHeadAttentionPoints& p, const Masks& masks, double factor,
               const Tensor& slopes) {
    const Tensor& q = p.query.value();
    const Tensor& k = p.key.value();
    const Tensor& v = p.value.value();
    const Shape scores{q.size(0), q.size(1), q.size(2), k.size(2)};
    const std::int64_t group = q.size(1) / k.size(1);
    const Tensor added = masks.added(scores);
    ByHand result{zeros(scores, f64), zeros(q.shape(), f64)};
    for (std::int64_t b = 0; b < scores[0]; ++b) {
        for (std::int64_t h = 0; h < scores[1]; ++h) {
            for (std::int64_t i = 0; i < scores[2]; ++i) {
                std::vector<double> row;
                double largest = -infinity;
                for (std::int64_t j = 0; j < scores[3]; ++j) {
                    double score = 0;
                    for (std::int64_t d = 0; d < q.size(3); ++d) {
                        score += q.at({b, h, i, d}) * k.at({b, h / group, j, d});
                    }
                    score = score * factor + added.at({b, h, i, j});
                    if (slopes.defined()) {
                        const std::int64_t position = i + scores[3] - scores[2];
                        score -= slopes.at({h}) * static_cast<double>(std::abs(position - j));
                    }
                    row.push_back(score);
                    largest = std::max(largest, score);
                }
                if (largest == -infinity) {
                    ++result.empty;
                    continue;
                }
                double total = 0;
                for (const double score : row) total += std::exp(score - largest);
                for (std::int64_t j = 0; j < scores[3]; ++j) {
                    const double weight =
                        std::exp(row[static_cast<std::size_t>(j)] - largest) / total;
                    result.weights.set({b, h, i, j}, weight);
                    for (std::int64_t d = 0; d < q.size(3); ++d) {
                        result.heads.set({b, h, i, d}, result.heads.at({b, h, i, d}) +
                                                           weight * v.at({b, h / group, j, d}));
                    }
                }
            }
        }
    }
    return result;
}

MultiHeadAttentionOptions drawn_options(Draw& draw) {
    MultiHeadAttentionOptions options{.d_model = draw.number(2, 6),
                                      .num_heads = draw.of({1, 2, 4, 6}),
                                      .head_dim = draw.of({2, 4}),
                                      .bias = draw.flip(),
                                      .alibi = draw.number(0, 2) == 0,
                                      .dtype = f64};
    options.num_kv_heads = options.num_heads / (options.num_heads > 1 ? draw.of({1, 2}) : 1);
    if (draw.flip()) {
        options.rotary = RotaryOptions{.pairing = draw.flip() ? RotaryPairing::halves
                                                              : RotaryPairing::neighbours};
    }
    if (draw.number(0, 3) == 0) options.scale = 0.3;
    return options;
}

/// A layer whose biases are not zero.
void fill_biases(MultiHeadAttention& layer, RandomState& rng) {
    if (!layer.options().bias) return;
    for (const Linear* each : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.out_proj}) {
        init::normal(each->bias, rng);
    }
}

/// x (batch, tokens, ...) with the rows where `rows` (batch, tokens) holds filled.
Tensor with_rows(const Tensor& x, const Tensor& rows, double filling) {
    return where(unsqueeze(rows, -1), full({}, filling, x.dtype()), x);
}

}  // namespace

TEST_CASE("the usual call, the named steps and loops over heads agree under all masks") {
    Draw draw(12);
    std::int64_t empty = 0;
    for (int round = 0; round < 200; ++round) {
        INFO("round " << round);
        MultiHeadAttentionOptions options = drawn_options(draw);
        const std::int64_t batch = draw.number(1, 3), queries = draw.number(1, 5);
        const bool cross = draw.flip();
        const std::int64_t keys = cross ? draw.number(queries, 7) : queries;
        if (cross) {
            options.kdim = 3;
            options.vdim = 5;
            options.rotary.reset();
        }
        MultiHeadAttention layer(options, draw.rng);
        fill_biases(layer, draw.rng);
        const Masks masks = Masks::drawn(draw, {batch, options.num_heads, queries, keys});
        const AttentionCall call{.mask = masks.mask()};
        const Variable x = parameter(draw.rng.randn({batch, queries, options.d_model}), "x");
        const Variable key = parameter(draw.rng.randn({batch, keys, 3}), "key");
        const Variable value = parameter(draw.rng.randn({batch, keys, 5}), "value");

        const MultiHeadAttentionPoints p =
            cross ? layer.points(x, key, value, call) : layer.points(x, call);
        const Variable y = cross ? layer(x, key, value, call) : layer(x, call);
        const double factor =
            options.scale.value_or(1 / std::sqrt(static_cast<double>(options.head_dim)));
        const Tensor slopes = options.alibi ? alibi_slopes(options.num_heads, f64) : Tensor();
        const ByHand hand = by_hand(p, masks, factor, slopes);
        empty += hand.empty;
        CHECK(close(p.weights.value(), hand.weights));
        CHECK(close(p.heads.value(), hand.heads));
        CHECK(close(y.value(), p.output.value()));
        // The tiled form, called for the same.
        AttentionOpOptions tiled{.scale = factor,
                                 .bias = masks.mask().bias(),
                                 .causal = masks.causal,
                                 .window = masks.window,
                                 .form = AttentionForm::tiled};
        const Tensor listed = masks.mask().listed(p.weights.shape());
        if (listed.defined()) tiled.mask = Variable(listed);
        if (slopes.defined()) tiled.alibi = Variable(slopes);
        const Variable heads = scaled_dot_product_attention(p.query, p.key, p.value, tiled);
        CHECK(close(heads.value(), hand.heads));
        const std::vector<Variable> made{p.query, p.key, p.value};
        const Variable gh(draw.rng.randn(heads.shape()));
        const auto in_tiles = grad({heads}, made, {.grad_outputs = {gh}, .retain_graph = true});
        const auto in_steps = grad({p.heads}, made, {.grad_outputs = {gh}, .retain_graph = true});
        for (std::size_t i = 0; i < made.size(); ++i) {
            CHECK(close(in_tiles[i].value(), in_steps[i].value(), 1e-11));
        }

        const Tensor gy = draw.rng.randn(y.shape());
        std::vector<Variable> wanted = layer.parameters();
        wanted.push_back(x);
        if (cross) wanted.insert(wanted.end(), {key, value});
        const GradOptions with{.grad_outputs = {Variable(gy)}};
        const auto usual = grad({y}, wanted, with);
        const auto named = grad({p.output}, wanted, with);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            INFO(wanted[i].name());
            CHECK(finite(usual[i].value()));
            CHECK(close(usual[i].value(), named[i].value(), 1e-11));
        }
    }
    CHECK(empty > 200);  // queries of a head that see nothing
}

TEST_CASE("a query that sees nothing gives the output's bias, to the bit") {
    Draw draw(13);
    for (int round = 0; round < 20; ++round) {
        INFO("round " << round);
        const MultiHeadAttentionOptions options = drawn_options(draw);
        MultiHeadAttention layer(options, draw.rng);
        fill_biases(layer, draw.rng);
        const Tensor x = draw.rng.randn({2, 4, options.d_model});
        Tensor allowed = draw.truths(0.6, {2, 1, 4, 4});
        for (std::int64_t j = 0; j < 4; ++j) allowed.set({1, 0, 2, j}, 0);
        const Variable y = layer(Variable(x), {.mask = Mask::boolean(allowed)});
        const Tensor expected =
            options.bias ? layer.out_proj.bias.value() : zeros({options.d_model}, f64);
        CHECK(same_bits(select(select(y.value(), 0, 1), 0, 2), expected));
    }
}

TEST_CASE("what is hidden changes no bit of the output or of any gradient, whatever it is") {
    Draw draw(14);
    for (int round = 0; round < 25; ++round) {
        MultiHeadAttentionOptions options = drawn_options(draw);
        options.kdim = 3;
        options.vdim = 5;
        MultiHeadAttention layer(options, draw.rng);
        fill_biases(layer, draw.rng);
        const Variable x = parameter(draw.rng.randn({2, 3, options.d_model}), "x");
        const Tensor key = draw.rng.randn({2, 6, 3});
        const Tensor value = draw.rng.randn({2, 6, 5});
        const Tensor keep = draw.truths(0.6, {2, 6});
        const Mask mask =
            Masks::drawn(draw, {2, options.num_heads, 3, 6}).mask() & Mask::padding(keep);
        const Tensor gy = draw.rng.randn({2, 3, options.d_model});
        const auto run = [&](const Tensor& keys, const Tensor& values, bool steps) {
            const Variable k = parameter(keys, "key"), v = parameter(values, "value");
            const MultiHeadAttentionPoints p = layer.points(x, k, v, {.mask = mask});
            const Variable y = steps ? p.output : layer(x, k, v, {.mask = mask});
            std::vector<Variable> wanted = layer.parameters();
            wanted.insert(wanted.end(), {x, k, v});
            std::vector<Tensor> numbers{y.value(), p.weights.value()};
            for (const Variable& each : grad({y}, wanted, {.grad_outputs = {Variable(gy)}})) {
                numbers.push_back(each.value());
            }
            return numbers;
        };
        const Tensor hidden = logical_not(keep);
        for (const bool steps : {false, true}) {
            const std::vector<Tensor> plain = run(key, value, steps);
            for (const double wild : {1e30, infinity, -infinity, not_a_number}) {
                INFO("round " << round << ": " << wild << (steps ? ", named steps" : ""));
                const std::vector<Tensor> got =
                    run(with_rows(key, hidden, wild), with_rows(value, hidden, wild), steps);
                for (std::size_t i = 0; i < plain.size(); ++i) {
                    INFO("number " << i);
                    CHECK(same_bits(got[i], plain[i]));
                }
            }
        }
    }
}

TEST_CASE("at lengths that take tiles, the usual call agrees with the named steps and hides") {
    Draw draw(20);
    const std::int64_t queries = 120, keys = 150;
    REQUIRE(queries * keys >= tiled_attention_threshold);
    MultiHeadAttention layer({.d_model = 6,
                              .num_heads = 4,
                              .num_kv_heads = 2,
                              .head_dim = 3,
                              .kdim = 5,
                              .vdim = 7,
                              .dropout = 0.25,
                              .alibi = true,
                              .dtype = f64},
                             draw.rng);
    fill_biases(layer, draw.rng);
    const Variable x = parameter(draw.rng.randn({2, queries, 6}), "x");
    const Tensor key = draw.rng.randn({2, keys, 5});
    const Tensor value = draw.rng.randn({2, keys, 7});
    const Tensor keep = draw.truths(0.8, {2, keys});
    const Variable bias = parameter(draw.rng.randn({4, 1, keys}), "bias");
    const Mask mask = Mask::causal() & Mask::padding(keep) & Mask::sliding_window(60) &
                      Mask::boolean(draw.truths(0.8, {4, queries, keys})) & Mask::additive(bias);
    const Tensor gy = draw.rng.randn({2, queries, 6});
    const auto run = [&](const Tensor& in_keys, const Tensor& in_values, bool steps) {
        const Variable k = parameter(in_keys, "key"), v = parameter(in_values, "value");
        seed_dropout(layer, 3);
        const Variable y =
            steps ? layer.points(x, k, v, {.mask = mask}).output : layer(x, k, v, {.mask = mask});
        std::vector<Variable> wanted = layer.parameters();
        wanted.insert(wanted.end(), {x, k, v, bias});
        std::vector<Tensor> numbers{y.value()};
        for (const Variable& each : grad({y}, wanted, {.grad_outputs = {Variable(gy)}})) {
            numbers.push_back(each.value());
        }
        return numbers;
    };
    const std::vector<Tensor> plain = run(key, value, false);
    const std::vector<Tensor> named = run(key, value, true);
    const Tensor hidden = logical_not(keep);
    const std::vector<Tensor> wild =
        run(with_rows(key, hidden, not_a_number), with_rows(value, hidden, -infinity), false);
    for (std::size_t i = 0; i < plain.size(); ++i) {
        INFO("number " << i);
        CHECK(close(plain[i], named[i], 1e-11));
        CHECK(same_bits(wild[i], plain[i]));
    }
}

TEST_CASE("a NaN in one token reaches the queries that see it and no other") {
    RandomState rng(3);
    const MultiHeadAttention layer({.d_model = 6, .num_heads = 3, .dtype = f64}, rng);
    const Tensor x = rng.randn({2, 5, 6});
    Tensor wild = x;
    for (std::int64_t d = 0; d < 6; ++d) wild.set({1, 3, d}, not_a_number);
    const Tensor plain = layer(Variable(x), {.mask = Mask::causal()}).value();
    const Tensor y = layer(Variable(wild), {.mask = Mask::causal()}).value();
    CHECK(same_bits(select(y, 0, 0), select(plain, 0, 0)));
    CHECK(same_bits(slice(select(y, 0, 1), 0, {.stop = 3}),
                    slice(select(plain, 0, 1), 0, {.stop = 3})));
    CHECK(std::isnan(y.at({1, 3, 0})));
    CHECK(std::isnan(y.at({1, 4, 5})));
}

TEST_CASE("without positions, tokens in another order give their outputs in that order") {
    Draw draw(15);
    for (int round = 0; round < 10; ++round) {
        MultiHeadAttentionOptions options = drawn_options(draw);
        options.rotary.reset();
        options.alibi = false;
        MultiHeadAttention layer(options, draw.rng);
        fill_biases(layer, draw.rng);
        const Tensor x = draw.rng.randn({2, 6, options.d_model});
        const Tensor keep = draw.truths(0.7, {2, 6});
        const Tensor order = draw.rng.permutation(6);
        const auto turned = [&](const Tensor& t) { return index_select(t, 1, order); };
        const Tensor y = layer(Variable(x), {.mask = Mask::padding(keep)}).value();
        const Tensor z = layer(Variable(turned(x)), {.mask = Mask::padding(turned(keep))}).value();
        CHECK(close(z, turned(y)));
        // With a causal mask, or positions, order means something.
        const Tensor c = layer(Variable(x), {.mask = Mask::causal()}).value();
        const Tensor d = layer(Variable(flip(x, {1})), {.mask = Mask::causal()}).value();
        CHECK_FALSE(close(d, flip(c, {1}), 1e-6));
    }
}

TEST_CASE("a cache gives the numbers of the whole text for every mask, position and step") {
    Draw draw(16);
    for (int round = 0; round < 60; ++round) {
        INFO("round " << round);
        const MultiHeadAttentionOptions options = drawn_options(draw);
        MultiHeadAttention layer(options, draw.rng);
        fill_biases(layer, draw.rng);
        const std::int64_t tokens = 9;
        const Tensor x = draw.rng.randn({3, tokens, options.d_model});
        // Texts of 9, 8 - n and fewer tokens, padded at the left; each counts from its own start.
        Tensor keep = ones({3, tokens}, boolean);
        Tensor positions = zeros({3, tokens}, i64);
        for (std::int64_t b = 0; b < 3; ++b) {
            const std::int64_t padding = b == 0 ? 0 : draw.number(1, 4);
            for (std::int64_t j = 0; j < tokens; ++j) {
                keep.set({b, j}, j >= padding ? 1 : 0);
                positions.set({b, j}, static_cast<double>(std::max<std::int64_t>(0, j - padding)));
            }
        }
        const bool padded = draw.flip();
        const std::int64_t window = draw.flip() ? draw.number(1, 5) : 0;
        const auto call = [&](std::int64_t start, std::int64_t stop, KeyValueCache* cache) {
            AttentionCall made{.mask = Mask::causal(), .cache = cache};
            if (window > 0) made.mask = made.mask & Mask::sliding_window(window);
            if (padded) {
                made.mask = made.mask & Mask::padding(slice(keep, 1, {.stop = stop}));
                made.positions = slice(positions, 1, {.start = start, .stop = stop});
            }
            return made;
        };
        const NoGrad no_grad;
        const Tensor whole = layer(Variable(x), call(0, tokens, nullptr)).value();
        KeyValueCache cache;
        for (std::int64_t done = 0; done < tokens;) {
            const std::int64_t next = std::min(tokens, done + draw.number(1, 4));
            const Tensor part = slice(x, 1, {.start = done, .stop = next});
            const Tensor y = layer(Variable(part), call(done, next, &cache)).value();
            CHECK(close(y, slice(whole, 1, {.start = done, .stop = next})));
            done = next;
        }
        CHECK(cache.length() == tokens);
        if (!padded) continue;
        // Each text alone, without padding: the same numbers.
        for (std::int64_t b = 1; b < 3; ++b) {
            const std::int64_t start =
                tokens - sum(select(keep, 0, b).astype(i64)).item<std::int64_t>();
            Mask mask = Mask::causal();
            if (window > 0) mask = mask & Mask::sliding_window(window);
            const Tensor text = slice(select(x, 0, b), 0, {.start = start});
            CHECK(close(layer(Variable(text), {.mask = mask}).value(),
                        slice(select(whole, 0, b), 0, {.start = start})));
        }
    }
}

TEST_CASE("texts of unequal lengths in one batch give what each gives alone, gradients too") {
    RandomState rng(17);
    TransformerBlock block({.attention = {.d_model = 8,
                                          .num_heads = 4,
                                          .num_kv_heads = 2,
                                          .rotary = RotaryOptions{},
                                          .alibi = true,
                                          .dtype = f64},
                            .feed_forward = {.d_model = 8, .d_ff = 6, .dtype = f64}},
                           rng);
    const Tensor x = rng.randn({3, 6, 8});
    const std::vector<std::int64_t> lengths{6, 4, 1};
    Tensor keep = zeros({3, 6}, boolean);
    Variable alone;
    for (std::int64_t b = 0; b < 3; ++b) {
        const std::int64_t length = lengths[static_cast<std::size_t>(b)];
        for (std::int64_t j = 0; j < length; ++j) keep.set({b, j}, 1);
        const Variable y =
            block(Variable(slice(select(x, 0, b), 0, {.stop = length})), {.mask = Mask::causal()});
        const Variable part = sum(y * y);
        alone = alone.defined() ? alone + part : part;
    }
    const Variable y = block(Variable(x), {.mask = Mask::causal() & Mask::padding(keep)});
    const Variable kept = where(Variable(unsqueeze(keep, -1)), y, Variable(zeros({}, f64)));
    const Variable together = sum(kept * kept);
    CHECK(close(together.value(), alone.value()));
    const auto one = grad({together}, block.parameters());
    const auto other = grad({alone}, block.parameters());
    for (std::size_t i = 0; i < one.size(); ++i) {
        CHECK(close(one[i].value(), other[i].value(), 1e-11));
    }
}

TEST_CASE("training drops, evaluation does not, and the state survives a change of type") {
    RandomState rng(19);
    BlockOptions options{.attention = {.d_model = 8, .num_heads = 2, .dropout = 0.3},
                         .feed_forward = {.d_model = 8, .d_ff = 6, .dropout = 0.3},
                         .dropout = 0.3};
    TransformerBlock block(options, rng);
    options.dropout = options.attention.dropout = options.feed_forward.dropout = 0;
    RandomState same(19);
    TransformerBlock plain(options, same);
    const Tensor x = rng.randn({2, 5, 8}, {.dtype = f32});
    const auto run = [&](const TransformerBlock& module) {
        return module(Variable(x.astype(module.parameters()[0].dtype()))).value();
    };
    const Tensor expected = run(plain);
    const Tensor first = run(block);
    CHECK_FALSE(close(first, expected, 1e-3));
    CHECK_FALSE(close(first, run(block), 1e-3));  // other numbers each time
    seed_dropout(block, 9, 1);
    const Tensor seeded = run(block);
    seed_dropout(block, 9, 1);
    CHECK(same_bits(run(block), seeded));
    block.eval();
    CHECK(same_bits(run(block), expected));
    CHECK(same_bits(run(block), expected));

    const StateDict before = block.state_dict();
    block.to(f64);
    const Tensor wide = run(block);
    CHECK(wide.dtype() == f64);
    CHECK(close(wide, expected.astype(f64), 1e-5));
    // Dropout has the same pattern in both types.
    block.train();
    seed_dropout(block, 9, 1);
    CHECK(close(run(block), seeded.astype(f64), 1e-5));
    block.to(f32);
    const StateDict after = block.state_dict();
    for (std::size_t i = 0; i < before.size(); ++i) {
        CHECK(after[i].first == before[i].first);
        CHECK(same_bits(after[i].second, before[i].second));
    }
    block.load_state_dict(plain.state_dict());
    block.eval();
    CHECK(same_bits(run(block), expected));
}
