#pragma once
// Activations by name, for options and configurations; as functions they are ops: relu, gelu, silu.

#include <glassgrad/autograd/variable.hpp>

#include <string_view>

namespace glassgrad {

enum class Activation {
    relu,
    gelu,       ///< by erf, PyTorch's default
    gelu_tanh,  ///< GPT-2's approximation
    silu,
};

Variable activate(Activation activation, const Variable& x);

/// "relu", "gelu", "gelu_tanh" or "silu".
std::string_view name(Activation activation);
/// The inverse of `name`. Throws ValueError that lists the names.
Activation activation_from(std::string_view text);

}  // namespace glassgrad
