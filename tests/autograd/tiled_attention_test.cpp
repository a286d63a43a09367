// Attention in tiles is attention: what it gives, its gradients and what it leaves alone are those
// of the named form, in memory that grows with the length.

#include "autograd/support/checks.hpp"

#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include <algorithm>
#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// A call with all that may come together, drawn from a seed.
struct Case {
    CounterRng rng;
    Tensor q, k, v, cotangent;
    AttentionOpOptions options;
    std::string text;

    std::int64_t draw(std::int64_t low, std::int64_t high) {
        return low +
               static_cast<std::int64_t>(rng.next_double() * static_cast<double>(high - low + 1));
    }
    bool chance(double p) { return rng.next_double() < p; }
    Tensor values(const Shape& shape) { return rng.random(shape, {.dtype = f64}) * 4.0 - 2.0; }

    /// A shape that broadcasts to `scores`.
    Shape broadcast(Shape scores) {
        for (int i = 0; i < scores.rank(); ++i) {
            if (chance(0.4)) scores[i] = 1;
        }
        while (scores.rank() > 1 && chance(0.2)) scores.erase(0);
        return scores;
    }
    /// Numbers of which some are -inf.
    Tensor added(const Shape& shape) {
        const Tensor hides = rng.bernoulli(0.3, shape);
        return where(hides, full({}, -inf, f64), values(shape));
    }

    explicit Case(std::uint64_t seed) : rng(seed, 11) {
        const std::int64_t shared = draw(1, 2);
        const std::int64_t heads = shared * draw(1, 3);
        const std::int64_t queries = chance(0.04) ? 0 : draw(1, 7);
        const std::int64_t keys = chance(0.04) ? 0 : draw(1, 9);
        const std::int64_t width = chance(0.04) ? 0 : draw(1, 4);
        const std::int64_t value_width = chance(0.04) ? 0 : draw(1, 3);
        Shape leading;
        const int kind = static_cast<int>(draw(0, 2));
        if (kind == 2) leading.push_back(draw(1, 2));
        const auto shape = [&](std::int64_t h, std::int64_t rows, std::int64_t columns) {
            Shape full = leading;
            if (kind > 0) full.push_back(h);
            full.push_back(rows);
            full.push_back(columns);
            return full;
        };
        q = values(shape(heads, queries, width));
        k = values(shape(shared, keys, width));
        v = values(shape(shared, keys, value_width));
        cotangent = values(shape(heads, queries, value_width));
        const Shape scores = shape(heads, queries, keys);
        if (chance(0.3)) options.mask = Variable(rng.bernoulli(0.6, broadcast(scores)));
        if (!options.mask.defined() && chance(0.4)) {
            options.mask = parameter(added(broadcast(scores)));
        }
        if (chance(0.4)) options.bias = parameter(added(broadcast(scores)));
        options.causal = chance(0.4);
        if (chance(0.3)) options.window = draw(1, 4);
        if (chance(0.3)) options.alibi = Variable(values({kind > 0 ? heads : 1}));
        if (chance(0.3)) options.dropout_p = chance(0.1) ? 1 : 0.3;
        options.tile = draw(1, 4);
        text = "seed " + std::to_string(seed) + ": q " + to_string(q.shape()) + ", k " +
               to_string(k.shape()) + ", v " + to_string(v.shape());
    }
};

/// The result, the gradients of all that has one, and the position of the generator.
std::vector<Tensor> outcome(const Case& call, AttentionForm form) {
    CounterRng rng(3, 5);
    AttentionOpOptions options = call.options;
    options.rng = &rng;
    options.form = form;
    const Variable q = parameter(call.q), k = parameter(call.k), v = parameter(call.v);
    const Variable y = scaled_dot_product_attention(q, k, v, options);
    std::vector<Variable> inputs{q, k, v};
    for (const Variable* x : {&options.mask, &options.bias}) {
        if (x->requires_grad()) inputs.push_back(*x);
    }
    std::vector<Tensor> all{y.value()};
    const Variable cotangent(call.cotangent);
    const GradOptions kept{.grad_outputs = {cotangent}, .retain_graph = true};
    for (const Variable& g : grad({y}, inputs, kept)) all.push_back(g.value());
    for (std::size_t i = 0; i < inputs.size() && form == AttentionForm::tiled; ++i) {
        // One gradient alone has the bits that it has among the others.
        CHECK(same_bits(grad({y}, {inputs[i]}, kept)[0].value(), all[i + 1]));
    }
    all.push_back(full({}, static_cast<double>(rng.position()), f64));
    return all;
}

