// checkpoint(): the same bits for less memory, and no gradient lost on the way.

#include "autograd/support/checks.hpp"

#include <algorithm>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

using In = std::span<const Variable>;

constexpr std::int64_t width = 48;

std::vector<Variable> layer_weights(int count) {
    std::vector<Variable> weights;
    for (int i = 0; i < count; ++i) {
        weights.push_back(parameter(uneven({width, width}, -0.3, 0.3, i), "w" + std::to_string(i)));
    }
    return weights;
}

/// A layer with many results that its derivative reads.
Variable layer(const Variable& x, const Variable& w) {
    Variable h = tanh(matmul(x, w));
    for (int i = 0; i < 6; ++i) h = tanh(exp(h * 0.5) - h);
    return h + x;
}

Variable chain(const Variable& x, const std::vector<Variable>& weights, bool checkpointed) {
    Variable h = x;
    for (const Variable& w : weights) {
        const auto f = [w](In in) { return layer(in[0], w); };
        h = checkpointed ? checkpoint(f, {h}) : layer(h, w);
    }
    return sum(h * h);
}

std::vector<Tensor> gradients_of(const Variable& y, const std::vector<Variable>& inputs,
                                 const GradOptions& options = {}) {
    std::vector<Tensor> gradients;
    for (const Variable& g : grad({y}, inputs, options)) gradients.push_back(g.value());
    return gradients;
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i], b[i]));
}

/// Keeps the names of the ops it sees, `again:` before those that are computed again.
struct Names final : Observer {
    void on_forward(const ForwardEvent& event) override {
        forward.push_back((event.recomputed ? "again:" : "") + std::string(event.row.name));
        ids.push_back(event.output.id());
        scopes.push_back(event.scope->path);
    }
    void on_backward(const BackwardEvent& event) override {
        backward.emplace_back(event.row.name);
        known = known && std::count(ids.begin(), ids.end(), event.output_id) > 0;
    }
    std::vector<std::string> forward, backward, scopes;
    void on_gradient(const GradientEvent& event) override { gradients.push_back(event.of); }
    std::vector<std::int64_t> ids, gradients;
    bool known = true;
};

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a chain of checkpoints has the bits of one without, for a fraction of the memory") {
    const std::vector<Variable> weights = layer_weights(12);
    const Variable x = parameter(uneven({64, width}, -1, 1), "x");
    std::vector<Variable> all = weights;
    all.push_back(x);
    std::vector<Tensor> expected;
    const auto peak_of = [&](bool checkpointed) {
        for (Variable& each : all) each.zero_grad();
        const std::int64_t before = memory_stats().live_bytes;
        reset_peak_memory();
        Variable y = chain(x, weights, checkpointed);
        const std::int64_t held = memory_stats().live_bytes - before;
        backward(y);
        const std::int64_t peak = memory_stats().peak_bytes - before;
        std::vector<Tensor> found{y.value()};
        for (const Variable& each : all) found.push_back(each.grad());
        if (expected.empty()) expected = found;
        check_same(found, expected);
        return std::pair(held, peak);
    };
    const auto [held, peak] = peak_of(false);
    const auto [held_less, peak_less] = peak_of(true);
    CHECK(held_less * 8 < held);
    CHECK(peak_less * 3 < peak);
}

