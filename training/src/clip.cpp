#include <glassgrad/autograd/node.hpp>
#include <glassgrad/tensor/detail/updates.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/clip.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace glassgrad {
namespace {

void require_positive(std::string_view what, std::string_view name, double value) {
    if (value > 0) return;
    throw ValueError(fmt::format("{}: {} {} must be positive", what, name, value));
}

/// √(sum of squares) with all divided by the largest before, whatever their size; none is NaN.
double scaled_norm(const std::vector<Variable>& parameters) {
    std::vector<double> norms;
    for (const Variable& each : parameters) {
        const Tensor* gradient = detail::gradient_of(each);
        if (!gradient || gradient->numel() == 0) continue;
        const double largest = max(abs(*gradient)).item();
        if (!std::isfinite(largest)) return largest;
        if (largest == 0) continue;
        norms.push_back(largest * norm(gradient->astype(f64) / full({}, largest, f64)).item());
    }
    double top = 0;
    for (const double each : norms) top = std::max(top, each);
    if (top == 0 || std::isinf(top)) return top;
    double total = 0;
    for (const double each : norms) total += each / top * (each / top);
    return top * std::sqrt(total);
}

}  // namespace

double grad_norm(const std::vector<Variable>& parameters) {
    double squares = 0;
    for (const Variable& each : parameters) {
        if (const Tensor* gradient = detail::gradient_of(each)) {
            squares += detail::sum_of_squares(*gradient);
        }
    }
    // Between these nothing that counts was lost to overflow or underflow.
    if (std::isnan(squares) || (squares > 1e-200 && squares < 1e300)) return std::sqrt(squares);
    return scaled_norm(parameters);
}

double clip_scale(double norm, double max_norm) {
    require_positive("clip_scale", "max_norm", max_norm);
    return std::isfinite(norm) && norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

double clip_grad_norm(const std::vector<Variable>& parameters, double max_norm) {
    require_positive("clip_grad_norm", "max_norm", max_norm);
    const double size = grad_norm(parameters);
    const double factor = clip_scale(size, max_norm);
    if (factor == 1) return size;
    std::vector<Tensor*> gradients;
    gradients.reserve(parameters.size());
    for (const Variable& each : parameters) {
        if (Tensor* gradient = detail::gradient_of(each)) gradients.push_back(gradient);
    }
    // A parameter may be listed twice.
    std::sort(gradients.begin(), gradients.end(), std::less<>());
    gradients.erase(std::unique(gradients.begin(), gradients.end()), gradients.end());
    for (Tensor* each : gradients) detail::own(*each);
    for (Tensor* each : gradients) *each *= factor;
    return size;
}

void clip_grad_value(const std::vector<Variable>& parameters, double limit) {
    require_positive("clip_grad_value", "limit", limit);
    for (Variable each : parameters) {
        if (each.has_grad()) each.set_grad(clamp(each.grad(), {.min = -limit, .max = limit}));
    }
}

}  // namespace glassgrad
