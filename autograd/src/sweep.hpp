#pragma once
// One pass over a graph, from the outputs to what they were computed from. Nothing is recursive.
//
// The usual pass runs the rules on Tensors. When it is recorded (create_graph) or observed it runs
// the same rules on Variables; without create_graph nothing is recorded there, so the numbers are
// the same to the bit.

#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/error.hpp>

#include "reached.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad::detail {

class PausedObservers {
  public:
    explicit PausedObservers(bool pause) noexcept
        : previous_(std::exchange(detail::observers_paused, pause || detail::observers_paused)) {}
    ~PausedObservers() { detail::observers_paused = previous_; }
    PausedObservers(const PausedObservers&) = delete;
    PausedObservers& operator=(const PausedObservers&) = delete;

  private:
    bool previous_;
};

/// Whoever makes one holds the roots, and through them every node.
template <class V>
class Sweep final : public Gradients<V> {
  public:
    Sweep(std::span<const NodePtr> roots, const std::vector<NodePtr>* targets, bool create_graph,
          bool retain_graph)
        : Gradients<V>(next_sweep()),
          reached_(roots, targets, this->sweep()),
          targets_(targets),
          create_graph_(create_graph),
          retain_graph_(retain_graph) {
        if (targets) {
            for (const NodePtr& target : *targets) sorted_targets_.push_back(target.get());
            std::sort(sorted_targets_.begin(), sorted_targets_.end());
        }
        give_slots(reached_.nodes());
    }

    void seed(Node& root, V&& gradient) {
        if (reached_.holds(&root)) add(root, std::move(gradient));
    }

    void run() {
        const GradMode mode(create_graph_);
        ScopeRestore scope(nullptr);
        scope_ = &scope;
        while (Node* node = reached_.next()) {
            if (node->reached) visit(*node);
        }
    }

    /// The leaves and retained results (or, with targets, those) that a gradient arrived at.
    std::span<Node* const> asked_for() const noexcept { return reached_.asked_for(); }
    /// The gradient that arrived at a node that is asked for; null if none did. It may be moved
    /// away.
    V* arrived_at(Node& node) {
        return reached_.holds(&node) && node.asked_for ? &first(node) : nullptr;
    }

    void put(std::size_t index, Node& input, V&& gradient) override {
        if (gradient.defined() && gradient.dtype() == input.dtype() &&
            gradient.shape() == input.shape()) [[likely]] {
            // as it should be
        } else {
            mend(index, input, gradient);
        }
        if constexpr (recorded) {
            if (current_gradients_.size() <= index) current_gradients_.resize(index + 1);
            current_gradients_[index] = gradient;
        }
        add(input, std::move(gradient));
    }

  private:
    static constexpr bool recorded = std::is_same_v<V, Variable>;

    /// Sums a broadcast gradient to the input's shape; throws when it is none of that input.
    [[gnu::noinline]] void mend(std::size_t index, const Node& input, V& gradient) const {
        const auto problem = [&](std::string_view what) {
            return fmt::format("backward of {}: the gradient of input {} {}", current_->row->name,
                               index, what);
        };
        const Shape& shape = input.shape();
        if (!gradient.defined()) {
            throw GraphError(problem("is missing"), "return zeros where the derivative is zero");
        }
        if (gradient.dtype() != input.dtype()) {
            throw TypeError(problem(fmt::format("is {}, the input is {}", name(gradient.dtype()),
                                                name(input.dtype()))));
        }
        bool broadcast = gradient.rank() >= shape.rank();
        for (int i = 1; broadcast && i <= shape.rank(); ++i) {
            const std::int64_t size = shape[shape.rank() - i];
            broadcast = size == gradient.shape()[gradient.rank() - i] || size == 1;
        }
        if (!broadcast) {
            throw ShapeError(problem(fmt::format("has shape {}, the input has {}",
                                                 to_string(gradient.shape()), to_string(shape))));
        }
        gradient = sum_to(gradient, shape);
    }

    /// Where the only gradient of a node lies, on its way and after its arrival.
    V& first(Node& node) {
        if constexpr (recorded) {
            return contributions_[node.slot].front();
        } else {
            return node.pending;
        }
    }

    void add(Node& node, V&& gradient) {
        if constexpr (recorded) {
            contributions_[node.slot].push_back(std::move(gradient));
        } else if (!node.reached) {
            Elements::take(node.pending, std::move(gradient));
        } else if (gradient.is_unique() && !node.pending.is_unique()) {
            gradient += node.pending;
            Elements::take(node.pending, std::move(gradient));
        } else {
            node.pending += gradient;
        }
        node.reached = true;
    }