TEST_CASE("a checkpoint takes several inputs, and gives captured variables their gradients") {
    const Variable a = parameter(uneven({3, 4}), "a");
    const Variable b = parameter(uneven({4}, -1, 1, 2), "b");
    const Variable w = parameter(uneven({4, 2}, -1, 1, 3), "w");
    const Variable c(uneven({3, 2}, -1, 1, 4));
    const Variable scaled = tanh(w * 2.0);  // the result of an op is captured, too
    const auto f = [&](In in) {
        return matmul(in[0] * in[1], scaled + w) * c + sum(w) * sum(in[0]);
    };
    const Variable inputs[] = {a, b};
    const auto loss = [&](const Variable& y) { return sum(y * y) + sum(a) + sum(w * w); };
    const std::vector<Variable> all{a, b, w};
    const std::vector<Tensor> expected = gradients_of(loss(f(inputs)), all, {.retain_graph = true});
    check_same(gradients_of(loss(checkpoint(f, inputs)), all, {.retain_graph = true}), expected);

    // backward() reaches them all.
    backward(loss(checkpoint(f, inputs)), {.retain_graph = true});
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(same_bits(all[i].grad(), expected[i]));

    // A target alone, captured or not.
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Variable y = loss(checkpoint(f, inputs));
        check_same(gradients_of(y, {all[i]}, {.retain_graph = true}), {expected[i]});
    }
    check_same(gradients_of(loss(checkpoint(f, inputs)), {scaled}, {.retain_graph = true}),
               gradients_of(loss(f(inputs)), {scaled}, {.retain_graph = true}));

    // What f does not depend on has no path.
    const Variable other = parameter(uneven({3}), "other");
    const Variable more[] = {a, b, other};
    CHECK(
        message_of<GraphError>([&] { grad({sum(checkpoint(f, more))}, {other}); }) ==
        "grad: no output depends on input 0, 'other' of shape (3,); the path was severed (detach, "
        "NoGrad, value()) or never there; allow it with {.allow_unused = true}");
}

TEST_CASE("the derivative of a checkpoint can be checked and differentiated again") {
    const Variable w = parameter(uneven({4, 4}, -1, 1, 3), "w");
    const auto once = [&](In in) {
        return checkpoint([&](In x) { return tanh(matmul(x[0], x[1])) * x[0]; }, in);
    };
    const auto nested = [&](In in) {
        return checkpoint(
            [](In x) {
                const Variable h =
                    checkpoint([](In y) { return exp(y[0] * 0.3) * y[1]; }, {x[0], tanh(x[1])});
                return checkpoint([h](In y) { return tanh(y[0]) + h; }, {matmul(h, x[1])});
            },
            in);
    };
    const std::vector<Variable> inputs{parameter(uneven({4, 4}, -1, 1, 5), "x"), w};
    for (const CheckedFunction& f : {CheckedFunction(once), CheckedFunction(nested)}) {
        const GradcheckReport first = gradcheck(f, inputs);
        INFO(first.text);
        CHECK(first);
        const GradcheckReport second = gradgradcheck(f, inputs);
        INFO(second.text);
        CHECK(second);
    }
}

TEST_CASE("second derivatives through a checkpoint are those without, to rounding") {
    const std::vector<Variable> weights = layer_weights(3);
    const Variable x = parameter(uneven({5, width}, -1, 1), "x");
    std::vector<Variable> all = weights;
    all.push_back(x);
    std::vector<Tensor> expected;
    for (const bool checkpointed : {false, true}) {
        const Variable y = chain(x, weights, checkpointed);
        Variable penalty;
        for (const Variable& g : grad({y}, all, {.create_graph = true})) {
            penalty = penalty.defined() ? penalty + sum(g * g) : sum(g * g);
        }
        const std::vector<Tensor> found = gradients_of(penalty, all);
        if (expected.empty()) expected = found;
        for (std::size_t i = 0; i < all.size(); ++i) CHECK(close(found[i], expected[i], 1e-11));
    }
}

TEST_CASE("a checkpoint with a retained graph is swept as often as one likes") {
    const Variable x = parameter(uneven({4}), "x");
    const Variable y = sum(checkpoint([](In in) { return exp(in[0]) * in[0]; }, {x}));
    backward(y, {.retain_graph = true});
    const Tensor once = x.grad();
    backward(y);
    CHECK(same_bits(x.grad(), once * 2.0));
    CHECK(message_of<GraphError>([&] { backward(y); }) ==
          "backward: the graph behind the result of sum was swept before, and what it had saved is "
          "gone; pass {.retain_graph = true} to the first backward, or compute the result again");
}

