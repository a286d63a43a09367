#pragma once
// Gradients kept within bounds.

#include <glassgrad/autograd/variable.hpp>

#include <vector>

namespace glassgrad {

/// √(sum of squares) of all gradients together, in f64 and scaled by the largest, so that nothing
/// overflows; 0 when there are none, NaN if one element is NaN.
double grad_norm(const std::vector<Variable>& parameters);

/// What brings gradients of this norm within `max_norm`: max_norm / (norm + 1e-6) if the norm is
/// larger, 1 if it isn't or isn't finite. Throws ValueError unless max_norm > 0.
double clip_scale(double norm, double max_norm);

/// Multiplies all gradients by `clip_scale` of their norm, as torch.nn.utils.clip_grad_norm_. Zeros
/// stay zeros. Returns the norm before. A norm that isn't finite changes nothing: the caller
/// decides what a lost step means. `Optimizer::step` does the same on the way. Throws ValueError
/// unless max_norm > 0.
double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm);

/// Puts each element of each gradient in ±limit; NaN stays. Throws ValueError unless limit > 0.
void clip_grad_value(const std::vector<Variable>& parameters, double limit);

}  // namespace glassgrad
