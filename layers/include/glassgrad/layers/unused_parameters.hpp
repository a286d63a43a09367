#pragma once
// The parameters of a module that no gradient reaches, under their dotted names.

#include <glassgrad/autograd/unused_parameters.hpp>
#include <glassgrad/layers/module.hpp>

namespace glassgrad {

/// As `unused_parameters` of autograd/, over all parameters of a module: `blocks.1.attention.W_Q`.
inline std::vector<UnusedParameter> unused_parameters(const Variable& y, const Module& module,
                                                      const UsageTracker* tracker = nullptr) {
    return unused_parameters(y, module.named_parameters(), tracker);
}

}  // namespace glassgrad
