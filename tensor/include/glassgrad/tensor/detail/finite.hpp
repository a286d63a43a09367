#pragma once
// For those who look at every value.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad::detail {

/// True when no element is NaN or infinite; of types without these always.
bool all_finite(const Tensor& x);

}  // namespace glassgrad::detail
