#pragma once
// Softmax and what else brings rows to a common measure.

#include <glassgrad/tensor/tensor.hpp>

namespace glassgrad {

/// exp(x - max x) / sum along `axis`. A row that is all -inf gives zeros; NaN stays NaN, and a row
/// with +inf is NaN, as inf - inf is.
Tensor softmax(const Tensor& x, std::int64_t axis = -1);
/// x - max x - log sum exp along `axis`. A row that is all -inf gives -inf.
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);
/// gx of softmax from its result y: y (gy - sum(gy y)). Where y is exactly 0, gy does not count,
/// whatever it is.
Tensor softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis);
/// gx of log_softmax from its result y: gy - exp(y) sum(gy); 0 in a row that is all -inf.
Tensor log_softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis);

struct NormOptions {
    Axes axes = -1;     ///< the axes whose elements are measured together
    double eps = 1e-5;  ///< added inside the root; must be positive
};

/// (x - mean) / sqrt(var + eps) over the axes; var divides by n. f32 is added up in f64, in two
/// passes. Throws ValueError unless eps > 0. Source: Ba, Kiros and Hinton 2016.
Tensor layer_norm(const Tensor& x, const NormOptions& options = {});
/// The same times `weight` plus `bias`, both of the shape of the axes; either may be undefined.
/// Throws ShapeError or TypeError that names the parameter.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options = {});
/// gx of layer_norm(x) without weight, for axes that are the last ones.
Tensor layer_norm_vjp(const Tensor& x, const Tensor& gy, const NormOptions& options);

/// x / sqrt(mean(x²) + eps) over the axes. Source: Zhang and Sennrich 2019.
Tensor rms_norm(const Tensor& x, const NormOptions& options = {});
/// The same times `weight`, of the shape of the axes.
Tensor rms_norm(const Tensor& x, const Tensor& weight, const NormOptions& options = {});
/// gx of rms_norm(x) without weight, for axes that are the last ones.
Tensor rms_norm_vjp(const Tensor& x, const Tensor& gy, const NormOptions& options);

}  // namespace glassgrad
