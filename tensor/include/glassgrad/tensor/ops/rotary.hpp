#pragma once
// Rotary positions: pairs of elements turned by an angle that depends on the place.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// Which elements of a head make a pair.
enum class RotaryPairing {
    neighbours,  ///< 2i and 2i + 1
    halves,      ///< i and i + width / 2
};

/// Pair (a, b) number i of each row becomes (a cos[i] - b sin[i], b cos[i] + a sin[i]): x (...,
/// width), cos and sin (..., width / 2) broadcast to x. Throws ShapeError unless they do and the
/// width is even. Source: Su et al. 2021, equation 34; halves: GPT-NeoX.
Tensor rotary(const Tensor& x, const Tensor& cos, const Tensor& sin,
              RotaryPairing pairing = RotaryPairing::neighbours);

}  // namespace glassgrad
