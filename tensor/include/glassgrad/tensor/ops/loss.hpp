#pragma once
// Losses.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {}  // namespace glassgrad
