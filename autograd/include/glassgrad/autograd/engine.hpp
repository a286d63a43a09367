#pragma once
// The sweeps over a graph.

#include <glassgrad/autograd/variable.hpp>

#include <vector>

namespace glassgrad {

struct BackwardOptions {
    /// dL/dy, of y's shape; may be left out when y has one element (then it is 1).
    Tensor gradient = {};
    /// Keeps the saved values, so that the graph can be swept again.
    bool retain_graph = false;
};

/// Adds dL/dx to the `grad()` of every parameter x that y was computed from. Either all gradients
/// are added or, when something throws, none.
/// Throws GraphError when y requires no gradient, has more than one element and no cotangent is
/// given, or when its graph was swept before without `retain_graph`.
void backward(const Variable& y, const BackwardOptions& options = {});

struct GradOptions {
    /// A cotangent an output; may be empty when each output has one element.
    std::vector<Variable> grad_outputs = {};
    /// Records the pass, so that the gradients can be differentiated again.
    bool create_graph = false;
    /// Keeps the saved values; implied by create_graph.
    bool retain_graph = false;
    /// Gives an undefined Variable for an input that no output depends on, instead of throwing.
    bool allow_unused = false;
};

/// Gradients of the sum of `outputs` (weighted by their cotangents) with respect to `inputs`, one
/// each, of the input's shape. Leaves `grad()` of parameters alone.
std::vector<Variable> grad(const std::vector<Variable>& outputs,
                           const std::vector<Variable>& inputs, const GradOptions& options = {});

}  // namespace glassgrad
