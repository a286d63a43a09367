// Mistakes that others reported, by the numbers of the list of cases, each in f64 and f32.

#include "support/catch.hpp"

#include <glassgrad/layers.hpp>

#include <algorithm>
#include <cmath>

using namespace glassgrad;

namespace {

bool near(const Tensor& got, const Tensor& wanted, double f64_tolerance = 1e-9) {
    const double tolerance = got.dtype() == f64 ? f64_tolerance : 2e-6;
    return allclose(got.astype(f64), wanted.astype(f64), {.rtol = tolerance, .atol = tolerance});
}

bool same_bits(const Tensor& a, const Tensor& b) {
    const std::size_t bytes = static_cast<std::size_t>(a.numel()) * item_size(a.dtype());
    return a.shape() == b.shape() && a.dtype() == b.dtype() &&
           std::equal(a.bytes(), a.bytes() + bytes, b.bytes());
}

void set_identity(const Linear& part) {
    Variable weight = part.weight;
    weight.set_value(eye(weight.shape()[0], weight.dtype()));
}

}  // namespace

TEST_CASE("case 20: a query that sees nothing gives the bias of the output and no gradient") {
    for (const DType dtype : {f64, f32}) {
        RandomState rng(3);
        const MultiHeadAttention layer({.d_model = 6, .num_heads = 3, .dtype = dtype}, rng);
        Variable(layer.out_proj.bias).set_value(rng.randn({6}, {.dtype = dtype}));
        const Tensor allowed =
            tensor({{1, 1, 0, 1}, {0, 0, 0, 0}, {0, 1, 0, 0}, {1, 1, 0, 1}}, boolean);
        for (const bool steps : {false, true}) {
            const Variable x = parameter(rng.randn({1, 4, 6}, {.dtype = dtype}), "x");
            MultiHeadAttentionPoints p = layer.points(x, {.mask = Mask::boolean(allowed)});
            const Variable y = steps ? p.output : layer(x, {.mask = Mask::boolean(allowed)});
            CHECK(same_bits(select(select(y.value(), 0, 0), 0, 1), layer.out_proj.bias.value()));
            CHECK(max(abs(select(p.weights.value(), 2, 1))).item() == 0);
            // A loss of that row alone reaches the bias and nothing else.
            const auto g = grad({sum(select(y, 1, 1))},
                                {x, layer.q_proj.weight, layer.k_proj.weight, layer.v_proj.weight,
                                 layer.out_proj.weight, layer.out_proj.bias});
            for (std::size_t i = 0; i + 1 < g.size(); ++i) {
                CHECK(max(abs(g[i].value())).item() == 0);
            }
            CHECK(near(g.back().value(), ones({6}, dtype)));
        }
    }
}

TEST_CASE("case 21: queries that continue a text see all of its past") {
    RandomState rng(3);
    for (const DType dtype : {f64, f32}) {
        const MultiHeadAttention layer({.d_model = 6, .num_heads = 3, .dtype = dtype}, rng);
        const Tensor x = rng.randn({1, 5, 6}, {.dtype = dtype});
        const Variable last(slice(x, 1, {.start = 3}));
        const MultiHeadAttentionPoints p =
            layer.points(last, Variable(x), Variable(x), {.mask = Mask::causal()});
        const Tensor seen =
            greater(select(select(p.weights.value(), 0, 0), 0, 1), zeros({}, dtype));
        CHECK(same_bits(seen, tensor({{1, 1, 1, 1, 0}, {1, 1, 1, 1, 1}}, boolean)));
        const Tensor whole = layer(Variable(x), {.mask = Mask::causal()}).value();
        CHECK(near(p.output.value(), slice(whole, 1, {.start = 3}), 1e-12));
        const NoGrad no_grad;
        KeyValueCache cache;
        layer(Variable(slice(x, 1, {.stop = 3})), {.mask = Mask::causal(), .cache = &cache});
        const Variable y = layer(last, {.mask = Mask::causal(), .cache = &cache});
        CHECK(near(y.value(), slice(whole, 1, {.start = 3}), 1e-12));
    }
}

TEST_CASE("case 22: heads lie side by side") {
    for (const DType dtype : {f64, f32}) {
        RandomState rng(3);
        const MultiHeadAttention layer({.d_model = 4, .num_heads = 2, .dtype = dtype}, rng);
        for (const Linear* each : {&layer.q_proj, &layer.k_proj, &layer.v_proj, &layer.out_proj}) {
            set_identity(*each);
        }
        // Each token sees itself, so that heads are values.
        const Variable x(tensor({{1., 2., 5., 6.}, {3., 4., 7., 8.}}, dtype));
        const auto p = layer.points(x, {.mask = Mask::sliding_window(1)});
        CHECK(same_bits(p.heads.value(), arange(1, 9).astype(dtype).with_shape({1, 2, 2, 2})));
        CHECK(same_bits(p.output.value(), x.value()));
    }
}

TEST_CASE("case 23: weights for one pairing serve the other with their rows exchanged") {
    for (const DType dtype : {f64, f32}) {
        RandomState rng(3);
        const auto layer_for = [&](RotaryPairing pairing) {
            return MultiHeadAttentionOptions{.d_model = 8,
                                             .num_heads = 2,
                                             .rotary = RotaryOptions{.pairing = pairing},
                                             .dtype = dtype};
        };
        const MultiHeadAttention neighbours(layer_for(RotaryPairing::neighbours), rng);
        MultiHeadAttention halves(layer_for(RotaryPairing::halves), rng);
        const Variable x(rng.randn({1, 40, 8}, {.dtype = dtype}));
        const Tensor y = neighbours(x, {.mask = Mask::causal()}).value();
        halves.load_state_dict(neighbours.state_dict());
        const Tensor unlike = halves(x, {.mask = Mask::causal()}).value();
        CHECK(near(select(unlike, 1, 0), select(y, 1, 0)));
        CHECK(max(abs(unlike - y)).item() > 0.01);
        // Within each head (head_dim 4): the first halves of all pairs, then the second.
        const Tensor order = tensor({0, 2, 1, 3, 4, 6, 5, 7}, i64);
        for (const auto& [part, other] : {std::pair{&neighbours.q_proj, &halves.q_proj},
                                          std::pair{&neighbours.k_proj, &halves.k_proj}}) {
            Variable(other->weight).set_value(index_select(part->weight.value(), 0, order));
        }
        CHECK(near(halves(x, {.mask = Mask::causal()}).value(), y, 1e-12));
    }
}