    /// The sum of all that was added; in the order of arrival, as the usual pass adds. That of the
    /// usual pass stays where it is.
    decltype(auto) whole(Node& node) {
        if constexpr (!recorded) {
            return static_cast<Tensor&>(node.pending);
        } else {
            const std::vector<Variable> parts = std::exchange(contributions_[node.slot], {});
            if (parts.size() == 1) return V(parts.front());
            Variable total;
            {
                const PausedObservers pause(!create_graph_);
                if (create_graph_) {
                    total = parts.front();
                    for (std::size_t i = 1; i < parts.size(); ++i) total = total + parts[i];
                } else {
                    Tensor sum = parts.front().value();
                    for (std::size_t i = 1; i < parts.size(); ++i) sum += parts[i].value();
                    total = Variable(std::move(sum));
                }
            }
            const AccumulateEvent event{node.id, parts, total, node.scope};
            notify([&](Observer& observer) { observer.on_accumulate(event); });
            return total;
        }
    }

    [[gnu::noinline]] V run_hooks(Node& node, V gradient) {
        const auto hooks = node.extra->hooks;  // a hook may remove itself
        for (const auto& [number, hook] : hooks) {
            const Variable replacement = hook(Variable(gradient));
            if (!replacement.defined()) continue;
            if (replacement.shape() != node.shape() || replacement.dtype() != node.dtype()) {
                throw ShapeError(
                    fmt::format("hook: returned a gradient of {} {}, the value is {} {}",
                                name(replacement.dtype()), to_string(replacement.shape()),
                                name(node.dtype()), to_string(node.shape())));
            }
            if constexpr (recorded) {
                gradient = replacement;
            } else {
                gradient = replacement.value();
            }
        }
        return gradient;
    }

    bool is_target(const Node& node) const {
        return std::binary_search(sorted_targets_.begin(), sorted_targets_.end(), &node);
    }

    void visit(Node& node) {
        current_ = &node;
        scope_->move_to(node.scope);
        decltype(auto) gradient = whole(node);
        if (node.extra && !node.extra->hooks.empty()) gradient = run_hooks(node, gradient);
        if constexpr (recorded) {
            // A result computed again got its gradient before, as the checkpoint's.
            if (&node != recomputed_) {
                const GradientEvent event{node.id, gradient};
                notify([&](Observer& observer) { observer.on_gradient(event); });
            }
        }
        const bool keep =
            targets_ ? is_target(node) : node.is_leaf || (node.extra && node.extra->retain_grad);
        if (keep) {
            reached_.ask_for(node);
            if constexpr (recorded) contributions_[node.slot].push_back(gradient);
        }
        if (node.is_leaf) return;
        if (node.released) fail_released(node);
        if (node.recomputes) {
            expand(node, V(gradient));
        } else {
            const std::int64_t begin = detail::observed() ? clock_now() : 0;
            pull(node, gradient);
            if (begin != 0) [[unlikely]]
                notify_backward_run(node, begin);
        }
        if constexpr (!recorded) {
            if (!keep) Elements::drop(node.pending);
        }
        if (!retain_graph_) {
            node.release();
            node.released = true;
        }
    }

    [[noreturn]] static void fail_released(const Node& node) {
        throw GraphError(
            fmt::format("backward: the graph behind the result of {} was swept before, and "
                        "what it had saved is gone",
                        node.row->name),
            "pass {.retain_graph = true} to the first backward, or compute the result again");
    }

    /// Goes on into the graph of the node's result computed again, as if that had been kept.
    void expand(Node& node, V&& gradient) {
        const Variable again = node.recompute();
        give_slots(reached_.expand(again.node(), node));
        recomputed_ = again.node().get();
        seed(*again.node(), std::move(gradient));
    }

    void give_slots(std::span<Node* const> nodes) {
        if constexpr (recorded) {
            std::size_t slot = contributions_.size();
            contributions_.resize(slot + nodes.size());
            for (Node* node : nodes) node->slot = slot++;
        }
    }

    void pull(Node& node, const V& gradient) {
        if constexpr (!recorded) {
            node.pull(gradient, *this);
        } else {
            const bool observed = detail::observed();
            std::vector<Variable> saved;
            if (observed) node.list_saved(saved);
            current_gradients_.assign(node.inputs().size(), Variable());
            {
                const PausedObservers pause(!create_graph_);
                node.pull(gradient, *this);
            }
            if (!observed) return;
            std::vector<std::int64_t> ids;
            for (const NodePtr& input : node.inputs()) {
                ids.push_back(this->wanted(input.get()) ? input->id : 0);
            }
            const BackwardEvent event{*node.row,          node.id, gradient,  saved,
                                      current_gradients_, ids,     node.scope};
            notify([&](Observer& observer) { observer.on_backward(event); });
        }
    }

    template <class F>
    static void notify(const F& f) {
        if (!detail::observed()) return;
        const std::vector<Observer*> watching(observers().begin(), observers().end());
        for (Observer* observer : watching) f(*observer);
    }

    Reached reached_;
    ScopeRestore* scope_ = nullptr;
    const std::vector<NodePtr>* targets_;
    std::vector<const Node*> sorted_targets_;
    const bool create_graph_;
    const bool retain_graph_;
    Node* current_ = nullptr;
    const Node* recomputed_ = nullptr;
    std::vector<std::vector<Variable>> contributions_;  // by slot; recorded passes only
    std::vector<Variable> current_gradients_;
};

}  // namespace glassgrad::detail
