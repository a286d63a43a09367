#pragma once
// gradcheck for modules: their parameters are checked together with the inputs.

#include <glassgrad/autograd/gradcheck.hpp>
#include <glassgrad/layers/module.hpp>

namespace glassgrad {

/// Checks `f`, which calls `module` on its inputs, with respect to the inputs and to every
/// parameter of the module that is not frozen, in f64. The module is as it was afterwards; frozen
/// parameters are listed in the report.
GradcheckReport gradcheck(Module& module, const CheckedFunction& f,
                          const std::vector<Variable>& inputs,
                          const GradcheckOptions& options = {});

}  // namespace glassgrad