TEST_CASE("nothing of a checkpoint is live after the pass, nor after it was let go") {
    const Variable x = parameter(uneven({32, 32}), "x");
    mul(x, x);
    const std::int64_t before = memory_stats().live_bytes;
    for (int i = 0; i < 3; ++i) {
        {
            const auto inner = [](In in) { return tanh(in[0]) * in[0]; };
            const auto f = [&](In in) { return checkpoint(inner, {exp(in[0])}) * in[0]; };
            const Variable y = sum(checkpoint(f, {x}));
            if (i > 0) grad({y}, {x}, {.create_graph = i == 2});
        }
        CHECK(memory_stats().live_bytes == before);
    }
}

TEST_CASE("hooks, retained gradients and leaves inside a checkpoint belong to the second run") {
    const Variable x = parameter(uneven({3}), "x");
    int runs = 0;
    int calls = 0;
    Variable inner;
    Variable made;
    const auto f = [&](In in) {
        ++runs;
        made = parameter(ones({3}, f64), "made");
        inner = exp(in[0]) * made;
        inner.retain_grad();
        inner.register_hook([&](const Variable& g) {
            ++calls;
            return g * 2.0;
        });
        return inner * in[0];
    };
    const Variable y = sum(checkpoint(f, {x}));
    CHECK(runs == 1);
    CHECK(calls == 0);
    backward(y);
    CHECK(runs == 2);
    CHECK(calls == 1);
    CHECK(same_bits(inner.grad(), x.value() * 2.0));
    CHECK(same_bits(made.grad(), x.value() * 2.0 * exp(x.value())));
    CHECK(close(x.grad(), exp(x.value()) * (x.value() * 2.0 + 1.0)));
}

TEST_CASE("observers see the second run as what it is, in its scope") {
    const Variable x = parameter(uneven({3}), "x");
    Names names;
    const Observing observing(names);
    Variable y;
    {
        const Scope scope("block");
        y = sum(checkpoint([](In in) { return exp(in[0]) * in[0]; }, {x}));
    }
    CHECK(names.forward == Texts{"exp", "mul", "sum"});
    backward(y);
    CHECK(names.forward == Texts{"exp", "mul", "sum", "again:exp", "again:mul"});
    CHECK(names.backward == Texts{"sum", "mul", "exp"});
    CHECK(names.known);
    // Each op has the id that it had the first time, and each value one gradient.
    CHECK(names.ids[3] == names.ids[0]);
    CHECK(names.ids[4] == names.ids[1]);
    CHECK(names.gradients == std::vector{names.ids[2], names.ids[1], names.ids[0], x.id()});
    CHECK(names.scopes.back() == "block");
    Names after;
    const Observing again(after);
    exp(x);
    CHECK(after.forward == Texts{"exp"});
}

TEST_CASE("without a gradient to compute, a checkpoint is its function") {
    const Variable x = parameter(uneven({3}), "x");
    const Variable c(uneven({3}));
    int runs = 0;
    const auto f = [&](In in) {
        ++runs;
        return in[0] * 2.0;
    };
    CHECK_FALSE(checkpoint(f, {c}).requires_grad());
    {
        const NoGrad off;
        CHECK_FALSE(checkpoint(f, {x}).requires_grad());
    }
    CHECK(runs == 2);
    CHECK(checkpoint([](In in) { return in[0]; }, {x}).same_as(x.kept()));
    const Variable y = x * 3.0;
    CHECK(checkpoint([](In in) { return in[0]; }, {y}).same_as(y));
    CHECK(checkpoint(f, {x}).op() == "checkpoint");
}

