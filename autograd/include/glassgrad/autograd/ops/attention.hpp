#pragma once
// Attention and dropout.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/attention.hpp>

namespace glassgrad {}  // namespace glassgrad
