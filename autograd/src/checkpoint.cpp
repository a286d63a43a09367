// The first run of f is recorded like any other, to find the nodes outside it that its result
// depends on: the inputs, and what f captures. That graph is dropped before checkpoint returns; the
// node put in its place has those nodes as inputs. In the backward pass f runs again on the same
// inputs and under the same ids, and the sweep continues into the new graph, which ends in the same
// nodes.

#include <glassgrad/autograd/checkpoint.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

namespace glassgrad {
namespace {

using detail::Node;
using detail::NodePtr;

constexpr OpRow checkpoint_row{.name = "checkpoint",
                               .forward = "y = f(inputs)",
                               .backward = "f is computed again, and the pass goes on through it"};

/// Tells values apart by their bits: 64 bits of four independent multiplicative hashes.
std::uint64_t digest(const Tensor& x) {
    const std::byte* bytes = x.bytes();
    const std::size_t count = static_cast<std::size_t>(x.numel()) * item_size(x.dtype());
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
    std::uint64_t lanes[4] = {1, 2, 3, 4};
    const auto mix = [](std::uint64_t lane, std::uint64_t word) {
        const std::uint64_t product = (lane ^ word) * factor;
        return product ^ (product >> 32);
    };
    std::size_t i = 0;
    for (; i + 32 <= count; i += 32) {
        std::uint64_t words[4];
        std::memcpy(words, bytes + i, 32);
        for (int k = 0; k < 4; ++k) lanes[k] = mix(lanes[k], words[k]);
    }
    for (; i < count; ++i) lanes[0] = mix(lanes[0], std::to_integer<std::uint64_t>(bytes[i]));
    std::uint64_t all = 0;
    for (const std::uint64_t word : lanes) all = mix(all, word);
    return all;
}

class Recomputing {
  public:
    explicit Recomputing(bool watched) noexcept
        : recomputing_(std::exchange(detail::recomputing, true)),
          before_(std::exchange(detail::observers_before, detail::observer_count)),
          watched_(std::exchange(detail::watched_first, watched)) {}
    ~Recomputing() {
        detail::recomputing = recomputing_;
        detail::observers_before = before_;
        detail::watched_first = watched_;
    }
    Recomputing(const Recomputing&) = delete;
    Recomputing& operator=(const Recomputing&) = delete;

  private:
    bool recomputing_;
    int before_;
    bool watched_;
};

struct CheckpointNode final : Node {
    CheckpointNode(const Variable& y, const CheckpointedFunction& f, std::vector<Variable> inputs,
                   std::vector<NodePtr> outside, std::int64_t first)
        : Node(checkpoint_row, y.value(), y.id()),
          first_id(first),
          function(f),
          arguments(std::move(inputs)),
          next(std::move(outside)),
          bits(digest(y.value())) {
        recomputes = true;
    }

    std::span<const NodePtr> inputs() const noexcept override { return next; }
    void list_saved(std::vector<Variable>& out) const override {
        out.insert(out.end(), arguments.begin(), arguments.end());
    }
    void release() noexcept override {
        function = nullptr;
        arguments.clear();
    }

    Variable recompute() override {
        const GradMode on(true);
        const Recomputing again(watched);
        const detail::ReplayedIds ids(first_id);
        Variable y = function(arguments);
        const char* problem = nullptr;
        if (!y.defined() || !y.requires_grad() || y.node()->id < first_id) {
            problem = "depends on nothing that requires a gradient";
        } else if (y.shape() != shape()) {
            problem = "has another shape";
        } else if (y.dtype() != dtype()) {
            problem = "has another type";
        } else if (digest(y.value()) != bits) {
            problem = "has other values";
        }
        if (problem) {
            throw GraphError(
                fmt::format("checkpoint: computed again, the result of shape {} {}",
                            to_string(shape()), problem),
                "the function must be repeatable: draw random numbers from a copy of the state, "
                "and update what it reads after the backward pass");
        }
        return y;
    }

    std::int64_t recomputes_from() const noexcept override { return first_id; }

    std::int64_t first_id;
    CheckpointedFunction function;
    std::vector<Variable> arguments;
    std::vector<NodePtr> next;
    std::uint64_t bits;
    bool watched = detail::watched();
};

/// The nodes behind `root` that were there before `first`.
std::vector<NodePtr> nodes_outside(const NodePtr& root, std::int64_t first) {
    std::vector<NodePtr> outside;
    std::unordered_set<const Node*> seen{root.get()};
    std::vector<const Node*> stack{root.get()};
    while (!stack.empty()) {
        const Node* node = stack.back();
        stack.pop_back();
        for (const NodePtr& input : node->inputs()) {
            if (!input || !seen.insert(input.get()).second) continue;
            if (input->id < first) {
                outside.push_back(input);
            } else {
                stack.push_back(input.get());
            }
        }
    }
    // By address, so that the sweep finds one quickly.
    std::sort(outside.begin(), outside.end(),
              [](const NodePtr& a, const NodePtr& b) { return std::less<>()(a.get(), b.get()); });
    return outside;
}

}  // namespace

Variable checkpoint(const CheckpointedFunction& f, std::span<const Variable> inputs) {
    if (!f) throw ValueError("checkpoint: the function is empty");
    std::vector<Variable> arguments;
    arguments.reserve(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].defined()) {
            throw ValueError(fmt::format("checkpoint: input {} is undefined", i));
        }
        arguments.push_back(inputs[i].kept());
    }
    const std::int64_t first = detail::next_id() + 1;
    Variable y = f(arguments);
    if (!y.defined()) throw ValueError("checkpoint: the function returned an undefined variable");
    if (!grad_enabled() || y.is_leaf() || y.node()->id < first) return y;
    std::vector<NodePtr> outside = nodes_outside(y.node(), first);
    if (outside.empty()) return y;
    Variable result(
        Tensor(y.value()),
        detail::make_node<CheckpointNode>(y, f, std::move(arguments), std::move(outside), first),
        y.id());
    result.set_name(y.name());
    return result;
}

Variable checkpoint(const CheckpointedFunction& f, std::initializer_list<Variable> inputs) {
    return checkpoint(f, std::span<const Variable>(inputs.begin(), inputs.size()));
}

}  // namespace glassgrad