TEST_CASE("a function that is not the same the second time is found, and changes no gradient") {
    Variable x = parameter(uneven({3}), "x");
    Variable w = parameter(uneven({3}, -1, 1, 2), "w");
    Variable other = parameter(uneven({3}, -1, 1, 4), "other");
    int runs = 0;
    RandomState rng(1);
    const std::string hint =
        "; the function must be repeatable: draw random numbers from a copy of the state, and "
        "update what it reads after the backward pass";
    const auto text = [&](const CheckpointedFunction& f,
                          const std::function<void()>& between = {}) {
        runs = 0;
        const Variable y = sum(checkpoint(f, {x}) * w);
        if (between) between();
        const std::string message = message_of<GraphError>([&] { backward(y); });
        CHECK_FALSE(x.has_grad());
        CHECK_FALSE(w.has_grad());
        return message;
    };
    CHECK(text([&](In in) { return in[0] * Variable(rng.rand({3}, {.dtype = f64})); }) ==
          "checkpoint: computed again, the result of shape (3,) has other values" + hint);
    CHECK(text([&](In in) { return in[0] * w; }, [&] { w.mutable_value() *= 2.0; }) ==
          "checkpoint: computed again, the result of shape (3,) has other values" + hint);
    CHECK(text([&](In in) {
              return ++runs == 1 ? in[0] * 2.0 : reshape(in[0] * 2.0, {3, 1});
          }) == "checkpoint: computed again, the result of shape (3,) has another shape" + hint);
    CHECK(text([&](In in) { return ++runs == 1 ? in[0] * 2.0 : in[0].detach(); }) ==
          "checkpoint: computed again, the result of shape (3,) depends on nothing that requires a "
          "gradient" +
              hint);
    CHECK(text([&](In in) { return ++runs == 1 ? in[0] + other.value() : in[0] + other; }) ==
          "checkpoint: computed again, the function reads a parameter of shape (3,), which it "
          "did not read the first time; what a checkpointed function reads must be the same "
          "each time");
    // Numbers from a copy of the state are the same both times.
    const Variable y = sum(checkpoint(
        [&](In in) {
            RandomState copy = rng;
            return in[0] * Variable(copy.rand({3}, {.dtype = f64}));
        },
        {x}));
    backward(y);
    CHECK(x.has_grad());
}

TEST_CASE("what throws inside a checkpoint reaches the caller, and nothing is left behind") {
    const Variable x = parameter(uneven({8, 8}), "x");
    mul(x, x);
    const std::int64_t before = memory_stats().live_bytes;
    for (const int fails_in : {1, 2}) {
        int runs = 0;
        const auto f = [&](In in) {
            const Variable h = exp(in[0]);
            if (++runs == fails_in) throw std::runtime_error("inside");
            return h * in[0];
        };
        CHECK_THROWS_WITH([&] { backward(sum(checkpoint(f, {x}))); }(), "inside");
        CHECK_FALSE(x.has_grad());
        CHECK(memory_stats().live_bytes == before);
    }
    backward(sum(x * x));
    CHECK(same_bits(x.grad(), x.value() * 2.0));
}

TEST_CASE("wrong calls of checkpoint say so") {
    const Variable x = parameter(uneven({3}), "x");
    CHECK(message_of<ValueError>([&] { checkpoint(nullptr, {x}); }) ==
          "checkpoint: the function is empty");
    CHECK(message_of<ValueError>([&] {
              checkpoint([](In in) { return in[0]; }, {x, Variable()});
          }) == "checkpoint: input 1 is undefined");
    CHECK(message_of<ValueError>([&] { checkpoint([](In) { return Variable(); }, {x}); }) ==
          "checkpoint: the function returned an undefined variable");
    const auto sweeps = [&](In in) {
        return grad({sum(in[0] * in[0])}, {in[0]}, {.create_graph = true}).front();
    };
    CHECK(
        message_of<GraphError>([&] { backward(sum(checkpoint(sweeps, {x}))); }) ==
        "backward: called inside another backward over the same graph, which holds a parameter of "
        "shape (3,); finish the first one, or detach() what the inner one needs");
}

TEST_CASE("a checkpoint may read a hundred thousand variables, and a chain may be as long") {
    std::vector<Variable> many;
    for (int i = 0; i < 100000; ++i) many.push_back(parameter(tensor(1.0 + i % 7, f64)));
    const auto join = [&](In) { return sum(concat(many)); };
    for (Variable& each : many) each = reshape(each, {1});
    backward(checkpoint(join, In()));
    Variable h = parameter(tensor(1.0, f64), "h");
    const Variable first = h;
    for (int i = 0; i < 20000; ++i) {
        h = checkpoint([](In in) { return scale(in[0], 1.0) + 0.0; }, {h});
    }
    backward(h);
    CHECK(first.grad().item() == 1);
}
