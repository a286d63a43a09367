#pragma once
// Less memory for more time: a part of a computation whose graph is not kept.

#include <glassgrad/autograd/variable.hpp>

#include <functional>
#include <initializer_list>
#include <span>

namespace glassgrad {

using CheckpointedFunction = std::function<Variable(std::span<const Variable> inputs)>;

/// f(inputs), of which the graph keeps the inputs alone: the backward pass computes f again,
/// records it, and goes on through what was recorded. Values and gradients have the bits that they
/// have without; derivatives of these (create_graph, which keeps what was recorded) agree to
/// rounding. Derivative: that of f, also with respect to what f captures. What f captures has to
/// live, and to keep its value, until the backward pass. f has to compute the same again: random
/// numbers are to be drawn from a state that f copies or seeds itself. The passes of `backward` and
/// `grad` go through f; f itself may not start one over what it was given. Ops, hooks and scopes
/// inside f come once more in the backward pass, where observers see them as
/// `ForwardEvent::recomputed`; a hook that f registers is called in that pass, once.
/// Throws ValueError for an undefined function, input or result; the backward pass throws
/// GraphError when f gives other bits, or reads other values, than the first time.
/// Source: Chen, Xu, Zhang, Guestrin, Training Deep Nets with Sublinear Memory Cost (2016).
Variable checkpoint(const CheckpointedFunction& f, std::span<const Variable> inputs);
Variable checkpoint(const CheckpointedFunction& f, std::initializer_list<Variable> inputs);

}  // namespace glassgrad
