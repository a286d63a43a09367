#pragma once

#include <glassgrad/layers/activation.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/layers/linear.hpp>

#include <memory>

namespace glassgrad {

struct FeedForwardOptions {
    std::int64_t d_model = 0;
    std::int64_t d_ff = 0;
    Activation activation = Activation::relu;
    /// Multiplied by a second projection: with silu, SwiGLU (Shazeer 2020).
    bool gated = false;
    bool bias = true;
    double dropout = 0;
    DType dtype = f32;
};

/// linear2(dropout(activation(linear1 x))), gated linear2(dropout(activation(linear1 x) linear3
/// x)): LLaMA's w1, w2 and w3 are linear1, linear2 and linear3. Source: Vaswani et al. 2017,
/// equation 2.
class FeedForward : public Layer {
  public:
    FeedForward(const FeedForwardOptions& options, RandomState& rng);

    /// x (..., d_model).
    Variable operator()(const Variable& x) const override;
    /// hidden: after the activation, and the gate.
    std::vector<std::string> point_names() const override { return {"hidden"}; }

    Linear linear1;                   ///< (d_ff, d_model)
    Linear linear2;                   ///< (d_model, d_ff)
    std::unique_ptr<Linear> linear3;  ///< (d_ff, d_model); null unless gated
    Dropout dropout;
    const Activation activation;
};

}  // namespace glassgrad
