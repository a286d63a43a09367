// The sweep: nodes reachable from the outputs, in falling order of their ids, which grow with
// creation, so that a node comes before everything it was computed from. Nothing is recursive.
//
// The usual pass runs the rules on Tensors. When it is recorded (create_graph) or observed it runs
// the same rules on Variables; without create_graph nothing is recorded there, so the numbers are
// the same to the bit.

#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {
namespace {

using detail::Node;
using detail::NodePtr;

std::int64_t new_sweep_number() noexcept { return detail::next_id(); }

const Tensor& tensor_of(const Tensor& x) { return x; }
const Tensor& tensor_of(const Variable& x) { return x.value(); }

/// Memory that sweeps of a thread use again; a nested sweep brings its own.
struct Workspace {
    std::vector<Node*> nodes;
    std::vector<Node*> stack;
    bool busy = false;
};
Workspace& workspace() {
    static thread_local Workspace instance;
    return instance;
}

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

/// The nodes of one sweep, marked with its number while it runs.
class Reached {
  public:
    /// Everything behind `roots`; with `targets`, only what leads to one of them.
    Reached(std::span<const NodePtr> roots, const std::vector<NodePtr>* targets)
        : memory_(workspace().busy ? own_ : workspace()), number(new_sweep_number()) {
        memory_.busy = true;
        try {
            collect(roots);
            if (targets) keep_paths_to(*targets);
        } catch (...) {
            clear();
            throw;
        }
    }
    ~Reached() { clear(); }
    Reached(const Reached&) = delete;
    Reached& operator=(const Reached&) = delete;

    const std::vector<Node*>& nodes() const noexcept { return memory_.nodes; }