/// `named`, but `tiled` where `named` is NaN.
Tensor without_nan(const Tensor& named, const Tensor& tiled) {
    return where(equal(named, named), named, tiled);
}

bool has_empty_row(const Tensor& x) {
    const std::int64_t width = x.size(-1);
    for (std::int64_t i = 0; i + width <= x.numel() && width > 0; i += width) {
        const double* row = x.data<double>() + i;
        if (std::all_of(row, row + width, [](double each) { return each == 0; })) return true;
    }
    return false;
}

constexpr const char* parts[] = {"output", "gq", "gk", "gv", "gmask or gbias", "gbias", "", ""};

Variable attend(const std::vector<Variable>& x, AttentionForm form) {
    return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true, .form = form});
}

std::vector<Variable> leaves(std::int64_t heads, std::int64_t length, std::int64_t width) {
    std::vector<Variable> x;
    for (int i = 0; i < 3; ++i) {
        x.push_back(parameter(uneven({heads, length, width}, -2, 2, i + 1)));
    }
    return x;
}

struct Names final : Observer {
    void on_forward(const ForwardEvent& event) override {
        all += std::string(event.row.name) + " ";
    }
    std::string all;
};

}  // namespace

TEST_CASE("in tiles and step by step, attention and its gradients are the same") {
    int blind = 0;
    for (std::uint64_t seed = 0; seed < 400; ++seed) {
        Case call(seed);
        INFO(call.text);
        const std::vector<Tensor> named = outcome(call, AttentionForm::named);
        for (const std::int64_t tile : {call.options.tile, std::int64_t{0}}) {
            call.options.tile = tile;
            const std::vector<Tensor> tiled = outcome(call, AttentionForm::tiled);
            REQUIRE(named.size() == tiled.size());
            for (std::size_t i = 0; i < named.size(); ++i) {
                INFO(parts[i] << " in tiles of " << tile);
                CHECK(close(tiled[i], named[i], 1e-12));
            }
            blind += has_empty_row(tiled[0]) ? 1 : 0;
        }
    }
    // Rows without a key are among them.
    CHECK(blind > 80);
}

TEST_CASE("what tiles hide leaks into no bit of output and gradients") {
    int compared = 0;
    for (std::uint64_t seed = 1000; seed < 1150; ++seed) {
        Case call(seed);
        const std::int64_t keys = call.k.size(-2);
        const std::int64_t queries = call.q.size(-2);
        if (keys == 0 || queries == 0 || call.q.numel() == 0 || call.v.numel() == 0) continue;
        INFO(call.text);
        // Nobody sees one key, and one query sees nobody.
        Tensor seen = ones({queries, keys}, boolean);
        const std::int64_t key = call.draw(0, keys - 1);
        const std::int64_t query = call.draw(0, queries - 1);
        for (std::int64_t i = 0; i < queries; ++i) seen.set({i, key}, 0);
        for (std::int64_t j = 0; j < keys; ++j) seen.set({query, j}, 0);
        call.options.mask = Variable(seen);
        if (seed % 2 == 0) call.options.tile = 0;
        const auto planted = [&](double wild) {
            Case other = call;
            const auto fill = [wild](Tensor& x, std::int64_t row) {
                Tensor mark = zeros({x.size(-2), 1}, boolean);
                mark.set({row, 0}, 1);
                x = where(mark, full({}, wild, f64), x);
            };
            fill(other.k, key);
            fill(other.v, key);
            fill(other.q, query);
            fill(other.cotangent, query);
            return outcome(other, AttentionForm::tiled);
        };
        const std::vector<Tensor> plain = planted(0);
        for (const double wild : {inf, std::numeric_limits<double>::quiet_NaN()}) {
            const std::vector<Tensor> got = planted(wild);
            for (std::size_t i = 0; i < got.size(); ++i) {
                INFO(parts[i] << " with " << wild);
                CHECK(same_bits(got[i], plain[i]));
                ++compared;
            }
        }
    }
    CHECK(compared > 1000);
}

