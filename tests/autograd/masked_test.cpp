// What a mask hides changes no bit of the output or of any other gradient, whatever it is.

#include "autograd/support/checks.hpp"

#include <functional>
#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Fixture {
    std::string name;
    Tensor q, k, v;
    AttentionOpOptions options;
    std::int64_t hidden;  ///< a key that no query may look at
};

Tensor at_random(const Shape& shape, DType dtype, int seed) {
    return uneven(shape, -2, 2, seed).astype(dtype);
}

/// (keys,) boolean without `hidden`, or 0 and -inf for an added mask.
Tensor without(std::int64_t keys, std::int64_t hidden, bool added, DType dtype) {
    Tensor mask = added ? zeros({keys}, dtype) : ones({keys}, boolean);
    mask.set({hidden}, added ? -inf : 0);
    return mask;
}

std::vector<Fixture> fixtures(DType dtype) {
    std::vector<Fixture> list;
    const auto add = [&](std::string name, const Shape& q, const Shape& k, const Shape& v,
                         AttentionOpOptions options, std::int64_t hidden) {
        list.push_back({std::move(name), at_random(q, dtype, 1), at_random(k, dtype, 2),
                        at_random(v, dtype, 3), options, hidden});
    };
    const auto hide = [&](std::int64_t keys, std::int64_t hidden, bool added) {
        return Variable(without(keys, hidden, added, dtype));
    };
    add("boolean mask", {3, 4}, {5, 4}, {5, 2}, {.mask = hide(5, 2, false)}, 2);
    add("additive mask", {2, 3, 4}, {2, 5, 4}, {2, 5, 2}, {.mask = hide(5, 4, true)}, 4);
    add("causal, key in the future", {3, 4}, {2, 4}, {2, 6}, {.causal = true}, 1);
    list.back().k = at_random({5, 4}, dtype, 2);
    list.back().v = at_random({5, 6}, dtype, 3);
    list.back().options.mask = hide(5, 3, false);
    list.back().hidden = 3;
    add("grouped heads", {2, 6, 3, 4}, {2, 2, 5, 4}, {2, 2, 5, 3}, {.mask = hide(5, 0, false)}, 0);
    add("tiles", {2, 6, 5, 4}, {2, 2, 7, 4}, {2, 2, 7, 3},
        {.mask = hide(7, 3, false), .form = AttentionForm::tiled, .tile = 3}, 3);
    add("tiles, additive mask and causal", {2, 5, 4}, {2, 7, 4}, {2, 7, 3},
        {.mask = hide(7, 3, true), .causal = true, .form = AttentionForm::tiled, .tile = 2}, 3);
    add("products for the BLAS", {2, 40, 16}, {2, 50, 16}, {2, 50, 24},
        {.mask = hide(50, 17, false), .causal = true}, 17);
    return list;
}

struct Outcome {
    std::vector<Tensor> numbers;  ///< output, and all gradients to the second order
    std::vector<std::string> names;
};

Outcome run(const Fixture& fixture, const Tensor& k_value, const Tensor& v_value) {
    const Variable q = parameter(fixture.q), k = parameter(k_value), v = parameter(v_value);
    const Variable y = scaled_dot_product_attention(q, k, v, fixture.options);
    const Tensor cotangent = at_random(y.shape(), y.dtype(), 7);
    Outcome result;
    const auto note = [&](std::string name, const Tensor& x) {
        result.names.push_back(std::move(name));
        result.numbers.push_back(x);
    };
    note("output", y.value());
    const auto usual = grad({y}, {q, k, v}, {.grad_outputs = {cotangent}, .retain_graph = true});
    note("gq", usual[0].value());
    note("gk", usual[1].value());
    note("gv", usual[2].value());
    const auto first = grad({y}, {q, k, v}, {.grad_outputs = {cotangent}, .create_graph = true});
    Variable total;
    for (std::size_t i = 0; i < first.size(); ++i) {
        const Variable part = sum(first[i] * Variable(at_random(first[i].shape(), y.dtype(), 9)));
        total = total.defined() ? total + part : part;
    }
    const auto second = grad({total}, {q, k, v});
    note("ggq", second[0].value());
    note("ggk", second[1].value());
    note("ggv", second[2].value());
    return result;
}

/// x with row `key` of every (key, width) matrix filled.
Tensor with_row(const Tensor& x, std::int64_t key, double value) {
    const std::int64_t rows = x.size(-2);
    Tensor mark = zeros({rows, 1}, boolean);
    mark.set({key, 0}, 1);
    return where(mark, full({}, value, x.dtype()), x);
}

}  // namespace

