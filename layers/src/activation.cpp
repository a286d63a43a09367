#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/activation.hpp>

#include "names.hpp"

namespace glassgrad {
namespace {

constexpr detail::Named<Activation> names[] = {{Activation::relu, "relu"},
                                               {Activation::gelu, "gelu"},
                                               {Activation::gelu_tanh, "gelu_tanh"},
                                               {Activation::silu, "silu"}};

}  // namespace

Variable activate(Activation activation, const Variable& x) {
    switch (activation) {
        case Activation::relu: return relu(x);
        case Activation::gelu: return gelu(x);
        case Activation::gelu_tanh: return gelu(x, {.approximate = Approximate::tanh});
        case Activation::silu: return silu(x);
    }
    throw ValueError("activate: not one of the activations there are");
}

std::string_view name(Activation activation) { return detail::name_of(names, activation); }
Activation activation_from(std::string_view text) {
    return detail::value_named(names, text, "activation");
}

}  // namespace glassgrad