TEST_CASE("values that are infinite or NaN reach those who see them, as in the named form") {
    for (const double wild : {inf, -inf, std::numeric_limits<double>::quiet_NaN()}) {
        for (const int drawn : {0, 1, 2, 3, 4, 5, 6, 7}) {
            const int which = drawn % 4;
            const std::int64_t tile = drawn < 4 ? 2 : 0;
            INFO(wild << " in input " << which << ", tiles of " << tile);
            std::vector<Tensor> x{uneven({6, 3}, -2, 2, 1), uneven({7, 3}, -2, 2, 2),
                                  uneven({7, 2}, -2, 2, 3), uneven({6, 7}, -2, 2, 4)};
            x[static_cast<std::size_t>(which)].set({4, 1}, wild);
            std::vector<Tensor> of_form[2];
            for (const AttentionForm form : {AttentionForm::named, AttentionForm::tiled}) {
                const Variable q = parameter(x[0]), k = parameter(x[1]), v = parameter(x[2]);
                const Variable bias = parameter(x[3]);
                const Variable y = scaled_dot_product_attention(
                    q, k, v, {.bias = bias, .form = form, .tile = tile});
                auto& all = of_form[form == AttentionForm::tiled ? 1 : 0];
                all.push_back(y.value());
                for (const Variable& g : grad({sum(y)}, {q, k, v, bias})) {
                    all.push_back(g.value());
                }
            }
            for (std::size_t i = 0; i < of_form[0].size(); ++i) {
                INFO(parts[i] << "\n" << of_form[0][i] << "\n" << of_form[1][i]);
                Tensor wanted = of_form[0][i];
                // A score of -inf takes no part, not even in a row that is NaN; in the named form
                // such a row is NaN throughout.
                if (i > 0 && which == 0) wanted = without_nan(wanted, of_form[1][i]);
                CHECK(close(of_form[1][i], wanted, 1e-12));
            }
        }
    }
}

TEST_CASE("texts of several panels are attended to whole as in the named form") {
    struct Sizes {
        std::int64_t queries, keys, width, value_width, window;
    };
    for (const Sizes& n :
         {Sizes{64, 64, 32, 32, 0}, Sizes{65, 65, 16, 48, 0}, Sizes{33, 70, 5, 19, 0},
          Sizes{40, 40, 16, 16, 7}, Sizes{70, 33, 16, 8, 0}, Sizes{17, 100, 24, 16, 30}}) {
        for (const bool causal : {false, true}) {
            for (const DType dtype : {f64, f32}) {
                INFO(n.queries << " queries, " << n.keys << " keys, " << name(dtype)
                               << (causal ? ", causal" : ""));
                std::vector<Tensor> of_form[2];
                for (const AttentionForm form : {AttentionForm::named, AttentionForm::tiled}) {
                    const std::vector<Variable> x{
                        parameter(uneven({2, 4, n.queries, n.width}, -2, 2, 1).astype(dtype)),
                        parameter(uneven({2, 2, n.keys, n.width}, -2, 2, 2).astype(dtype)),
                        parameter(uneven({2, 2, n.keys, n.value_width}, -2, 2, 3).astype(dtype))};
                    const Variable y = scaled_dot_product_attention(
                        x[0], x[1], x[2], {.causal = causal, .window = n.window, .form = form});
                    auto& all = of_form[form == AttentionForm::tiled ? 1 : 0];
                    all.push_back(y.value());
                    const Variable cotangent(uneven(y.shape(), -1, 1, 4).astype(dtype));
                    for (const Variable& g : grad({y}, x, {.grad_outputs = {cotangent}})) {
                        all.push_back(g.value());
                    }
                }
                for (std::size_t i = 0; i < 4; ++i) {
                    INFO(parts[i]);
                    CHECK(close(of_form[1][i].astype(f64), of_form[0][i].astype(f64),
                                dtype == f64 ? 1e-12 : 2e-5));
                }
            }
        }
    }
}

TEST_CASE("weights that are kept are those that are computed again, to the bit") {
    const Tensor q = uneven({2, 4, 37, 16}, -2, 2, 1), k = uneven({2, 2, 41, 16}, -2, 2, 2);
    const Tensor gy = uneven({2, 4, 37, 16}, -1, 1, 3);
    detail::TiledGradients of[2];
    for (const bool keeps : {false, true}) {
        CounterRng rng(3);
        detail::TiledCall call =
            detail::tiled_call(q, k, k, {.causal = true, .dropout_p = 0.2, .rng = &rng});
        call.keeps = keeps;
        const detail::TiledResult attended = detail::attend_in_tiles(q, k, k, call);
        CHECK(attended.weights.defined() == keeps);
        of[keeps ? 1 : 0] = detail::attend_in_tiles_vjp(q, k, k, call, attended, gy,
                                                        {.q = true, .k = true, .v = true});
    }
    CHECK(same_bits(of[0].q, of[1].q));
    CHECK(same_bits(of[0].k, of[1].k));
    CHECK(same_bits(of[0].v, of[1].v));
}