TEST_CASE("a hidden key or value of 1e30, infinity or NaN changes no bit of anything") {
    for (const DType dtype : {f64, f32}) {
        for (const Fixture& fixture : fixtures(dtype)) {
            const Outcome plain = run(fixture, fixture.k, fixture.v);
            for (const double wild : {1e30, inf, -inf, not_a_number}) {
                for (const bool in_key : {true, false}) {
                    INFO(name(dtype) << ", " << fixture.name << ": a " << (in_key ? "key" : "value")
                                     << " of " << wild);
                    const Tensor k = in_key ? with_row(fixture.k, fixture.hidden, wild) : fixture.k;
                    const Tensor v = in_key ? fixture.v : with_row(fixture.v, fixture.hidden, wild);
                    const Outcome got = run(fixture, k, v);
                    for (std::size_t i = 0; i < plain.numbers.size(); ++i) {
                        INFO(plain.names[i]);
                        CHECK(same_bits(got.numbers[i], plain.numbers[i]));
                    }
                }
            }
        }
    }
}

TEST_CASE("a NaN that one query sees leaves the queries before it alone") {
    const Variable q = parameter(uneven({4, 3}, -2, 2, 1));
    const Tensor keys = uneven({4, 3}, -2, 2, 2);
    const Tensor values = uneven({4, 2}, -2, 2, 3);
    const auto first_rows = [](const Tensor& x) { return slice(x, 0, {.stop = 2}); };
    const auto attend = [&](const Tensor& k, const Tensor& v) {
        return scaled_dot_product_attention(q, parameter(k), parameter(v), {.causal = true});
    };
    const Variable plain = attend(keys, values);
    for (const bool in_key : {true, false}) {
        const Variable y = in_key ? attend(with_row(keys, 2, not_a_number), values)
                                  : attend(keys, with_row(values, 2, not_a_number));
        CHECK(same_bits(first_rows(y.value()), first_rows(plain.value())));
        CHECK(std::isnan(y.value().at({2, 0})));
        CHECK(std::isnan(y.value().at({3, 1})));
        const Tensor gq = grad({sum(y)}, {q})[0].value();
        const Tensor expected = grad({sum(plain)}, {q}, {.retain_graph = true})[0].value();
        CHECK(same_bits(first_rows(gq), first_rows(expected)));
        CHECK(std::isnan(gq.at({2, 0})));
    }
}

TEST_CASE("a query that sees nothing gives zeros, and zero gradients") {
    const Variable q = parameter(uneven({3, 4}, -2, 2, 1));
    const Variable k = parameter(uneven({2, 4}, -2, 2, 2));
    const Variable v = parameter(uneven({2, 5}, -2, 2, 3));
    const Variable y = scaled_dot_product_attention(q, k, v, {.causal = true});
    const Tensor first = slice(y.value(), 0, {.stop = 1});
    CHECK(same_bits(first, zeros({1, 5}, f64)));
    const auto g = grad({sum(y * y + y)}, {q, k, v});
    CHECK(same_bits(slice(g[0].value(), 0, {.stop = 1}), zeros({1, 4}, f64)));
    for (const Variable& each : g) {
        for (const double value : each.value().values<double>()) CHECK(std::isfinite(value));
    }
    // All of them blind: everything is exactly zero.
    const Variable none(zeros({3, 2}, boolean));
    const Variable blind = scaled_dot_product_attention(q, k, v, {.mask = none});
    CHECK(same_bits(blind.value(), zeros({3, 5}, f64)));
    for (const Variable& each : grad({sum(blind)}, {q, k, v})) {
        CHECK(close(each.value(), zeros_like(each.value()), 0));
    }
}

TEST_CASE("softmax of a row of -inf gives zeros and takes zero gradient in every order") {
    for (const DType dtype : {f64, f32}) {
        const Variable x =
            parameter(tensor({{-inf, -inf, -inf}, {1.0, 2.0, -inf}}, f64).astype(dtype));
        const Tensor v =
            tensor({{not_a_number, inf, 1.0}, {0.5, -1.0, not_a_number}}, f64).astype(dtype);
        for (const bool recorded : {false, true}) {
            const Variable gx =
                grad({softmax(x)}, {x}, {.grad_outputs = {v}, .create_graph = recorded})[0];
            CHECK(same_bits(slice(gx.value(), 0, {.stop = 1}), zeros({1, 3}, dtype)));
            CHECK(std::isfinite(gx.value().at({1, 0})));
            CHECK(gx.value().at({1, 2}) == 0);
            if (!recorded) continue;
            const Tensor second = grad({sum(gx)}, {x})[0].value();
            CHECK(sum(not_equal(second, second).astype(i64)).item() == 0);
        }
        const Variable log = log_softmax(x);
        CHECK(log.value().at({0, 1}) == -inf);
        const Tensor ones_there = ones({2, 3}, dtype);
        for (const bool recorded : {false, true}) {
            const Variable gx = grad({log_softmax(x)}, {x},
                                     {.grad_outputs = {ones_there}, .create_graph = recorded})[0];
            CHECK(same_bits(slice(gx.value(), 0, {.stop = 1}), zeros({1, 3}, dtype)));
        }
    }
}

