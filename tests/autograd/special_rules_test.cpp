// Integers that wrap, signs of zero, settings and shapes that are refused.

#include "autograd/support/special_values.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

using In = std::span<const Variable>;

Tensor whole(std::initializer_list<std::int64_t> values) {
    return from_span(std::span<const std::int64_t>(values.begin(), values.size()),
                     {static_cast<std::int64_t>(values.size())});
}
constexpr std::int64_t smallest_i64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest_i64 = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("zeros keep their sign") {
    for (const DType dtype : {f64, f32}) {
        const Tensor x = tensor({-0.0, 0.0}).astype(dtype);
        for (const Tensor& y : {relu(x), leaky_relu(x), elu(x), clamp(x, {.min = -1}), sqrt(x),
                                expm1(x), log1p(x), sin(x), tanh(x), erf(x)}) {
            CHECK(std::signbit(numbers(y)[0]));
            CHECK_FALSE(std::signbit(numbers(y)[1]));
        }
    }
}

TEST_CASE("integers wrap and never trap") {
    struct Row {
        const char* call;
        Tensor got;
        Tensor expected;
    };
    const Tensor x = whole({smallest_i64, largest_i64, -3, 0});
    const Tensor mask = tensor({1.0, 0.0, 0.0, 1.0}).astype(boolean);
    const Row rows[] = {
        {"abs", abs(x), whole({smallest_i64, largest_i64, 3, 0})},
        {"neg", neg(x), whole({smallest_i64, -largest_i64, 3, 0})},
        {"sign", sign(x), whole({-1, 1, -1, 0})},
        {"square", square(x), whole({0, 1, 9, 0})},
        {"clamp", clamp(x, {.min = -2, .max = 2}), whole({-2, 2, -2, 0})},
        {"maximum", maximum(x, whole({0, 0, 0, 0})), whole({0, largest_i64, 0, 0})},
        {"minimum", minimum(x, whole({0, 0, 0, 0})), whole({smallest_i64, 0, -3, 0})},
        {"where", where(mask, x, whole({1, 2, 3, 4})), whole({smallest_i64, 2, 3, 0})},
        {"masked_fill", masked_fill(x, mask, 7), whole({7, largest_i64, -3, 7})},
        {"prod", reshape(prod(whole({largest_i64, 2})), {1}), whole({-2})},
        {"cumsum", cumsum(whole({largest_i64, 1}), 0), whole({largest_i64, smallest_i64})},
        {"max", reshape(max(x), {1}), whole({largest_i64})},
        {"argmin", reshape(argmin(x), {1}), whole({0})},
    };
    for (const Row& row : rows) {
        INFO(row.call << ": " << row.got);
        CHECK(same_bits(row.got, row.expected));
    }
}

TEST_CASE("integers are refused where the result would be rounded") {
    const Tensor x = whole({4, 9});
    using Function = Tensor (*)(const Tensor&);
    for (const Function f :
         {Function(exp), Function(expm1), Function(log), Function(log1p), Function(sqrt),
          Function(rsqrt), Function(reciprocal), Function(sin), Function(cos), Function(tanh),
          Function(sigmoid), Function(softplus), Function(relu), Function(silu), Function(erf)}) {
        CHECK_THAT(message_of<TypeError>([&] { f(x); }),
                   ContainsSubstring("needs a floating tensor, got i64"));
    }
    CHECK_THAT(message_of<TypeError>([&] { div(x, x); }),
               ContainsSubstring("needs a floating tensor, got i64"));
    CHECK_THAT(message_of<TypeError>([&] { logsumexp(x); }),
               ContainsSubstring("needs a floating tensor, got i64"));
    CHECK_THAT(message_of<TypeError>([&] { clamp(x, {.min = 0.5}); }),
               ContainsSubstring("clamp: 0.5 is not an integer, the tensor is i64"));
}

TEST_CASE("clamp, norm and masked_fill refuse settings that make no sense") {
    const Tensor x = tensor({1.0, 2.0});
    CHECK(message_of<ValueError>([&] { clamp(x, {}); }) == "clamp: neither min nor max is given");
    CHECK(message_of<ValueError>([&] { clamp(x, {.min = 2, .max = 1}); }) ==
          "clamp: min 2 is larger than max 1");
    CHECK(message_of<ValueError>([&] { clamp(x, {.min = NaN}); }) == "clamp: a bound is NaN");
    CHECK(message_of<ValueError>([&] { norm(x, {.ord = 3}); }) ==
          "norm: ord must be 1, 2 or infinity, got 3");
    CHECK_THAT(message_of<TypeError>([&] { masked_fill(x, x, 0); }),
               ContainsSubstring("masked_fill: the mask must be boolean, got f32 (2,)"));
    CHECK_THAT(message_of<ValueError>([&] { glassgrad::std(x, {.correction = 2}); }),
               ContainsSubstring("std: 2 elements with correction 2 leave no degree of freedom"));
}

