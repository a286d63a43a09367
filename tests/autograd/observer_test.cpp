// What those who watch are told, in which order, and that watching changes no bit.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

/// Keeps copies of all events, and one line for each.
class Log final : public Observer {
  public:
    struct Forward {
        std::string op;
        std::int64_t id;
        std::vector<std::int64_t> inputs, saved;
        std::string scope;
        bool recorded;
        Attributes attributes;
    };
    struct Backward {
        std::string op;
        std::int64_t id;
        Tensor gradient;
        std::vector<std::int64_t> saved, input_ids;
        std::vector<Variable> gradients;
        std::string scope;
    };
    struct Sum {
        std::int64_t of;
        std::vector<Tensor> parts;
        Tensor total;
    };

    void on_forward(const ForwardEvent& event) override {
        lines.push_back("forward " + std::string(event.row.name));
        forward.push_back({std::string(event.row.name), event.output.id(), ids(event.inputs),
                           ids(event.saved), event.scope->path, event.output.requires_grad(),
                           event.attributes});
    }
    void on_backward(const BackwardEvent& event) override {
        lines.push_back("backward " + std::string(event.row.name));
        backward.push_back({std::string(event.row.name),
                            event.output_id,
                            event.gradient.value(),
                            ids(event.saved),
                            {event.input_ids.begin(), event.input_ids.end()},
                            {event.gradients.begin(), event.gradients.end()},
                            event.scope->path});
    }
    void on_accumulate(const AccumulateEvent& event) override {
        lines.push_back("accumulate");
        Sum sum{event.of, {}, event.total.value()};
        for (const Variable& part : event.contributions) sum.parts.push_back(part.value());
        sums.push_back(sum);
    }
    void on_gradient(const GradientEvent& event) override {
        lines.push_back("gradient");
        gradients.emplace_back(event.of, event.gradient.value());
    }

    std::vector<std::string> lines;
    std::vector<Forward> forward;
    std::vector<Backward> backward;
    std::vector<Sum> sums;
    std::vector<std::pair<std::int64_t, Tensor>> gradients;