TEST_CASE("heads side by side give what heads on an axis give, to the bit") {
    const auto together = [](const Tensor& x) {
        Shape shape = x.shape();
        const int rank = shape.rank();
        std::swap(shape[rank - 3], shape[rank - 2]);
        shape[rank - 2] *= shape[rank - 1];
        const std::int64_t tokens = shape[rank - 3];
        shape.erase(rank - 1);
        shape[rank - 3] = tokens;
        return reshape(transpose(x, -3, -2), shape);
    };
    int seen = 0;
    for (std::uint64_t seed = 0; seed < 150; ++seed) {
        Case call(seed);
        if (call.q.rank() < 3) continue;
        if (seed % 2 == 0) call.options.tile = 0;
        ++seen;
        INFO(call.text);
        for (const AttentionForm form : {AttentionForm::named, AttentionForm::tiled}) {
            const auto run = [&](bool side_by_side) {
                CounterRng rng(3, 5);
                AttentionOpOptions options = call.options;
                options.rng = &rng;
                options.form = form;
                if (side_by_side) {
                    options.heads = call.q.size(-3);
                    options.kv_heads = call.k.size(-3);
                }
                const auto laid = [&](const Tensor& x) { return side_by_side ? together(x) : x; };
                const std::vector<Variable> x{parameter(laid(call.q)), parameter(laid(call.k)),
                                              parameter(laid(call.v))};
                const Variable y = scaled_dot_product_attention(x[0], x[1], x[2], options);
                std::vector<Tensor> all{y.value()};
                const Variable cotangent(laid(call.cotangent));
                for (const bool recorded : {false, true}) {
                    for (const Variable& g : grad({y}, x,
                                                  {.grad_outputs = {cotangent},
                                                  .create_graph = recorded,
                                                  .retain_graph = true})) {
                        all.push_back(g.value());
                    }
                }
                return all;
            };
            const std::vector<Tensor> apart = run(false);
            const std::vector<Tensor> side = run(true);
            for (std::size_t i = 0; i < apart.size(); ++i) {
                INFO("number " << i);
                CHECK(same_bits(side[i], together(apart[i])));
            }
        }
    }
    CHECK(seen > 80);
}

TEST_CASE("heads that do not fit side by side are refused") {
    const Tensor x = uneven({4, 6}, -1, 1, 1);
    CHECK(message_of<ShapeError>([&] { tiled_attention(x, x, x, {.heads = 4}); }) ==
          "scaled_dot_product_attention: (4, 6) has no 4 heads side by side");
    CHECK(message_of<ValueError>([&] { tiled_attention(x, x, x, {.heads = 3, .kv_heads = 2}); }) ==
          "scaled_dot_product_attention: 3 heads side by side cannot share 2");
}

TEST_CASE("scores of any size keep their weights in f32 and f64") {
    for (const DType dtype : {f64, f32}) {
        const Tensor q = (uneven({9, 1}, -1, 1, 1) * 800.0).astype(dtype);
        const Tensor k = uneven({33, 1}, -1, 1, 2).astype(dtype);
        const Tensor v = uneven({33, 2}, -2, 2, 3).astype(dtype);
        const SdpaOptions tiled{.scale = 1, .form = AttentionForm::tiled, .tile = 4};
        const Tensor wanted =
            scaled_dot_product_attention(q.astype(f64), k.astype(f64), v.astype(f64), {.scale = 1});
        const Tensor y = scaled_dot_product_attention(q, k, v, tiled);
        CHECK(close(y.astype(f64), wanted, dtype == f64 ? 1e-12 : 1e-4));
    }
}

TEST_CASE("a scale that is not positive shows no key that order or window hides") {
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
        Case call(seed);
        call.options.scale = seed % 2 == 0 ? -0.7 : 0.0;
        if (seed % 5 < 2) call.options.tile = 0;
        call.options.causal = seed % 3 != 0;
        call.options.window = seed % 3 == 1 ? 0 : 2;
        if (seed % 4 != 0) call.options.mask = call.options.bias = call.options.alibi = Variable();
        INFO(call.text);
        const std::vector<Tensor> named = outcome(call, AttentionForm::named);
        const std::vector<Tensor> tiled = outcome(call, AttentionForm::tiled);
        REQUIRE(named.size() == tiled.size());
        for (std::size_t i = 0; i < named.size(); ++i) CHECK(close(tiled[i], named[i], 1e-12));
    }
}

