#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/clip.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace glassgrad {
namespace {

void require_positive(std::string_view what, std::string_view name, double value) {
    if (value > 0) return;
    throw ValueError(fmt::format("{}: {} {} must be positive", what, name, value));
}

}  // namespace

double grad_norm(const std::vector<Variable>& parameters) {
    std::vector<double> norms;
    for (const Variable& each : parameters) {
        const Tensor gradient = each.grad();
        if (!gradient.defined() || gradient.numel() == 0) continue;
        const double largest = max(abs(gradient)).item();
        if (!std::isfinite(largest)) return largest;
        if (largest == 0) continue;
        // Elements of at most 1 are squared, in f64.
        norms.push_back(largest * norm(gradient.astype(f64) / full({}, largest, f64)).item());
    }
    double top = 0;
    for (const double each : norms) top = std::max(top, each);
    if (top == 0 || std::isinf(top)) return top;
    double total = 0;
    for (const double each : norms) total += each / top * (each / top);
    return top * std::sqrt(total);
}

double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm) {
    require_positive("clip_grad_norm", "max_norm", max_norm);
    const double size = grad_norm(parameters);
    if (!std::isfinite(size) || size <= max_norm) return size;
    std::vector<Tensor> clipped;
    for (const Variable& each : parameters) {
        const Tensor gradient = each.grad();
        clipped.push_back(gradient.defined() ? scale(gradient, max_norm / (size + 1e-6))
                                             : Tensor());
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        Variable parameter = parameters[i];
        if (clipped[i].defined()) parameter.set_grad(std::move(clipped[i]));
    }
    return size;
}

void clip_grad_value(const std::vector<Variable>& parameters, double limit) {
    require_positive("clip_grad_value", "limit", limit);
    for (Variable each : parameters) {
        if (each.has_grad()) each.set_grad(clamp(each.grad(), {.min = -limit, .max = limit}));
    }
}

}  // namespace glassgrad
