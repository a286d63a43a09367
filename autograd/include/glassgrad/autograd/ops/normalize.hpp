#pragma once
// Softmax and what else brings rows to a common measure.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>

namespace glassgrad {

/// y = exp(x - max x) / sum exp(x - max x) along `axis`; a row of -inf gives zeros and takes zero
/// gradient. Derivative: gx = y (gy - sum(gy y)), 0 where y is 0 whatever gy is.
Variable softmax(const Variable& x, std::int64_t axis = -1);
/// y = x - log sum exp x along `axis`. Derivative: gx = gy - exp(y) sum(gy); 0 in a row of -inf.
Variable log_softmax(const Variable& x, std::int64_t axis = -1);
/// gx of softmax from its result y. Itself composed of ops when recorded.
Variable softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis);
/// gx of log_softmax from its result y. Itself composed of ops when recorded.
Variable log_softmax_vjp(const Variable& y, const Variable& gy, std::int64_t axis);

/// h = (x - mean) / sqrt(var + eps) over the axes.
/// Derivative: gx = (gy - mean(gy) - h mean(gy h)) / sqrt(var + eps).
Variable layer_norm(const Variable& x, const NormOptions& options = {});
/// y = h weight + bias, both of the shape of the axes; either may be undefined.
/// Derivative: of h from gy weight; gweight = gy h, gbias = gy, summed over all other axes.
Variable layer_norm(const Variable& x, const Variable& weight, const Variable& bias,
                    const NormOptions& options = {});
/// gx of layer_norm(x). Itself composed of ops when recorded.
Variable layer_norm_vjp(const Variable& x, const Variable& gy, const NormOptions& options);

/// h = x / sqrt(mean(x²) + eps) over the axes. Derivative: gx = (gy - h mean(gy h)) /
/// sqrt(mean(x²) + eps).
Variable rms_norm(const Variable& x, const NormOptions& options = {});
/// y = h weight. Derivative: of h from gy weight; gweight = gy h, summed over all other axes.
Variable rms_norm(const Variable& x, const Variable& weight, const NormOptions& options = {});
/// gx of rms_norm(x). Itself composed of ops when recorded.
Variable rms_norm_vjp(const Variable& x, const Variable& gy, const NormOptions& options);

}  // namespace glassgrad
