#pragma once
// Rotary positions: see <glassgrad/tensor/ops/rotary.hpp>.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/rotary.hpp>

namespace glassgrad {

/// y = each pair (a, b) of x turned to (a cos - b sin, b cos + a sin).
/// Derivative: gx = rotary(gy, cos, -sin); gcos = gy·x and gsin = gy·(-b, a), each summed over a
/// pair.
Variable rotary(const Variable& x, const Variable& cos, const Variable& sin,
                RotaryPairing pairing = RotaryPairing::neighbours);

}  // namespace glassgrad
