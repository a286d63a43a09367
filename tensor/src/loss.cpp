// Losses of one element each, then reduced. Sums are f64.

#include <glassgrad/tensor/detail/class_weights.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"

#include <cmath>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::with_float;

double detail::share(Reduction reduction, std::int64_t count, std::int64_t first) {
    if (reduction == Reduction::none || reduction == Reduction::sum) return 1;
    const std::int64_t divisor = reduction == Reduction::mean ? count : first;
    return divisor == 0 ? 0 : 1 / static_cast<double>(divisor);
}

namespace {

/// f(x, target) of each pair, in f64, and what `reduction` makes of them.
template <class F>
Tensor pointwise(std::string_view op, const Tensor& x, const Tensor& target, Reduction reduction,
                 const F& f) {
    detail::require_defined(op, x);
    detail::require_defined(op, target);
    if (x.dtype() != target.dtype()) {
        fail<TypeError>(hint("convert one with astype"), "{}: x is {}, the target {}", op,
                        x.dtype(), target.dtype());
    }
    if (x.shape() != target.shape()) {
        fail<ShapeError>(hint("reshape one of them; a loss does not broadcast"),
                         "{}: x {} and target {} have different shapes", op, x.shape(),
                         target.shape());
    }
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const bool keep = reduction == Reduction::none;
        Tensor losses = Tensor::empty(x.shape(), f64);
        const T* px = x.data<T>();
        const T* pt = target.data<T>();
        auto* out = losses.mutable_data<double>();
        detail::for_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) {
                out[i] = f(static_cast<double>(px[i]), static_cast<double>(pt[i]));
            }
        });
        if (keep) return losses.astype(x.dtype());
        const double share = detail::share(reduction, x.numel(), x.rank() == 0 ? 1 : x.shape()[0]);
        if (share == 0) return zeros({}, x.dtype());
        return (sum(losses) * share).astype(x.dtype());
    });
}

/// log(1 + exp(x)), exact for large |x|.
double log_one_plus_exp(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

/// weight times value, 0 for a weight of 0 whatever the value is.
double weighted(double weight, double value) { return weight == 0 ? 0 : weight * value; }

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, const LossOptions& options) {
    return pointwise("mse_loss", x, target, options.reduction,
                     [](double a, double b) { return (a - b) * (a - b); });
}

Tensor l1_loss(const Tensor& x, const Tensor& target, const LossOptions& options) {
    return pointwise("l1_loss", x, target, options.reduction,
                     [](double a, double b) { return std::abs(a - b); });
}

Tensor huber_loss(const Tensor& x, const Tensor& target, const HuberOptions& options) {
    if (!(options.delta > 0 && std::isfinite(options.delta))) {
        fail<ValueError>("huber_loss: delta must be positive, got {}", options.delta);
    }
    return pointwise("huber_loss", x, target, options.reduction, [&](double a, double b) {
        const double d = std::abs(a - b);
        return d > options.delta ? options.delta * (d - options.delta / 2) : d * d / 2;
    });
}

Tensor bce_with_logits(const Tensor& x, const Tensor& target, const BceOptions& options) {
    return pointwise("bce_with_logits", x, target, options.reduction, [&](double a, double t) {
        return weighted(options.pos_weight * t, log_one_plus_exp(-a)) +
               weighted(1 - t, log_one_plus_exp(a));
    });
}

Tensor kl_div(const Tensor& x, const Tensor& target, const KlDivOptions& options) {
    return pointwise("kl_div", x, target, options.reduction, [&](double a, double t) {
        const double p = options.log_target ? std::exp(t) : t;
        return weighted(p, (options.log_target ? t : std::log(t)) - a);
    });
}

}  // namespace glassgrad