TEST_CASE("reductions of nothing give what adds nothing, or throw") {
    const Tensor none = Tensor::empty({0}, f64);
    CHECK(sum(none).item() == 0);
    CHECK(prod(none).item() == 1);
    CHECK(norm(none).item() == 0);
    CHECK(norm(none, {.ord = 1}).item() == 0);
    CHECK(logsumexp(none).item() == -inf);
    CHECK(cumsum(none, 0).shape() == Shape{0});
    const std::string text = ": nothing to reduce: shape (0,) has no elements along the axes asked";
    CHECK(message_of<ValueError>([&] { mean(none); }) == "mean" + text);
    CHECK(message_of<ValueError>([&] { var(none); }) == "var" + text);
    CHECK(message_of<ValueError>([&] { glassgrad::std(none); }) == "std" + text);
    CHECK(message_of<ValueError>([&] { max(none); }) == "max" + text);
    CHECK(message_of<ValueError>([&] { min(none); }) == "min" + text);
    CHECK(message_of<ValueError>([&] { argmax(none); }) == "argmax" + text);
    CHECK(message_of<ValueError>([&] { argmin(none); }) == "argmin" + text);
    CHECK(message_of<ValueError>([&] { norm(none, {.ord = inf}); }) == "norm" + text);
}

TEST_CASE("argmax and argmin have no derivative and say so") {
    const Variable x = x64({1.0, 3.0, 2.0});
    CHECK_THROWS_AS(argmax(x), GraphError);
    const NoGrad off;
    CHECK(argmax(x).item() == 1);
    CHECK(argmin(x, {.axis = 0, .keepdims = true}).shape() == Shape{1});
}

TEST_CASE("a product's gradient is the same in a watched and in a recorded pass, along any axes") {
    const Variable x = parameter(uneven({2, 4, 3}));
    for (const Axes& axes : {Axes(0), Axes(1), Axes(2), Axes({0, 2}), Axes({1, 0}), Axes()}) {
        const auto product = [&](In in) { return prod(in[0], {.axes = axes}); };
        const GradcheckReport report = gradcheck(product, {x});
        INFO(report.text);
        CHECK(report);
        const Variable y = prod(x, {.axes = axes});
        const Variable gy(uneven(y.shape(), -1, 1, 4));
        const GradOptions keep{.grad_outputs = {gy}, .retain_graph = true};
        const Tensor usual = grad({y}, {x}, keep)[0].value();
        Observer nobody;
        const Observing observing(nobody);
        CHECK(same_bits(grad({y}, {x}, keep)[0].value(), usual));
        const Variable recorded = grad({y}, {x}, {.grad_outputs = {gy}, .create_graph = true})[0];
        CHECK(close(recorded.value(), usual, 1e-14));
    }
}

TEST_CASE(
    "a derivative in one pass is that of a watched pass to the bit, of a recorded to rounding") {
    const Variable x = parameter(uneven({3, 5}, -4, 3, 1));
    const Variable weight = parameter(uneven({5}, 0.5, 2, 2));
    const Variable bias = parameter(uneven({5}, -1, 1, 3));
    const Variable gy(uneven({3, 5}, -1, 1, 4));
    const std::vector<Variable> inputs{x, weight, bias};
    const std::vector<Variable> results{tanh(x),
                                        sigmoid(x),
                                        softplus(x),
                                        relu(x),
                                        gelu(x),
                                        gelu(x, {.approximate = Approximate::tanh}),
                                        silu(x),
                                        layer_norm(x, weight, bias),
                                        layer_norm(x, weight, {}),
                                        layer_norm(x, {}, bias),
                                        rms_norm(x, weight)};
    for (const Variable& y : results) {
        CAPTURE(y.op());
        const GradOptions keep{.grad_outputs = {gy}, .retain_graph = true, .allow_unused = true};
        const GradOptions again{.grad_outputs = {gy}, .create_graph = true, .allow_unused = true};
        const std::vector<Variable> usual = grad({y}, inputs, keep);
        const std::vector<Variable> recorded = grad({y}, inputs, again);
        Observer nobody;
        const Observing observing(nobody);
        const std::vector<Variable> watched = grad({y}, inputs, keep);
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            REQUIRE(usual[i].defined() == recorded[i].defined());
            if (!usual[i].defined()) continue;
            CHECK(same_bits(watched[i].value(), usual[i].value()));
            CHECK(close(recorded[i].value(), usual[i].value(), 1e-13));
        }
    }
    const NoGrad unrecorded;
    CHECK(same_bits(layer_norm_vjp(x, gy, {}).value(), layer_norm_vjp(x.value(), gy.value(), {})));
    CHECK(same_bits(rms_norm_vjp(x, gy, {}).value(), rms_norm_vjp(x.value(), gy.value(), {})));
}

TEST_CASE("the two forms of GELU are told apart by name, and the exact one is the default") {
    const Tensor x = tensor({-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0}, f64);
    const Tensor by_erf = tensor({-0.004049694, -0.158655254, -0.154268769, 0.0, 0.345731231,
                                  0.841344746, 1.954499736, 2.995950306},
                                 f64);
    const Tensor by_tanh = tensor({-0.003637392, -0.158808009, -0.15428599, 0.0, 0.34571401,
                                   0.841191991, 1.954597694, 2.996362608},
                                  f64);
    CHECK(close(gelu(x), by_erf, 1e-9));
    CHECK(close(gelu(x, {.approximate = Approximate::tanh}), by_tanh, 1e-9));
    CHECK_FALSE(close(by_erf, by_tanh, 1e-5));
    for (const Approximate form : {Approximate::none, Approximate::tanh}) {
        for (const DType dtype : {f64, f32}) {
            const Variable far = parameter(tensor({10.0, -10.0, 100.0, -100.0}, dtype));
            const Tensor slope = grad({sum(gelu(far, {.approximate = form}))}, {far})[0].value();
            CHECK(close(slope.astype(f64), tensor({1.0, 0.0, 1.0, 0.0}, f64), 1e-9));
        }
    }
}
