#pragma once
// Gradients kept within bounds.

#include <glassgrad/autograd/variable.hpp>

#include <vector>

namespace glassgrad {

/// √(sum of squares) of all gradients together, in f64 and scaled by the largest, so that nothing
/// overflows; 0 when there are none, NaN if one element is NaN.
double grad_norm(const std::vector<Variable>& parameters);

/// Multiplies all gradients by max_norm / norm if the norm is larger, as
/// torch.nn.utils.clip_grad_norm_ (which divides by norm + 1e-6). Zeros stay zeros. Returns the
/// norm before. A norm that isn't finite changes nothing: the caller decides what a lost step
/// means. Throws ValueError unless max_norm > 0.
double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm);

/// Puts each element of each gradient in ±limit; NaN stays. Throws ValueError unless limit > 0.
void clip_grad_value(const std::vector<Variable>& parameters, double limit);

}  // namespace glassgrad
