#pragma once
// Attention and dropout.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {}  // namespace glassgrad
