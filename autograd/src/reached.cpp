#include "reached.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace glassgrad::detail {
namespace {

void sort_later_first(std::vector<Node*>& nodes) {
    const auto later = [](const Node* a, const Node* b) { return a->id > b->id; };
    constexpr std::size_t few = 32;
    if (nodes.size() <= few) {
        for (std::size_t i = 1; i < nodes.size(); ++i) {
            Node* const node = nodes[i];
            std::size_t at = i;
            for (; at > 0 && later(node, nodes[at - 1]); --at) nodes[at] = nodes[at - 1];
            nodes[at] = node;
        }
        return;
    }
    if (!std::is_sorted(nodes.begin(), nodes.end(), later)) {
        std::sort(nodes.begin(), nodes.end(), later);
    }
}

void forget(std::span<Node* const> nodes) noexcept {
    for (Node* node : nodes) {
        node->sweep = 0;
        node->asked_for = false;
        Elements::drop(node->pending);
    }
}

const Node* address(const Node* node) { return node; }
const Node* address(const NodePtr& node) { return node.get(); }

std::string what_holds(const Node& node) {
    return node.is_leaf ? fmt::format("a parameter of shape {}", to_string(node.shape()))
                        : fmt::format("the result of {}", node.row->name);
}

/// Unmarks the nodes that `leads` is false for; ids fall along the list, so inputs come later in
/// it, and `leads` finds their `reached` set.
template <class F>
void keep_if(std::vector<Node*>& nodes, const F& leads) {
    for (std::size_t i = nodes.size(); i-- > 0;) {
        for (const NodePtr& input : nodes[i]->inputs()) {
            if (input && leads(*input)) nodes[i]->reached = true;
        }
    }
    std::erase_if(nodes, [&](Node* node) {
        const bool keep = std::exchange(node->reached, false);
        if (!keep) node->sweep = 0;
        return !keep;
    });
}

}  // namespace

std::int64_t next_sweep() noexcept {
    static constinit Counter sweeps{0};
    return sweeps.next();
}

Reached::Workspace& Reached::workspace() {
    static thread_local Workspace instance;
    return instance;
}

Reached::Reached(std::span<const NodePtr> roots, const std::vector<NodePtr>* targets,
                 std::int64_t sweep)
    : memory_(workspace().busy ? own_ : workspace()),
      has_targets_(targets != nullptr),
      number(sweep) {
    memory_.busy = true;
    try {
        collect(roots);
        if (targets) keep_paths_to(*targets);
    } catch (...) {
        clear();
        throw;
    }
}

Reached::~Reached() { clear(); }

void Reached::collect(std::span<const NodePtr> roots) {
    auto& nodes = memory_.nodes;
    auto& stack = memory_.stack;
    const auto visit = [&](Node* node) {
        if (!node || node->sweep == number) return;
        if (node->sweep != 0) {
            throw GraphError(
                fmt::format("backward: called inside another backward over the same graph, which "
                            "holds {}",
                            what_holds(*node)),
                "finish the first one, or detach() what the inner one needs");
        }
        nodes.push_back(node);
        node->sweep = number;
        node->reached = false;
        if (!node->is_leaf) stack.push_back(node);
    };
    for (const NodePtr& root : roots) visit(root.get());
    while (!stack.empty()) {
        Node* node = stack.back();
        stack.pop_back();
        for (const NodePtr& input : node->inputs()) visit(input.get());
    }
    sort_later_first(nodes);
}

void Reached::keep_paths_to(const std::vector<NodePtr>& targets) {
    for (const NodePtr& target : targets) {
        if (target->sweep == number) target->reached = true;
    }
    keep_if(memory_.nodes,
            [&](const Node& input) { return input.sweep == number && input.reached; });
}

std::span<Node* const> Reached::expand(NodePtr root, const Node& checkpoint) {
    expansions_.emplace_back();
    Expansion& expansion = expansions_.back();
    expansion.root = std::move(root);
    collect(expansion, checkpoint);
    return expansion.nodes;
}

void Reached::collect(Expansion& expansion, const Node& checkpoint) {
    const std::int64_t first = checkpoint.recomputes_from();
    auto& nodes = expansion.nodes;
    auto& stack = memory_.stack;
    const std::span<const NodePtr> read = checkpoint.inputs();  // by address
    const auto by_address = [](const auto& a, const auto& b) {
        return std::less<>()(address(a), address(b));
    };
    const auto visit = [&](Node* node) {
        if (!node || (node->id >= first && node->sweep == number)) return;
        if (node->id < first) {
            if (std::binary_search(read.begin(), read.end(), node, by_address)) return;
            throw GraphError(
                fmt::format("checkpoint: computed again, the function reads {}, which it did not "
                            "read the first time",
                            what_holds(*node)),
                "what a checkpointed function reads must be the same each time");
        }
        nodes.push_back(node);
        node->sweep = number;
        node->reached = false;
        if (!node->is_leaf) stack.push_back(node);
    };
    visit(expansion.root.get());
    while (!stack.empty()) {
        Node* node = stack.back();
        stack.pop_back();
        for (const NodePtr& input : node->inputs()) visit(input.get());
    }
    sort_later_first(nodes);
    if (!has_targets_) return;
    keep_if(nodes, [&](const Node& input) {
        return input.sweep == number && (input.id < first || input.reached);
    });
}

Node* Reached::next_of_expansions() noexcept {
    while (!expansions_.empty()) {
        Expansion& inner = expansions_.back();
        if (inner.position < inner.nodes.size()) return inner.nodes[inner.position++];
        // `ask_for` has made room.
        if (inner.asked_for) {
            finished_.push_back(std::move(inner));
        } else {
            forget(inner.nodes);
        }
        expansions_.pop_back();
    }
    return next();
}

void Reached::ask_for(Node& node) {
    memory_.asked_for.push_back(&node);
    if (!expansions_.empty()) {
        finished_.reserve(finished_.size() + expansions_.size());
        expansions_.back().asked_for = true;
    }
    node.asked_for = true;
}

void Reached::clear() noexcept {
    for (const Expansion& each : expansions_) forget(each.nodes);
    for (const Expansion& each : finished_) forget(each.nodes);
    forget(memory_.nodes);
    memory_.nodes.clear();
    memory_.stack.clear();
    memory_.asked_for.clear();
    memory_.busy = false;
}

}  // namespace glassgrad::detail
