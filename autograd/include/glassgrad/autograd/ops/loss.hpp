#pragma once
// Losses.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/loss.hpp>

namespace glassgrad {}  // namespace glassgrad
