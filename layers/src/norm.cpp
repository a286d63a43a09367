#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/norm.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include "names.hpp"

namespace glassgrad {
namespace {

Tensor first_weight(std::string_view layer, std::int64_t width, double eps, DType dtype) {
    if (width < 1) {
        throw ShapeError(fmt::format("{}: the width is {}, it must be at least 1", layer, width));
    }
    if (!(eps > 0)) throw ValueError(fmt::format("{}: eps {} must be positive", layer, eps));
    return ones({width}, dtype);
}

void check_width(std::string_view layer, const Variable& x, const Variable& weight) {
    if (x.rank() > 0 && x.shape().back() == weight.shape()[0]) return;
    throw ShapeError(fmt::format("{}: the last axis of {} is not {} long", layer,
                                 to_string(x.shape()), weight.shape()[0]));
}

constexpr detail::Named<NormKind> kinds[] = {{NormKind::layer_norm, "layer_norm"},
                                             {NormKind::rms_norm, "rms_norm"}};

}  // namespace

LayerNorm::LayerNorm(std::int64_t width, const LayerNormOptions& options) : eps(options.eps) {
    weight = register_parameter("weight", first_weight("layer_norm", width, eps, options.dtype));
    if (options.bias) bias = register_parameter("bias", zeros({width}, options.dtype));
}

Variable LayerNorm::operator()(const Variable& x) const {
    const Scope scope = enter();
    check_width("layer_norm", x, weight);
    return layer_norm(x, weight, bias, {.eps = eps});
}

RMSNorm::RMSNorm(std::int64_t width, const RMSNormOptions& options) : eps(options.eps) {
    weight = register_parameter("weight", first_weight("rms_norm", width, eps, options.dtype));
}

Variable RMSNorm::operator()(const Variable& x) const {
    const Scope scope = enter();
    check_width("rms_norm", x, weight);
    return rms_norm(x, weight, {.eps = eps});
}

std::string_view name(NormKind kind) { return detail::name_of(kinds, kind); }
NormKind norm_kind_from(std::string_view text) { return detail::value_named(kinds, text, "norm"); }

std::unique_ptr<Layer> make_norm(NormKind kind, std::int64_t width,
                                 const LayerNormOptions& options) {
    if (kind == NormKind::layer_norm) return std::make_unique<LayerNorm>(width, options);
    return std::make_unique<RMSNorm>(width,
                                     RMSNormOptions{.eps = options.eps, .dtype = options.dtype});
}

}  // namespace glassgrad
