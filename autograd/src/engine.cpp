#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "sweep.hpp"

#include <fmt/format.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {
namespace {

using detail::Node;
using detail::NodePtr;
using detail::Sweep;

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

const Tensor& tensor_of(const Tensor& x) { return x; }
const Tensor& tensor_of(const Variable& x) { return x.value(); }
Tensor taken(Tensor& x) { return std::move(x); }
Tensor taken(const Variable& x) { return x.value(); }

template <class V>
void run_backward(const Variable& y, Tensor gradient, bool retain_graph) {
    // Holds the graph, whatever a hook does to y.
    const NodePtr root = y.node();  // NOLINT(performance-unnecessary-copy-initialization)
    Sweep<V> sweep({&root, 1}, nullptr, false, retain_graph);
    sweep.seed(*root, V(std::move(gradient)));
    sweep.run();
    // Every rule has run. What needs memory comes first, so that a failure changes no gradient.
    for (Node* node : sweep.asked_for()) {
        Tensor& kept = node->more().grad;
        if (kept.defined() && !kept.is_unique()) kept = kept.clone();
    }
    for (Node* node : sweep.asked_for()) {
        Tensor& kept = node->extra->grad;
        V& arrived = *sweep.arrived_at(*node);
        if (kept.defined()) {
            kept += tensor_of(arrived);
        } else {
            kept = taken(arrived);
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
    for (std::size_t i = 0; i < roots.size(); ++i) sweep.seed(*roots[i], V(cotangents[i]));
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
    if (detail::values_observed()) {
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
    if (options.create_graph || detail::values_observed()) {
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