TEST_CASE("cases 26 and 27: two GELUs under two names, with slopes that are finite far out") {
    const Tensor at = tensor({-3., -1., -0.5, 0., 0.5, 1., 2., 3.}, f64);
    const Tensor by_erf = tensor({-0.004049694, -0.158655254, -0.154268769, 0., 0.345731231,
                                  0.841344746, 1.954499736, 2.995950306},
                                 f64);
    const Tensor by_tanh = tensor({-0.003637392, -0.158808009, -0.15428599, 0., 0.34571401,
                                   0.841191991, 1.954597694, 2.996362608},
                                  f64);
    for (const DType dtype : {f64, f32}) {
        const Variable x(at.astype(dtype));
        CHECK(near(activate(Activation::gelu, x).value(), by_erf));
        CHECK(near(activate(Activation::gelu_tanh, x).value(), by_tanh));
        for (const char* text : {"gelu", "gelu_tanh", "silu", "relu"}) {
            INFO(text);
            const Variable far =
                parameter(tensor({10., -10., 100., -100., 1e30, -1e30}, dtype), "far");
            const Variable y = activate(activation_from(text), far);
            const Tensor slope = grad({sum(y)}, {far})[0].value();
            const double tail = std::string_view(text) == "silu" ? 1e-3 : 1e-9;
            CHECK(allclose(slope, tensor({1., 0., 1., 0., 1., 0.}, dtype),
                           {.rtol = tail, .atol = tail}));
        }
    }
}

TEST_CASE("case 28: tied weights are one tensor, on disk, after loading, and for gradients") {
    struct Tied : Module {
        Tied(RandomState& rng, DType dtype)
            : embedding(3, 2, rng, {.dtype = dtype}), head(embedding.weight) {
            register_module("embedding", embedding);
            register_module("head", head);
        }
        Embedding embedding;
        Linear head;
    };
    for (const DType dtype : {f64, f32}) {
        RandomState rng(3);
        Tied model(rng, dtype);
        CHECK(model.state_dict({.repeat_tied = false}).size() == 1);
        const Tensor w = tensor({{0.5, -1.0}, {2.0, 0.25}, {1.0, 1.0}}, dtype);
        model.load_state_dict({{"embedding.weight", w}});
        const Variable loss = cross_entropy(model.head(model.embedding(tensor({2, 0}, i64))),
                                            Variable(tensor({1, 2}, i64)));
        CHECK(near(loss.value(), full({}, 1.469015954, f64)));
        backward(loss);
        const Tensor expected = tensor(
            {{0.187690609, -0.952964942}, {-0.143490936, -0.399007881}, {-0.25161669, 0.799318201}},
            f64);
        CHECK(near(model.head.weight.grad(), expected));
        CHECK(model.head.weight.same_as(model.embedding.weight));
        model.embedding.weight.set_value(w * 2.0);
        CHECK(model.head.weight.value().at({1, 0}) == 4);
    }
}

TEST_CASE("case 29: norms of numbers far from zero keep their spread") {
    const auto normed = [](const Tensor& x, DType dtype) {
        return LayerNorm(x.size(-1), {.eps = 1e-5, .dtype = dtype})(Variable(x.astype(dtype)))
            .value()
            .astype(f64);
    };
    for (const DType dtype : {f64, f32}) {
        for (const double start : {40000.0, 1e6}) {
            const Tensor y = normed(arange(0, 4).astype(f64) + start, dtype);
            CHECK(allclose(y, tensor({-1.34163542, -0.447211807, 0.447211807, 1.34163542}, f64),
                           {.rtol = 1e-3, .atol = 0}));
        }
        const Tensor x = (arange(0, 16).astype(f64) * 0.001 + 10000.0).astype(f32);
        const Tensor y = normed(x, dtype);
        CHECK(y.at({0}) == Approx(-1.331333352).epsilon(1e-4));
        CHECK(y.at({15}) == Approx(1.331333352).epsilon(1e-4));
    }
}

TEST_CASE("cases 30 and 31: eps is inside the root, the variance divides by n") {
    for (const DType dtype : {f64, f32}) {
        const LayerNorm norm(4, {.eps = 1e-5, .dtype = dtype});
        CHECK(allclose(norm(Variable(tensor({0., 0., 0., 1e-3}, dtype))).value().astype(f64),
                       tensor({-0.078326045, -0.078326045, -0.078326045, 0.234978135}, f64),
                       {.rtol = 1e-5, .atol = 1e-8}));
        CHECK(near(norm(Variable(tensor({1., 2., 3., 4.}, dtype))).value(),
                   tensor({-1.34163542, -0.447211807, 0.447211807, 1.34163542}, f64), 1e-8));
        const RMSNorm rms(4, {.eps = 1e-5, .dtype = dtype});
        CHECK(near(rms(Variable(tensor({0., 0., 0., 1e-3}, dtype))).value(),
                   tensor({0., 0., 0., 1e-3 / std::sqrt(2.5e-7 + 1e-5)}, f64)));
    }
}
