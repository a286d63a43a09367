#pragma once

#include <glassgrad/layers/layer.hpp>
#include <glassgrad/tensor/random.hpp>

namespace glassgrad {

struct LinearOptions {
    bool bias = true;
    DType dtype = f32;
};

/// y = x weightᵀ + bias, with weight (out, in) and bias (out,), as torch.nn.Linear.
class Linear : public Layer {
  public:
    /// Both uniform in ±1/√in (PyTorch's default). Throws ShapeError unless both sizes are at
    /// least 1.
    Linear(std::int64_t in, std::int64_t out, RandomState& rng, const LinearOptions& options = {});
    /// Tied, without a bias: takes a weight (out, in) together with whoever has it already, such as
    /// an Embedding (vocabulary, width). One tensor under two names, whose gradients add up.
    explicit Linear(const Variable& shared);

    /// x (..., in) to (..., out). Throws ShapeError that names both sizes.
    Variable operator()(const Variable& x) const override;

    Variable weight;
    Variable bias;  ///< undefined without one
};

}  // namespace glassgrad
