// Names, paths, states and modes of modules.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers.hpp>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

/// Two layers below a block, one of them used twice under one weight.
struct Block : Module {
    explicit Block(RandomState& rng) : inner(3, 2, rng), head(2, 3, rng, {.bias = false}) {
        gain = register_parameter("gain", tensor({1.5, -0.5, 2.0}));
        register_module("inner", inner);
        register_module("head", head);
    }
    Variable operator()(const Variable& x) const {
        const Scope scope = enter();
        return head(inner(x)) * gain;
    }
    Linear inner;
    Linear head;
    Variable gain;
};

struct Model : Module {
    explicit Model(RandomState& rng) : first(rng), second(rng) {
        register_module("first", first);
        register_module("second", second);
    }
    Variable operator()(const Variable& x) const { return second(first(x)); }
    Block first;
    Block second;
};

std::vector<std::string> names_of(const Module& module) {
    std::vector<std::string> names;
    for (const auto& [name, value] : module.named_parameters()) names.push_back(name);
    return names;
}

}  // namespace

TEST_CASE("parameters are listed under dotted paths in the order of registration") {
    RandomState rng(1);
    const Model model(rng);
    CHECK(names_of(model) == std::vector<std::string>{"first.gain", "first.inner.weight",
                                                      "first.inner.bias", "first.head.weight",
                                                      "second.gain", "second.inner.weight",
                                                      "second.inner.bias", "second.head.weight"});
    CHECK(model.parameter_at("second.inner.bias").same_as(model.second.inner.bias));
    CHECK(text_of<ValueError>([&] { (void)model.first.inner.parameter_at("wieght"); }) ==
          "parameter_at: there is no parameter 'wieght'; there are: weight, bias");
}

TEST_CASE("modules are listed with their paths, the root under the empty name") {
    RandomState rng(1);
    Model model(rng);
    std::vector<std::string> paths;
    for (const auto& [path, module] : model.named_modules()) paths.push_back(path);
    CHECK(paths == std::vector<std::string>{"", "first", "first.inner", "first.head", "second",
                                            "second.inner", "second.head"});
}

TEST_CASE("a name is refused when it is empty, has a dot or is taken") {
    struct Bad : Module {
        void add(std::string_view name) { register_parameter(name, ones({2})); }
        void add_undefined() { register_parameter("tied", Variable()); }
        void add_tokens() { register_parameter("tokens", arange(3)); }
    } bad;
    bad.add("w");
    CHECK(text_of<ValueError>([&] { bad.add("w"); }) ==
          "register: the name 'w' is taken in this module");
    CHECK(text_of<ValueError>([&] { bad.add(""); }) ==
          "register: '' is not a name: it is empty or has a dot");
    CHECK(text_of<ValueError>([&] { bad.add("a.b"); }) ==
          "register: 'a.b' is not a name: it is empty or has a dot");
    CHECK(text_of<ValueError>([&] { bad.add_undefined(); }) ==
          "register: the parameter 'tied' is undefined");
    CHECK(text_of<TypeError>([&] { bad.add_tokens(); }) ==
          "parameter: a i64 tensor of shape (3,) has no gradient; convert it with astype(f32) or "
          "astype(f64)");
}

TEST_CASE("training and evaluation reach every module below") {
    RandomState rng(1);
    Model model(rng);
    CHECK(model.second.head.training());
    model.eval();
    CHECK_FALSE(model.training());
    CHECK_FALSE(model.second.head.training());
    model.second.train();
    CHECK(model.second.inner.training());
    CHECK_FALSE(model.first.inner.training());
}

TEST_CASE("a state goes out of one model and into another with the same results") {
    RandomState rng(1);
    const Model source(rng);
    Model target(rng);
    const Variable x(rng.randn({4, 3}, {.dtype = f32}));
    REQUIRE_FALSE(allclose(source(x).value(), target(x).value()));
    target.load_state_dict(source.state_dict());
    const auto a = source(x);
    const auto b = target(x);
    for (std::int64_t i = 0; i < 12; ++i) {
        CHECK(a.value().values<float>()[static_cast<std::size_t>(i)] ==
              b.value().values<float>()[static_cast<std::size_t>(i)]);
    }
    // Later changes of one do not reach the other.
    target.first.gain.mutable_value() *= 2.0;
    CHECK(source.first.gain.value().at({0}) == 1.5);
}