TEST_CASE("queries and keys of width 0 weigh all values alike") {
    const Variable v = parameter(tensor({{1.0, 2.0}, {5.0, -4.0}}, f64));
    const Variable y =
        scaled_dot_product_attention(Variable(zeros({3, 0}, f64)), Variable(zeros({2, 0}, f64)), v);
    CHECK(close(y.value(), tensor({{3.0, -1.0}, {3.0, -1.0}, {3.0, -1.0}}, f64)));
    CHECK(close(grad({sum(y)}, {v})[0].value(), full({2, 2}, 1.5, f64)));
}

TEST_CASE("an infinite weight of an infinite value is infinity, not NaN") {
    const Tensor weights = tensor({{inf, 0.0, 2.0}, {0.0, inf, 1.0}, {1.0, 2.0, 0.0}}, f64);
    const Tensor values = tensor({{inf, 1.0}, {-inf, not_a_number}, {-5.0, inf}}, f64);
    const Tensor y = weighted_sum(weights, values);
    CHECK(y.at({0, 0}) == inf);
    CHECK(y.at({0, 1}) == inf);
    CHECK(y.at({1, 0}) == -inf);
    CHECK(std::isnan(y.at({1, 1})));
    CHECK(std::isnan(y.at({2, 0})));
    const Tensor turned = weighted_sum(transpose(weights), values, {.transpose_weights = true});
    CHECK(same_bits(slice(turned, 0, {.stop = 1}), slice(y, 0, {.stop = 1})));
}

TEST_CASE("the parts of attention are those of the whole, and weights come on demand") {
    const Variable q = parameter(uneven({2, 3, 4}, -2, 2, 1));
    const Variable k = parameter(uneven({2, 5, 4}, -2, 2, 2));
    const Variable v = parameter(uneven({2, 5, 3}, -2, 2, 3));
    const AttentionSteps steps = scaled_dot_product_attention_steps(q, k, v, {.causal = true});
    CHECK(close(steps.scaled.value(), steps.scores.value() * 0.5));
    CHECK(close(sum(steps.weights.value(), {.axes = {-1}}), ones({2, 3}, f64)));
    CHECK(close(steps.output.value(), matmul(steps.weights.value(), v.value())));
    CHECK(steps.masked.value().at({0, 0, 3}) == -inf);
    CHECK(steps.masked.value().at({0, 0, 2}) == steps.scaled.value().at({0, 0, 2}));
    CHECK_FALSE(steps.dropped.defined());
    CHECK(same_bits(scaled_dot_product_attention(q, k, v, {.causal = true}).value(),
                    steps.output.value()));
    // Tensors and Variables compute the same bits.
    CHECK(same_bits(scaled_dot_product_attention(q.value(), k.value(), v.value(), {.causal = true}),
                    steps.output.value()));
    CHECK_FALSE(scaled_dot_product_attention_steps(q, k, v).masked.defined());
}

