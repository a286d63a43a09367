#pragma once
// Layers that bring the last axis to a common measure.

#include <glassgrad/layers/layer.hpp>

#include <memory>
#include <string_view>

namespace glassgrad {

struct LayerNormOptions {
    double eps = 1e-5;  ///< inside the root
    bool bias = true;
    DType dtype = f32;
};

/// (x - mean) / √(var + eps) weight + bias over the last axis, as torch.nn.LayerNorm: weight of
/// ones and bias of zeros (width,). Throws ShapeError or ValueError on a width below 1 or an eps
/// that isn't positive. Source: Ba, Kiros and Hinton 2016.
class LayerNorm : public Layer {
  public:
    explicit LayerNorm(std::int64_t width, const LayerNormOptions& options = {});
    /// x (..., width).
    Variable operator()(const Variable& x) const override;

    Variable weight;
    Variable bias;  ///< undefined without one
    const double eps;
};

struct RMSNormOptions {
    double eps = 1e-5;  ///< inside the root
    DType dtype = f32;
};

/// x / √(mean(x²) + eps) weight over the last axis, as torch.nn.RMSNorm. Source: Zhang and
/// Sennrich 2019.
class RMSNorm : public Layer {
  public:
    explicit RMSNorm(std::int64_t width, const RMSNormOptions& options = {});
    /// x (..., width).
    Variable operator()(const Variable& x) const override;

    Variable weight;
    const double eps;
};

enum class NormKind { layer_norm, rms_norm };
/// "layer_norm" or "rms_norm".
std::string_view name(NormKind kind);
/// The inverse of `name`. Throws ValueError that lists the names.
NormKind norm_kind_from(std::string_view text);

/// A LayerNorm, or an RMSNorm, which has no bias.
std::unique_ptr<Layer> make_norm(NormKind kind, std::int64_t width,
                                 const LayerNormOptions& options = {});

}  // namespace glassgrad
