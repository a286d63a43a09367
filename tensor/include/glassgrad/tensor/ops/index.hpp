#pragma once
// Elements picked and put by index.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {}  // namespace glassgrad