TEST_CASE("long sequences go through tiles, unless somebody looks or asks for steps") {
    const auto op_of = [](std::int64_t length, AttentionForm form = AttentionForm::automatic) {
        return std::string(attend(leaves(1, length, 2), form).op());
    };
    CHECK(op_of(15) == "scaled_dot_product_attention");
    CHECK(op_of(16) == "tiled_attention");
    CHECK(op_of(128, AttentionForm::named) == "weighted_sum");
    const Variable few = parameter(uneven({7, 2}, -2, 2, 1));
    const Variable many = parameter(uneven({99, 2}, -2, 2, 2));
    CHECK(scaled_dot_product_attention(few, many, many).op() == "matmul");
    CHECK(op_of(5, AttentionForm::tiled) == "tiled_attention");
    {
        Names names;
        const Observing observing(names);
        CHECK(op_of(15) == "weighted_sum");
        CHECK(op_of(128) == "weighted_sum");
        CHECK(op_of(128, AttentionForm::tiled) == "tiled_attention");
    }
    // Leading axes that broadcast are for the named form.
    const Variable q = parameter(uneven({2, 128, 2}, -2, 2, 1));
    const Variable k = parameter(uneven({128, 2}, -2, 2, 2));
    CHECK(scaled_dot_product_attention(q, k, k).op() == "matmul");
    CHECK(message_of<ShapeError>([&] { tiled_attention(q, k, k); }) ==
          "tiled_attention: q (2, 128, 2), k (128, 2) and v (128, 2) have different leading axes; "
          "broadcast_to them, or take another form");
    CHECK(message_of<ValueError>([&] { tiled_attention(k, k, k, {.tile = -1}); }) ==
          "scaled_dot_product_attention: the tile -1 is negative; pass 0 to leave it to the "
          "library");
    const Variable slopes = parameter(ones({1}, f64));
    for (const AttentionForm form : {AttentionForm::named, AttentionForm::tiled}) {
        CHECK(message_of<GraphError>([&] {
                  scaled_dot_product_attention(k, k, k, {.alibi = slopes, .form = form});
              }) ==
              "scaled_dot_product_attention: the slopes of alibi require a gradient, which would "
              "be lost; pass slopes.detach(), or a learned bias as .bias");
    }
}

TEST_CASE("a checkpoint takes the form again that it took first, whoever watches") {
    const std::vector<Variable> x = leaves(1, 130, 2);
    const auto f = [](std::span<const Variable> in) {
        return attend({in.begin(), in.end()}, AttentionForm::automatic);
    };
    for (const bool first : {false, true}) {
        for (const bool second : {false, true}) {
            INFO("watched first " << first << ", then " << second);
            Names names;
            Variable y;
            if (first) {
                const Observing observing(names);
                y = checkpoint(f, x);
            } else {
                y = checkpoint(f, x);
            }
            names.all.clear();
            if (second) {
                const Observing observing(names);
                CHECK(grad({sum(y)}, {x[0]}).size() == 1);
                CHECK((names.all.find("tiled_attention") != std::string::npos) == !first);
            } else {
                CHECK(grad({sum(y)}, {x[0]}).size() == 1);
            }
        }
    }
}

TEST_CASE("the peak of attention in tiles grows with the length, forward and backward") {
    const auto peak = [](std::int64_t length) {
        const std::vector<Variable> x = leaves(2, length, 4);
        const Tensor hidden = ones({1, length}, boolean);
        const std::int64_t before = memory_stats().live_bytes;
        reset_peak_memory();
        CounterRng rng(1);
        const Variable y = scaled_dot_product_attention(x[0], x[1], x[2],
                                                        {.mask = Variable(hidden),
                                                         .causal = true,
                                                         .window = 200,
                                                         .dropout_p = 0.1,
                                                         .rng = &rng,
                                                         .form = AttentionForm::tiled,
                                                         .tile = 16});
        grad({sum(y)}, x);
        return static_cast<double>(memory_stats().peak_bytes - before);
    };
    peak(256);
    const double small = peak(256), large = peak(512);
    CHECK(large < 2.2 * small);
    // One matrix of scores is 2 MB for each head.
    CHECK(large < 1e6);
}

TEST_CASE("a swept graph of tiles holds nothing of its inputs, and is not swept again") {
    const std::int64_t before = memory_stats().live_bytes;
    std::vector<Variable> x = leaves(2, 64, 32);
    const std::int64_t values = memory_stats().live_bytes - before;
    const Variable y = sum(attend(x, AttentionForm::tiled));
    backward(y);
    x.clear();
    // The leaves' gradients stay in the graph, their values do not.
    CHECK(memory_stats().live_bytes - before < values + 4096);
    CHECK(message_of<GraphError>([&] { backward(y); }).find("was swept before") !=
          std::string::npos);
}
