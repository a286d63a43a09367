#pragma once
// Elements picked and put by index.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/index.hpp>

namespace glassgrad {}  // namespace glassgrad
