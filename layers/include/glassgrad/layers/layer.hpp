#pragma once

#include <glassgrad/layers/module.hpp>

namespace glassgrad {

/// A module of one argument: what `Sequential` chains.
class Layer : public Module {
  public:
    virtual Variable operator()(const Variable& x) const = 0;
};

}  // namespace glassgrad
