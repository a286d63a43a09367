#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/unused_parameters.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <unordered_set>

namespace glassgrad {
namespace {

using detail::Node;

std::unordered_set<const Node*> graph_of(const Variable& y) {
    std::unordered_set<const Node*> graph;
    std::vector<const Node*> stack;
    const auto visit = [&](const Node* node) {
        if (node && graph.insert(node).second) stack.push_back(node);
    };
    visit(y.node().get());
    while (!stack.empty()) {
        const Node* node = stack.back();
        stack.pop_back();
        for (const detail::NodePtr& input : node->inputs()) visit(input.get());
    }
    return graph;
}

std::string called(const UsageTracker::Use& use) {
    return use.scope.empty() ? use.op : fmt::format("{} in {}", use.op, use.scope);
}

/// Follows the value to the last op on each of its ways, and says how that one ends. What comes
/// first is the way that went furthest, by the number of its last result.
std::string end_of_path(const Variable& parameter, const UsageTracker& tracker) {
    std::vector<std::int64_t> stack{parameter.id()};
    std::unordered_set<std::int64_t> seen{parameter.id()};
    const UsageTracker::Use* furthest = nullptr;
    bool cut = false;
    const auto consider = [&](const UsageTracker::Use& use, bool is_cut) {
        if (furthest && use.result <= furthest->result) return;
        furthest = &use;
        cut = is_cut;
    };
    // Who read the elements of a parameter under another id had a constant copy of it.
    const std::int64_t owner = tracker.owner(parameter.value());
    if (owner != parameter.id()) {
        for (const UsageTracker::Use& use : tracker.uses(owner)) consider(use, true);
    }
    while (!stack.empty()) {
        const std::int64_t id = stack.back();
        stack.pop_back();
        for (const UsageTracker::Use& use : tracker.uses(id)) {
            const bool ends = use.cut || !use.recorded || tracker.uses(use.result).empty();
            if (ends) consider(use, use.cut);
            if (!use.cut && use.recorded && seen.insert(use.result).second) {
                stack.push_back(use.result);
            }
        }
    }
    if (!furthest) return "no op read it";
    if (cut) {
        return fmt::format(
            "its path ends before {}, which read a constant copy (detach() or "
            "value())",
            called(*furthest));
    }
    if (!furthest->recorded) {
        return fmt::format("its path ends at {}, which was not recorded (NoGrad)",
                           called(*furthest));
    }
    return fmt::format("its path ends at {}, whose result no op that leads to the output read",
                       called(*furthest));
}

}  // namespace

void UsageTracker::on_forward(const ForwardEvent& event) {
    if (event.recomputed) return;
    const std::int64_t result = event.output.id();
    for (const Variable& x : event.inputs) {
        const auto add = [&](std::int64_t id, bool cut) {
            uses_[id].push_back({std::string(event.row.name), event.scope->path, result,
                                 event.output.requires_grad(), cut});
        };
        add(x.id(), false);
        const auto owner = owners_.find(x.value().bytes());
        if (owner != owners_.end() && owner->second != x.id() && !x.requires_grad()) {
            add(owner->second, true);
        } else if (owners_.try_emplace(x.value().bytes(), x.id()).second) {
            held_.push_back(x.value());
        }
    }
    if (owners_.try_emplace(event.output.value().bytes(), result).second) {
        held_.push_back(event.output.value());
    }
}

const std::vector<UsageTracker::Use>& UsageTracker::uses(std::int64_t id) const {
    static const std::vector<Use> none;
    const auto found = uses_.find(id);
    return found == uses_.end() ? none : found->second;
}

std::int64_t UsageTracker::owner(const Tensor& value) const {
    const auto found = owners_.find(value.bytes());
    return found == owners_.end() ? 0 : found->second;
}

void UsageTracker::clear() {
    uses_.clear();
    owners_.clear();
    held_.clear();
}

std::vector<UnusedParameter> unused_parameters(
    const Variable& y, const std::vector<std::pair<std::string, Variable>>& parameters,
    const UsageTracker* tracker) {
    if (!y.defined()) throw ValueError("unused_parameters: the result is undefined");
    const std::unordered_set<const Node*> graph = graph_of(y);
    std::vector<UnusedParameter> unused;
    for (const auto& [name, parameter] : parameters) {
        if (!parameter.defined()) {
            throw ValueError(fmt::format("unused_parameters: parameter {} is undefined", name));
        }
        if (!parameter.requires_grad()) {
            unused.push_back({name, "it requires no gradient (frozen, or a constant)"});
        } else if (!graph.contains(parameter.node().get())) {
            unused.push_back({name, tracker ? end_of_path(parameter, *tracker)
                                            : "no op in the graph of the result reads it"});
        }
    }
    return unused;
}

std::vector<UnusedParameter> unused_parameters(const Variable& y,
                                               const std::vector<Variable>& parameters,
                                               const UsageTracker* tracker) {
    std::vector<std::pair<std::string, Variable>> named;
    named.reserve(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Variable& each = parameters[i];
        named.emplace_back(each.defined() && each.name().empty() ? describe(each)
                           : each.defined()                      ? each.name()
                                                                 : fmt::format("{}", i),
                           each);
    }
    return unused_parameters(y, named, tracker);
}

std::string to_string(const std::vector<UnusedParameter>& unused) {
    if (unused.empty()) return "no unused parameters";
    std::string text = "unused parameters:";
    for (const UnusedParameter& each : unused) {
        text += fmt::format("\n  {}: {}", each.name, each.reason);
    }
    return text;
}

}  // namespace glassgrad