  private:
    static std::vector<std::int64_t> ids(std::span<const Variable> list) {
        std::vector<std::int64_t> result;
        for (const Variable& each : list) result.push_back(each.id());
        return result;
    }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("each op is told once forward and once backward, with ids, values and scope") {
    const Variable x = x64({1.0, 2.0});
    const Variable w = x64({3.0, 4.0}, "w");
    const Variable c(tensor({5.0, 6.0}, f64));
    Log log;
    Variable product, shifted, total;
    {
        const Observing observing(log);
        {
            const Scope block("block");
            product = x * w;
            shifted = product + c;
        }
        total = sum(shifted, {.axes = {0}, .keepdims = true});
        backward(total);
    }
    exp(x);  // nobody watches any more
    CHECK(log.lines == Lines{"forward mul", "forward add", "forward sum", "gradient",
                             "backward sum", "gradient", "backward add", "gradient", "backward mul",
                             "gradient", "gradient"});
    REQUIRE(log.forward.size() == 3);
    CHECK(log.forward[0].id == product.id());
    CHECK(log.forward[0].inputs == std::vector<std::int64_t>{x.id(), w.id()});
    CHECK(log.forward[0].saved == std::vector<std::int64_t>{w.id(), x.id()});
    CHECK(log.forward[0].scope == "block");
    CHECK(log.forward[0].recorded);
    CHECK(log.forward[1].inputs == std::vector<std::int64_t>{product.id(), c.id()});
    CHECK(log.forward[1].saved.empty());
    CHECK(log.forward[2].scope.empty());
    REQUIRE(log.forward[2].attributes.size() == 2);
    CHECK(log.forward[2].attributes[0].name == "axes");
    CHECK(log.forward[2].attributes[0].list == Shape{0});
    CHECK(log.forward[2].attributes[1].integer == 1);

    REQUIRE(log.backward.size() == 3);
    const Log::Backward& of_sum = log.backward[0];
    CHECK(of_sum.id == total.id());
    CHECK(of_sum.input_ids == std::vector<std::int64_t>{shifted.id()});
    const Log::Backward& of_add = log.backward[1];
    CHECK(of_add.input_ids == std::vector<std::int64_t>{product.id(), 0});
    CHECK(of_add.gradients[0].defined());
    CHECK((of_add.gradients.size() == 1 || !of_add.gradients[1].defined()));
    CHECK(of_add.scope == "block");
    const Log::Backward& of_mul = log.backward[2];
    CHECK(of_mul.saved == log.forward[0].saved);
    CHECK(close(of_mul.gradient, ones({2}, f64)));
    CHECK(close(of_mul.gradients[0].value(), w.value()));
    CHECK(close(of_mul.gradients[1].value(), x.value()));
    CHECK(log.gradients.back().first == x.id());
}

TEST_CASE("contributions to one value are told apart, in the order they are added") {
    const Variable x = x64({1.0, 2.0});
    Log log;
    {
        const Observing observing(log);
        const Variable first = x * 2.0;
        const Variable second = x * 3.0;
        const Variable third = x * x;
        backward(sum(first + (second + third)));
    }
    REQUIRE(log.sums.size() == 1);
    CHECK(log.sums[0].of == x.id());
    REQUIRE(log.sums[0].parts.size() == 4);  // x * x gives two
    CHECK(close(log.sums[0].parts[0], tensor({1.0, 2.0}, f64)));
    CHECK(close(log.sums[0].parts[1], tensor({1.0, 2.0}, f64)));
    CHECK(close(log.sums[0].parts[2], full({2}, 3, f64)));
    CHECK(close(log.sums[0].parts[3], full({2}, 2, f64)));
    CHECK(close(log.sums[0].total, tensor({7.0, 9.0}, f64)));
    CHECK(same_bits(log.sums[0].total, x.grad()));
}

TEST_CASE("what a pullback computes inside is not told, unless it is recorded") {
    const Variable x = x64({{1.0, 2.0}, {0.5, -1.0}});
    Log usual;
    {
        const Observing observing(usual);
        backward(sum(log_softmax(x) * tanh(x)));
    }
    CHECK(std::count_if(usual.lines.begin(), usual.lines.end(), [](const std::string& line) {
              return line.substr(0, 7) == "forward";
          }) == 4);
    Log recorded;
    {
        const Observing observing(recorded);
        grad({sum(log_softmax(x) * tanh(x))}, {x}, {.create_graph = true});
    }
    CHECK(std::count(recorded.lines.begin(), recorded.lines.end(), "forward exp") == 1);
    CHECK(recorded.forward.size() > 8);
}

TEST_CASE("a broadcast gradient is told as it is added: of the input's shape") {
    const Variable x = parameter(uneven({4, 3}));
    const Variable b = parameter(uneven({3}));
    Log log;
    {
        const Observing observing(log);
        backward(sum(x + b));
    }
    for (const Log::Backward& each : log.backward) {
        if (each.op != "add") continue;
        CHECK(each.gradients[1].shape() == Shape{3});
        CHECK(close(each.gradients[1].value(), full({3}, 4, f64)));
    }
}

TEST_CASE("a gradient is told after its hooks") {
    Variable x = x64({1.0, 2.0});
    x.register_hook([](const Variable& g) { return g * 10.0; });
    Log log;
    {
        const Observing observing(log);
        backward(sum(x * 2.0));
    }
    CHECK(log.gradients.back().first == x.id());
    CHECK(close(log.gradients.back().second, full({2}, 20, f64)));
}

TEST_CASE("ops that are not recorded are told forward, as such") {
    const Variable x = x64({1.0, 2.0});
    Log log;
    {
        const Observing observing(log);
        exp(x.detach());
        const NoGrad off;
        exp(x);
    }
    REQUIRE(log.forward.size() == 2);
    CHECK_FALSE(log.forward[0].recorded);
    CHECK_FALSE(log.forward[1].recorded);
    CHECK(log.forward[1].saved.empty());
}

TEST_CASE("several observers see the same; one may leave before the other") {
    const Variable x = x64({1.0, 2.0});
    Log first, second;
    {
        const Observing a(first);
        {
            const Observing b(second);
            exp(x);
        }
        tanh(x);
    }
    CHECK(first.lines == Lines{"forward exp", "forward tanh"});
    CHECK(second.lines == Lines{"forward exp"});
}

TEST_CASE("an observer that throws stops the pass, and the next one works") {
    struct Stop final : Observer {
        void on_backward(const BackwardEvent&) override { throw std::runtime_error("seen enough"); }
    } stop;
    const Variable x = x64({1.0, 2.0});
    {
        const Observing observing(stop);
        CHECK_THROWS_WITH(backward(sum(exp(x))), "seen enough");
    }
    CHECK_FALSE(x.has_grad());
    backward(sum(exp(x)));
    CHECK(close(x.grad(), exp(x.value())));
    CHECK(grad_enabled());
}

TEST_CASE("watching changes no bit of a gradient") {
    const Variable x = parameter(uneven({5, 4}));
    const Variable w = parameter(uneven({4, 3}));
    const auto run = [&] {
        const Variable h = tanh(matmul(x, w));
        return grad({sum(softmax(h) * h + mean(h) * h)}, {x, w});
    };
    const auto unseen = run();
    Log log;
    const Observing observing(log);
    const auto seen = run();
    CHECK(same_bits(unseen[0].value(), seen[0].value()));
    CHECK(same_bits(unseen[1].value(), seen[1].value()));
}

TEST_CASE("a saved leaf keeps id, name and value when it is updated in between") {
    Variable x = x64({1.0, 2.0}, "x");
    struct Saved final : Observer {
        void on_backward(const BackwardEvent& event) override {
            for (const Variable& each : event.saved) list.push_back(each);
        }
        std::vector<Variable> list;
    } saved;
    const Observing observing(saved);
    const Variable y = sum(x * x);
    x.mutable_value() *= 10.0;
    backward(y);
    REQUIRE(saved.list.size() == 2);
    CHECK(saved.list[0].id() == x.id());
    CHECK(saved.list[0].name() == "x");
    CHECK(close(saved.list[0].value(), tensor({1.0, 2.0}, f64)));
    CHECK(message_of<GraphError>([&] { saved.list[0].set_value(zeros({2}, f64)); }) ==
          "set_value: 'x' of shape (2,) is what a graph keeps of a leaf; write to the leaf itself");
}

TEST_CASE("ids grow, so that a result has a larger one than its inputs") {
    const Variable a = x64({1.0});
    const Variable b = a * 2.0;
    const Variable c = b + a;
    CHECK(a.id() < b.id());
    CHECK(b.id() < c.id());
    CHECK(c.node()->id == c.id());
}