TEST_CASE("loading lists every misfit and then changes nothing") {
    RandomState rng(1);
    Linear layer(3, 2, rng);
    const Tensor before = layer.weight.value();
    const StateDict state = {
        {"weight", zeros({3, 2})}, {"wieght", zeros({2, 3})}, {"wieght", zeros({2, 3})}};
    CHECK(text_of<ValueError>([&] { layer.load_state_dict(state); }) ==
          "load_state_dict: weight is f32 (3, 2), the module has f32 (2, 3); missing bias; "
          "unexpected wieght; unexpected wieght; repeated wieght; nothing was loaded");
    CHECK(text_of<ValueError>([&] {
              layer.load_state_dict({{"weight", zeros({2, 3}, f64)}, {"bias", Tensor()}});
          }) ==
          "load_state_dict: weight is f64 (2, 3), the module has f32 (2, 3); bias is undefined; "
          "nothing was loaded");
    CHECK(allclose(layer.weight.value(), before));
    layer.load_state_dict({{"weight", zeros({2, 3})}, {"other", zeros({1})}}, {.strict = false});
    CHECK(allclose(layer.weight.value(), zeros({2, 3})));
}

TEST_CASE("a tied parameter has two names, counts once and sums its gradients") {
    struct Tied : Module {
        Tied() {
            table = register_parameter("table", tensor({{1.0, 2.0, -1.0}, {0.5, -3.0, 4.0}}, f64));
            register_parameter("head", table);
        }
        Variable table;
    } tied;
    CHECK(names_of(tied) == std::vector<std::string>{"table", "head"});
    CHECK(tied.parameters().size() == 1);
    backward(sum(tied.parameter_at("table") * tensor({2.0, 3.0, 4.0}, f64)) +
             sum(tied.parameter_at("head")));
    CHECK(allclose(tied.table.grad(), tensor({{3.0, 4.0, 5.0}, {3.0, 4.0, 5.0}}, f64)));
    tied.zero_grad();
    CHECK_FALSE(tied.table.has_grad());
}

TEST_CASE("to converts parameters in place and keeps who is frozen") {
    RandomState rng(1);
    Linear layer(3, 2, rng);
    layer.bias.set_requires_grad(false);
    const Variable weight = layer.weight;
    const Tensor before = weight.value();
    layer.to(f64);
    CHECK(weight.dtype() == f64);
    CHECK(allclose(weight.value(), before.astype(f64), {.rtol = 0, .atol = 0}));
    CHECK(layer.weight.requires_grad());
    CHECK_FALSE(layer.bias.requires_grad());
    CHECK(text_of<TypeError>([&] { layer.to(i64); }) == "to: parameters are f32 or f64, not i64");
    layer.set_requires_grad(false);
    CHECK_FALSE(layer(Variable(ones({1, 3}, f64))).requires_grad());
}

TEST_CASE("an error inside a model names the layer") {
    RandomState rng(1);
    const Model model(rng);
    CHECK(
        text_of<ShapeError>([&] {
            model(Variable(ones({4, 2})));
        }) ==
        "linear: the last axis of (4, 2) is not 3 long, in first.inner; the weight is (out, in) = "
        "(2, 3)");
    // And in the backward pass, the layer that the op was computed in.
    Variable y = model.first(Variable(ones({4, 3})));
    CHECK(y.node()->scope->path == "first");
}

TEST_CASE("parameters of a module that get no gradient are named by their paths") {
    RandomState rng(1);
    const Model model(rng);
    const Variable x(rng.randn({4, 3}, {.dtype = f32}));
    CHECK(unused_parameters(sum(model(x)), model).empty());
    CHECK(to_string(unused_parameters(sum(model.first(x)), model)) ==
          "unused parameters:\n"
          "  second.gain: no op in the graph of the result reads it\n"
          "  second.inner.weight: no op in the graph of the result reads it\n"
          "  second.inner.bias: no op in the graph of the result reads it\n"
          "  second.head.weight: no op in the graph of the result reads it");
    UsageTracker tracker;
    const Observing observing(tracker);
    const Variable y = sum(model.second(model.first(x).detach()));
    const std::string reason =
        ": its path ends before matmul in second.inner, which read a constant copy (detach() or "
        "value())";
    std::string expected = "unused parameters:";
    for (const char* name : {"gain", "inner.weight", "inner.bias", "head.weight"}) {
        expected += std::string("\n  first.") + name + reason;
    }
    CHECK(to_string(unused_parameters(y, model, &tracker)) == expected);
}