TEST_CASE("wrong calls of attention say what does not fit") {
    const Tensor q = zeros({2, 3, 4}), k = zeros({2, 5, 4}), v = zeros({2, 5, 6});
    const auto text = [&](const Tensor& a, const Tensor& b, const Tensor& c,
                          const SdpaOptions& options = {}) {
        return message_of([&] { scaled_dot_product_attention(a, b, c, options); });
    };
    const std::string op = "scaled_dot_product_attention: ";
    CHECK(text(q, zeros({2, 5, 3}), v) ==
          op + "q (2, 3, 4), k (2, 5, 3) and v (2, 5, 6): q and k have the widths 4 and 3");
    CHECK(text(q, k, zeros({2, 4, 6})) ==
          op + "q (2, 3, 4), k (2, 5, 4) and v (2, 4, 6): 5 keys but 4 values");
    CHECK(text(zeros({5, 3, 4}), k, v) ==
          op + "q (5, 3, 4), k (2, 5, 4) and v (2, 5, 6): 5 heads of q cannot share 2 of k");
    CHECK(text(q, k, zeros({1, 5, 6})) ==
          op + "q (2, 3, 4), k (2, 5, 4) and v (1, 5, 6): k has 2 heads, v 1");
    CHECK(text(q, k, v, {.mask = zeros({3, 4}, boolean)}) ==
          op + "cannot broadcast (3, 4) with (2, 3, 5): sizes 4 and 5 differ at axis -1; sizes "
               "must agree or be 1, counted from the right");
    CHECK(text(q, k, v, {.mask = zeros({7, 2, 3, 5}, boolean)}) ==
          op + "mask (7, 2, 3, 5) does not broadcast to the scores (2, 3, 5)");
    CHECK(text(q, k, v, {.mask = zeros({3, 5}, i64)}) ==
          op + "the mask is i64, q is f32; a mask is boolean (true: may look) or of the type of q, "
               "to be added");
    CHECK(text(q, k, v, {.dropout_p = 0.5}) == op + "dropout needs a generator; pass .rng = &rng");
    CHECK(text(q, k.astype(f64), v) ==
          op + "f32 (2, 3, 4) and f64 (2, 5, 4) have different types; convert one with astype");
    CHECK(message_of([&] {
              attention_scores(q, zeros({2, 5, 3}));
          }) == "attention_scores: q (2, 3, 4) and k (2, 5, 3) have the widths 4 and 3");
    CHECK(message_of([&] {
              attention_scores(q, zeros({3, 5, 4}));
          }) ==
          "attention_scores: cannot broadcast (2,) with (3,): sizes 2 and 3 differ at axis -1; "
          "sizes must agree or be 1, counted from the right");
    CHECK(message_of([&] { weighted_sum(q, v); }) ==
          "weighted_sum: weights (2, 3, 4) for 4 keys, but 5 values in (2, 5, 6)");
    CHECK(message_of([&] { weighted_sum(q, v, {.transpose_weights = true}); }) ==
          "weighted_sum: weights (2, 3, 4) transposed for 3 keys, but 5 values in (2, 5, 6)");
    CHECK(text(zeros({4}), k, v) == op + "needs matrices, got (4,) and (2, 5, 4)");
}

TEST_CASE("dropout with p = 0 is its input, with p = 1 zeros without a gradient") {
    CounterRng rng(3);
    const Variable x = parameter(uneven({3, 4}), "x");
    CHECK(dropout(x, rng, {.p = 0}).same_as(x));
    const Variable y = dropout(x, rng, {.p = 1});
    CHECK(close(y.value(), zeros({3, 4}, f64), 0));
    backward(sum(y));
    CHECK(close(x.grad(), zeros({3, 4}, f64), 0));
}

TEST_CASE("a row of NaN with a gradient of exactly 0 stays out of a weight's gradient") {
    const Variable w = parameter(uneven({2, 3}, -1, 1, 4), "w");
    for (const Shape& shape : {Shape{4, 3}, Shape{2, 4, 3}}) {
        Tensor wild = uneven(shape, -1, 1, 5);
        Tensor plain = wild;
        Tensor gy = uneven(Shape{shape.numel() / 3, 2}, -1, 1, 6);
        for (std::int64_t d = 0; d < 3; ++d) {
            wild.mutable_data<double>()[3 + d] = d == 1 ? not_a_number : inf;
            plain.mutable_data<double>()[3 + d] = 0;
        }
        for (std::int64_t d = 0; d < 2; ++d) gy.set({1, d}, 0);
        Shape out = shape;
        out[out.rank() - 1] = 2;
        for (const bool recorded : {false, true}) {
            INFO(to_string(shape) << (recorded ? ", recorded" : ""));
            const auto gradient = [&](const Tensor& x) {
                const Variable g = parameter(reshape(gy, out), "gy");
                const Variable y = matmul(Variable(x), w, {.transpose_b = true});
                return grad({y}, {w}, {.grad_outputs = {g}, .create_graph = recorded})[0];
            };
            CHECK(same_bits(gradient(wild).value(), gradient(plain).value()));
            // A row that takes part says what it holds.
            gy.set({1, 0}, 1);
            CHECK(std::isnan(gradient(wild).value().at({0, 1})));
            CHECK(gradient(wild).value().at({0, 0}) == inf);
            CHECK(std::isfinite(gradient(wild).value().at({1, 1})));
            gy.set({1, 0}, 0);
        }
    }
}