  private:
    void collect(std::span<const NodePtr> roots) {
        auto& nodes = memory_.nodes;
        auto& stack = memory_.stack;
        const auto visit = [&](Node* node) {
            if (!node || node->sweep == number) return;
            if (node->sweep != 0) {
                throw GraphError(
                    fmt::format("backward: called inside another backward over the same graph, "
                                "which holds the result of {}",
                                node->row->name),
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
        const auto later = [](const Node* a, const Node* b) { return a->id > b->id; };
        if (!std::is_sorted(nodes.begin(), nodes.end(), later)) {
            std::sort(nodes.begin(), nodes.end(), later);
        }
    }

    /// Unmarks what leads to no target; ids fall along the list, so inputs come later in it.
    void keep_paths_to(const std::vector<NodePtr>& targets) {
        for (const NodePtr& target : targets) {
            if (target->sweep == number) target->reached = true;
        }
        auto& nodes = memory_.nodes;
        for (std::size_t i = nodes.size(); i-- > 0;) {
            for (const NodePtr& input : nodes[i]->inputs()) {
                if (input && input->sweep == number && input->reached) nodes[i]->reached = true;
            }
        }
        std::erase_if(nodes, [&](Node* node) {
            const bool keep = std::exchange(node->reached, false);
            if (!keep) node->sweep = 0;
            return !keep;
        });
    }

    void clear() noexcept {
        for (Node* node : memory_.nodes) {
            node->sweep = 0;
            node->asked_for = false;
            node->pending = Tensor();
        }
        memory_.nodes.clear();
        memory_.stack.clear();
        memory_.busy = false;
    }

    Workspace own_;
    Workspace& memory_;

  public:
    const std::int64_t number;
};

/// Whoever makes one holds the roots, and through them every node.
template <class V>
class Sweep final : public detail::Gradients<V> {
  public:
    Sweep(std::span<const NodePtr> roots, const std::vector<NodePtr>* targets, bool create_graph,
          bool retain_graph)
        : reached_(roots, targets),
          targets_(targets),
          create_graph_(create_graph),
          retain_graph_(retain_graph) {
        if (targets) {
            for (const NodePtr& target : *targets) sorted_targets_.push_back(target.get());
            std::sort(sorted_targets_.begin(), sorted_targets_.end());
        }
        if constexpr (recorded) {
            contributions_.resize(reached_.nodes().size());
            for (std::size_t i = 0; i < reached_.nodes().size(); ++i) {
                reached_.nodes()[i]->slot = i;
            }
        }
    }

    void seed(Node& root, V gradient) {
        if (root.sweep == reached_.number) add(root, std::move(gradient));
    }

    void run() {
        const GradMode mode(create_graph_);
        for (Node* node : reached_.nodes()) {
            if (node->reached) visit(*node);
        }
    }

    const std::vector<Node*>& nodes() const noexcept { return reached_.nodes(); }
    /// The gradient that arrived at a leaf or retained result (or, with targets, at one of those);
    /// null if none did. It may be moved away.
    V* arrived_at(Node& node) {
        return node.sweep == reached_.number && node.asked_for ? &first(node) : nullptr;
    }

    bool wanted(const Node* input) const noexcept override {
        return input && input->sweep == reached_.number;
    }

    void put(std::size_t index, Node& input, V gradient) override {
        check(index, input, gradient);
        if constexpr (recorded) {
            if (current_gradients_.size() <= index) current_gradients_.resize(index + 1);
            current_gradients_[index] = gradient;
        }
        add(input, std::move(gradient));
    }

  private:
    static constexpr bool recorded = std::is_same_v<V, Variable>;

    /// Shape and type of a rule's answer; a broadcast one is summed to the input's shape.
    void check(std::size_t index, const Node& input, V& gradient) const {
        const auto problem = [&](std::string_view what) {
            return fmt::format("backward of {}: the gradient of input {} {}", current_->row->name,
                               index, what);
        };
        if (!gradient.defined()) {
            throw GraphError(problem("is missing"), "return zeros where the derivative is zero");
        }
        if (gradient.dtype() != input.dtype) {
            throw TypeError(problem(
                fmt::format("is {}, the input is {}", name(gradient.dtype()), name(input.dtype))));
        }
        if (gradient.shape() == input.shape) return;
        bool broadcast = gradient.rank() >= input.shape.rank();
        for (int i = 1; broadcast && i <= input.shape.rank(); ++i) {
            const std::int64_t size = input.shape[input.shape.rank() - i];
            broadcast = size == gradient.shape()[gradient.rank() - i] || size == 1;
        }
        if (!broadcast) {
            throw ShapeError(
                problem(fmt::format("has shape {}, the input has {}", to_string(gradient.shape()),
                                    to_string(input.shape))));
        }
        gradient = sum_to(gradient, input.shape);
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
        } else if (node.reached) {
            node.pending += gradient;
        } else {
            node.pending = std::move(gradient);
        }
        node.reached = true;
    }

    /// The sum of all that was added; in the order of arrival, as the usual pass adds.
    V take(Node& node) {
        if constexpr (!recorded) {
            return std::exchange(node.pending, Tensor());
        } else {
            const std::vector<Variable> parts = std::exchange(contributions_[node.slot], {});
            if (parts.size() == 1) return parts.front();
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

    V run_hooks(Node& node, V gradient) {
        const auto hooks = node.extra->hooks;  // a hook may remove itself
        for (const auto& [number, hook] : hooks) {
            const Variable replacement = hook(Variable(gradient));
            if (!replacement.defined()) continue;
            if (replacement.shape() != node.shape || replacement.dtype() != node.dtype) {
                throw ShapeError(
                    fmt::format("hook: returned a gradient of {} {}, the value is {} {}",
                                name(replacement.dtype()), to_string(replacement.shape()),
                                name(node.dtype), to_string(node.shape)));
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
        const ScopeRestore scope(node.scope);
        V gradient = take(node);
        if (node.extra && !node.extra->hooks.empty()) {
            gradient = run_hooks(node, std::move(gradient));
        }
        if constexpr (recorded) {
            const GradientEvent event{node.id, gradient};
            notify([&](Observer& observer) { observer.on_gradient(event); });
        }
        const bool keep =
            targets_ ? is_target(node) : node.is_leaf || (node.extra && node.extra->retain_grad);
        if (keep) {
            node.asked_for = true;
            if constexpr (recorded) contributions_[node.slot].emplace_back();
            first(node) = gradient;
        }
        if (node.is_leaf) return;
        if (node.released) {
            throw GraphError(
                fmt::format("backward: the graph behind the result of {} was swept before, and "
                            "what it had saved is gone",
                            node.row->name),
                "pass {.retain_graph = true} to the first backward, or compute the result again");
        }
        pull(node, gradient);
        if (!retain_graph_) {
            node.release();
            node.released = true;
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
                ids.push_back(wanted(input.get()) ? input->id : 0);
            }
            const BackwardEvent event{*node.row,          node.id, gradient,  saved,
                                      current_gradients_, ids,     node.scope};
            notify([&](Observer& observer) { observer.on_backward(event); });
        }
    }

    template <class F>
    static void notify(const F& f) {
        if (!detail::observed()) return;
        const std::vector<Observer*> watching(detail::observers().begin(),
                                              detail::observers().end());
        for (Observer* observer : watching) f(*observer);
    }

    Reached reached_;
    const std::vector<NodePtr>* targets_;
    std::vector<const Node*> sorted_targets_;
    const bool create_graph_;
    const bool retain_graph_;
    Node* current_ = nullptr;
    std::vector<std::vector<Variable>> contributions_;  // by slot; recorded passes only
    std::vector<Variable> current_gradients_;
};

/// The cotangent of `y`: the one given, checked, or 1 for a single element.
Tensor cotangent(std::string_view op, const Variable& y, const Tensor& given,
                 std::string_view option) {
    if (!given.defined()) {
        if (y.numel() == 1) return ones_like(y.value());
        throw GraphError(fmt::format("{}: {} has {} elements, not one", op, describe(y), y.numel()),
                         fmt::format("reduce it with sum or mean, or pass {}", option));
    }
    if (given.shape() != y.shape()) {
        throw ShapeError(fmt::format("{}: the cotangent has shape {}, {} needs {}", op,
                                     to_string(given.shape()), describe(y), to_string(y.shape())));
    }
    if (given.dtype() != y.dtype()) {
        throw TypeError(fmt::format("{}: the cotangent is {}, {} is {}", op, name(given.dtype()),
                                    describe(y), name(y.dtype())),
                        "convert it with astype");
    }
    return given;
}

void require_graph(std::string_view op, const Variable& y) {
    if (y.requires_grad()) return;
    throw GraphError(fmt::format("{}: {} requires no gradient", op, describe(y)),
                     "it was computed from constants, from detached values or under NoGrad; wrap "
                     "what should be trained in parameter()");
}

template <class V>
void run_backward(const Variable& y, Tensor gradient, bool retain_graph) {
    // Holds the graph, whatever a hook does to y.
    const NodePtr root = y.node();  // NOLINT(performance-unnecessary-copy-initialization)
    Sweep<V> sweep({&root, 1}, nullptr, false, retain_graph);
    sweep.seed(*root, V(std::move(gradient)));
    sweep.run();
    // Every rule has run: from here on only memory can fail.
    for (Node* node : sweep.nodes()) {
        V* arrived = sweep.arrived_at(*node);
        if (!arrived) continue;
        Tensor& kept = node->more().grad;
        if (kept.defined()) {
            kept += tensor_of(*arrived);
        } else if constexpr (std::is_same_v<V, Tensor>) {
            kept = std::move(*arrived);
        } else {
            kept = arrived->value();
        }
    }
}

template <class V>
std::vector<Variable> run_grad(const std::vector<Variable>& outputs,
                               const std::vector<V>& cotangents,
                               const std::vector<NodePtr>& targets, bool create_graph,
                               bool retain_graph) {
    std::vector<NodePtr> roots;
    roots.reserve(outputs.size());
    for (const Variable& y : outputs) roots.push_back(y.node());
    Sweep<V> sweep(roots, &targets, create_graph, retain_graph);
    for (std::size_t i = 0; i < roots.size(); ++i) sweep.seed(*roots[i], cotangents[i]);
    sweep.run();
    std::vector<Variable> gradients(targets.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (V* arrived = sweep.arrived_at(*targets[i])) gradients[i] = Variable(*arrived);
    }
    return gradients;
}

}  // namespace

void backward(const Variable& y, const BackwardOptions& options) {
    require_graph("backward", y);
    Tensor gradient = cotangent("backward", y, options.gradient, "a cotangent as {.gradient = …}");
    if (detail::observed()) {
        run_backward<Variable>(y, std::move(gradient), options.retain_graph);
    } else {
        run_backward<Tensor>(y, std::move(gradient), options.retain_graph);
    }
}

std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs, const GradOptions& options) {
    if (!options.grad_outputs.empty() && options.grad_outputs.size() != outputs.size()) {
        throw ValueError(fmt::format("grad: {} outputs but {} cotangents", outputs.size(),
                                     options.grad_outputs.size()));
    }
    std::vector<Variable> cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
        require_graph("grad", outputs[i]);
        const Variable given = options.grad_outputs.empty() ? Variable() : options.grad_outputs[i];
        const Tensor checked =
            cotangent("grad", outputs[i], given.defined() ? given.value() : Tensor(),
                      "cotangents as {.grad_outputs = …}");
        cotangents.push_back(given.defined() ? given : Variable(checked));
    }
    std::vector<NodePtr> targets;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].requires_grad()) {
            throw GraphError(
                fmt::format("grad: input {}, {}, requires no gradient", i, describe(inputs[i])),
                "make it a parameter before computing with it");
        }
        targets.push_back(inputs[i].node());
    }
    const bool retain = options.retain_graph || options.create_graph;
    std::vector<Variable> gradients;
    if (options.create_graph || detail::observed()) {
        gradients = run_grad(outputs, cotangents, targets, options.create_graph, retain);
    } else {
        std::vector<Tensor> tensors;
        tensors.reserve(cotangents.size());
        for (const Variable& each : cotangents) tensors.push_back(each.value());
        gradients = run_grad(outputs, tensors, targets, false, retain);
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (gradients[i].defined() || options.allow_unused) continue;
        throw GraphError(
            fmt::format("grad: no output depends on input {}, {}", i, describe(inputs[i])),
            "the path was severed (detach, NoGrad, value()) or never there; allow it with "
            "{.allow_unused = true}");
    }
    return gradients;
}

}  // namespace glassgrad
