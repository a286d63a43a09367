#pragma once
// The gradients of layer norm and RMS norm by all their inputs at once, which the usual backward
// pass runs: one pass over x and gy, no temporaries of their size.

#include <glassgrad/tensor/ops/normalize.hpp>

namespace glassgrad::detail {

/// One of each input; undefined where it isn't wanted.
struct NormGradients {
    Tensor x;
    Tensor weight;
    Tensor bias;
};
struct NormInputs {
    bool x = false;
    bool weight = false;
    bool bias = false;
};

/// For norms over the last axes. `weight` may be undefined. `wanted` are the gradients to compute.
NormGradients layer_norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& gy,
                                   const NormOptions& options, const NormInputs& wanted);
NormGradients rms_norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& gy,
                                 const NormOptions& options, const NormInputs& wanted);

}  // namespace glassgrad::detail
