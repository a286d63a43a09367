#pragma once

#include <glassgrad/layers/module.hpp>

#include <string>

namespace glassgrad {

/// A table of all parameters, a row each: path, shape, type, count, and for a tensor that stands
/// under several names the first of them; then the total, each tensor counted once, and its bytes.
std::string summary(const Module& model);

}  // namespace glassgrad
