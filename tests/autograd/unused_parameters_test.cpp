// unused_parameters: who gets no gradient, and where the path ended.

#include "autograd/support/checks.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

struct Parts {
    Variable used = parameter(uneven({3}), "used");
    Variable detached = parameter(uneven({3}, -1, 1, 2), "detached");
    Variable read = parameter(uneven({3}, -1, 1, 3), "read");
    Variable silent = parameter(uneven({3}, -1, 1, 4), "silent");
    Variable ignored = parameter(uneven({3}, -1, 1, 5), "ignored");
    Variable untouched = parameter(uneven({3}, -1, 1, 6));

    Variable forward() const {
        const Scope scope("block");
        Variable y = tanh(used) * exp(detached).detach();
        y = y + Variable(read.value());
        {
            const NoGrad off;
            y = y + exp(tanh(silent)).detach() * 0.0;
        }
        tanh(ignored * 2.0);
        return sum(y * used);
    }
    std::vector<Variable> all() const { return {used, detached, read, silent, ignored, untouched}; }
};

}  // namespace

TEST_CASE("parameters without a gradient are named, before and after the backward pass") {
    const Parts parts;
    const Variable y = parts.forward();
    const std::string expected =
        "unused parameters:\n"
        "  detached: no op in the graph of the result reads it\n"
        "  read: no op in the graph of the result reads it\n"
        "  silent: no op in the graph of the result reads it\n"
        "  ignored: no op in the graph of the result reads it\n"
        "  parameter of shape (3,): no op in the graph of the result reads it";
    CHECK(to_string(unused_parameters(y, parts.all())) == expected);
    backward(y);
    CHECK(to_string(unused_parameters(y, parts.all())) == expected);
    const auto unused = unused_parameters(y, parts.all());
    CHECK(parts.used.has_grad());
    for (const Variable& each : parts.all()) {
        const bool listed = std::any_of(unused.begin(), unused.end(), [&](const auto& one) {
            return one.name == (each.name().empty() ? describe(each) : each.name());
        });
        CHECK(listed != each.has_grad());
    }
}

TEST_CASE("a tracker of the forward pass says where each path ended") {
    const Parts parts;
    UsageTracker tracker;
    Variable y;
    {
        const Observing observing(tracker);
        y = parts.forward();
    }
    backward(y);
    CHECK(to_string(unused_parameters(y, parts.all(), &tracker)) ==
          "unused parameters:\n"
          "  detached: its path ends before mul in block, which read a constant copy (detach() or "
          "value())\n"
          "  read: its path ends before add in block, which read a constant copy (detach() or "
          "value())\n"
          "  silent: its path ends at tanh in block, which was not recorded (NoGrad)\n"
          "  ignored: its path ends at tanh in block, whose result no op that leads to the output "
          "read\n"
          "  parameter of shape (3,): no op read it");
    tracker.clear();
    CHECK(unused_parameters(y, {parts.detached}, &tracker).front().reason == "no op read it");
}

TEST_CASE("zeros are a gradient, frozen parameters have none, and captured ones are used") {
    const Variable w = parameter(uneven({3}), "w");
    Variable frozen = parameter(uneven({3}, -1, 1, 2), "frozen");
    frozen.set_requires_grad(false);
    const Variable x(uneven({3}));
    const Variable y = sum(
        checkpoint([&](std::span<const Variable> in) { return in[0] * w * 0.0; }, {x}) + frozen);
    const auto unused = unused_parameters(y, {w, frozen});
    CHECK(to_string(unused) ==
          "unused parameters:\n  frozen: it requires no gradient (frozen, or a constant)");
    CHECK(to_string(unused_parameters(y, {w})) == "no unused parameters");
    CHECK(message_of<ValueError>([&] { unused_parameters(Variable(), {w}); }) ==
          "unused_parameters: the result is undefined");
    CHECK(message_of<ValueError>([&] {
              unused_parameters(y, {w, Variable()});
          }) == "unused_parameters: parameter 1 is undefined");
}
