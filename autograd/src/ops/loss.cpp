// Losses of one element each.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/composed.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Interval;
using detail::plain;
using detail::Samples;
using detail::spread;

namespace {

struct NamedReduction {
    Reduction reduction;
    const char* name;
    const char* torch;
};
constexpr NamedReduction reductions[] = {{Reduction::none, "none", "'none'"},
                                         {Reduction::sum, "sum", "'sum'"},
                                         {Reduction::mean, "mean", "'mean'"},
                                         {Reduction::batch_mean, "batch_mean", "'sum') / len(a"}};

/// Each reduction of a loss that Python calls `call, reduction=…)`.
template <class F>
void add_reductions(Samples& samples, const std::string& label, Interval x, Interval target, F loss,
                    const std::string& call) {
    for (const auto& each : reductions) {
        const Reduction reduction = each.reduction;
        samples.push_back(detail::sample(
            label + each.name, spread({2, 3}, x, 1), spread({2, 3}, target, 2),
            [=](const Variable& a, const Variable& b) { return loss(a, b, reduction); },
            call + ", reduction=" + each.torch + ")"));
    }
}
template <class F>
void add_shapes(Samples& samples, Interval x, Interval target, F loss, const std::string& call) {
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 3}}) {
        samples.push_back(detail::sample(
            to_string(shape), spread(shape, x, 3), spread(shape, target, 4),
            [=](const Variable& a, const Variable& b) { return loss(a, b, Reduction::sum); },
            call + ", reduction='sum')"));
    }
    samples.push_back(detail::sample(
        "mean of nothing", spread({0}, x, 5), spread({0}, target, 6),
        [=](const Variable& a, const Variable& b) { return loss(a, b, Reduction::mean); },
        "(a + b).sum()"));
}

template <class F>
Samples loss_samples(Interval x, Interval target, F loss, const std::string& call) {
    Samples samples;
    add_reductions(samples, "", x, target, loss, call);
    add_shapes(samples, x, target, loss, call);
    return samples;
}

Samples huber_samples() {
    const auto with = [](double delta) {
        return [delta](const Variable& a, const Variable& b, Reduction reduction) {
            return huber_loss(a, b, {.reduction = reduction, .delta = delta});
        };
    };
    Samples samples = loss_samples({-2, 2}, {-2, 2}, with(1), "F.huber_loss(a, b");
    add_reductions(samples, "delta 0.3, ", {-2, 2}, {-2, 2}, with(0.3),
                   "F.huber_loss(a, b, delta=0.3");
    return samples;
}

Samples bce_samples() {
    const auto with = [](double weight) {
        return [weight](const Variable& a, const Variable& b, Reduction reduction) {
            return bce_with_logits(a, b, {.reduction = reduction, .pos_weight = weight});
        };
    };
    const std::string call = "F.binary_cross_entropy_with_logits(a, b";
    Samples samples = loss_samples({-3, 3}, {0.1, 0.9}, with(1), call);
    add_reductions(samples, "pos_weight 2.5, ", {-3, 3}, {0.1, 0.9}, with(2.5),
                   call + ", pos_weight=torch.tensor(2.5)");
    add_reductions(samples, "pos_weight 0, ", {-3, 3}, {0.1, 0.9}, with(0),
                   call + ", pos_weight=torch.tensor(0.0)");
    add_reductions(samples, "far, ", {-9, 9}, {0.1, 0.9}, with(1), call);
    return samples;
}

Samples kl_samples() {
    const auto with = [](bool log_target) {
        return [log_target](const Variable& a, const Variable& b, Reduction reduction) {
            return kl_div(a, b, {.reduction = reduction, .log_target = log_target});
        };
    };
    Samples samples = loss_samples({-3, -0.1}, {0.1, 0.9}, with(false), "F.kl_div(a, b");
    add_reductions(samples, "logarithms, ", {-3, -0.1}, {-3, -0.1}, with(true),
                   "F.kl_div(a, b, log_target=True");
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "mse_loss",
     .forward = "y = (x - target)², reduced",
     .backward = "gx = 2 g (x - target); gtarget = -gx, with g = gy / n for the mean",
     .holds = "y >= 0",
     .domain = "the mean over nothing is 0",
     .inputs = "x target",
     .torch = "torch.nn.functional.mse_loss",
     .samples =
         [] {
             return loss_samples(
                 {-2, 2}, {-2, 2},
                 [](const Variable& a, const Variable& b, Reduction reduction) {
                     return mse_loss(a, b, {.reduction = reduction});
                 },
                 "F.mse_loss(a, b");
         }},
    {.name = "l1_loss",
     .forward = "y = |x - target|, reduced",
     .backward = "gx = g sign(x - target); gtarget = -gx, with g = gy / n for the mean",
     .holds = "y >= 0",
     .domain = "the derivative is 0 where x = target; the mean over nothing is 0",
     .inputs = "x target",
     .torch = "torch.nn.functional.l1_loss",
     .samples =
         [] {
             return loss_samples(
                 {-2, 2}, {-2, 2},
                 [](const Variable& a, const Variable& b, Reduction reduction) {
                     return l1_loss(a, b, {.reduction = reduction});
                 },
                 "F.l1_loss(a, b");
         }},
    {.name = "huber_loss",
     .forward = "y = d²/2 where |d| <= delta, else delta (|d| - delta/2), reduced; d = x - target",
     .backward = "gx = g clamp(d, -delta, delta); gtarget = -gx, with g = gy / n for the mean",
     .holds = "y >= 0",
     .domain = "delta > 0; the mean over nothing is 0",
     .inputs = "x target",
     .torch = "torch.nn.functional.huber_loss",
     .samples = huber_samples},
    {.name = "bce_with_logits",
     .forward = "y = pos_weight t softplus(-x) + (1 - t) softplus(x), reduced; t = target",
     .backward = "gx = g ((1 - t) sigmoid(x) - pos_weight t sigmoid(-x)); gtarget = g (pos_weight "
                 "softplus(-x) - softplus(x)), with g = gy / n for the mean",
     .domain = "any logit; a side that counts 0 is 0; the mean over nothing is 0",
     .inputs = "x target",
     .torch = "torch.nn.functional.binary_cross_entropy_with_logits",
     .samples = bce_samples},
    {.name = "kl_div",
     .forward = "y = t (log t - x), reduced; t = target, or exp(target) for log_target",
     .backward = "gx = -g t; gtarget = g (log t + 1 - x), times t for log_target, with g = gy / n "
                 "for the mean",
     .domain = "0 with zero gradient where t = 0; the mean over nothing is 0",
     .inputs = "x target",
     .torch = "torch.nn.functional.kl_div",
     .samples = kl_samples},
};

/// What an element's loss is multiplied by on its way into y.
double share(Reduction reduction, const Variable& x) {
    return detail::share(reduction, x.numel(), x.rank() == 0 ? 1 : x.shape()[0]);
}

Attributes attributes(Reduction reduction) {
    return {{"reduction", reductions[static_cast<int>(reduction)].name}};
}

/// A loss of d = x - target with the slope `slope(d)`.
template <class F>
Variable of_difference(const OpRow& row, Tensor value, Reduction reduction, const Variable& x,
                       const Variable& target, const F& slope) {
    const double part = share(reduction, x);
    return record(
        row, std::move(value), [&] { return attributes(reduction); },
        edge(
            x,
            [part, slope](const auto& gy, const auto& a, const auto& b) {
                return scale(gy, part) * slope(a - b);
            },
            x, target),
        edge(
            target,
            [part, slope](const auto& gy, const auto& a, const auto& b) {
                return scale(gy, -part) * slope(a - b);
            },
            x, target));
}

}  // namespace

std::span<const OpRow> detail::loss_rows() { return rows; }

Variable mse_loss(const Variable& x, const Variable& target, const LossOptions& options) {
    return of_difference(
        find(rows, "mse_loss"),
        detail::computed(
            find(rows, "mse_loss"), [&] { return mse_loss(x.value(), target.value(), options); }, x,
            target),
        options.reduction, x, target, [](const auto& d) { return scale(d, 2); });
}

Variable l1_loss(const Variable& x, const Variable& target, const LossOptions& options) {
    return of_difference(
        find(rows, "l1_loss"),
        detail::computed(
            find(rows, "l1_loss"), [&] { return l1_loss(x.value(), target.value(), options); }, x,
            target),
        options.reduction, x, target, [](const auto& d) { return sign(d); });
}

Variable huber_loss(const Variable& x, const Variable& target, const HuberOptions& options) {
    const double delta = options.delta;
    return of_difference(
        find(rows, "huber_loss"),
        detail::computed(
            find(rows, "huber_loss"),
            [&] { return huber_loss(x.value(), target.value(), options); }, x, target),
        options.reduction, x, target,
        [delta](const auto& d) { return clamp(d, {.min = -delta, .max = delta}); });
}

Variable bce_with_logits(const Variable& x, const Variable& target, const BceOptions& options) {
    const double weight = options.pos_weight;
    const double part = share(options.reduction, x);
    return record(
        find(rows, "bce_with_logits"),
        [&] { return bce_with_logits(x.value(), target.value(), options); },
        [&] {
            Attributes list = attributes(options.reduction);
            list.emplace_back("pos_weight", weight);
            return list;
        },
        edge(
            x,
            [=](const auto& gy, const auto& a, const auto& t) {
                return scale(gy, part) * ((1.0 - t) * sigmoid(a) - scale(t, weight) * sigmoid(-a));
            },
            x, target),
        edge(
            target,
            [=](const auto& gy, const auto& a) {
                // A side that never counts has no infinity to give.
                if (weight == 0) return scale(gy, -part) * softplus(a);
                return scale(gy, part) * (scale(softplus(-a), weight) - softplus(a));
            },
            x));
}

Variable kl_div(const Variable& x, const Variable& target, const KlDivOptions& options) {
    const double part = share(options.reduction, x);
    const bool logarithm = options.log_target;
    return record(
        find(rows, "kl_div"), [&] { return kl_div(x.value(), target.value(), options); },
        [&] {
            Attributes list = attributes(options.reduction);
            list.emplace_back("log_target", logarithm);
            return list;
        },
        edge(
            x,
            [=](const auto& gy, const auto& t) {
                return scale(gy, -part) * (logarithm ? exp(t) : t);
            },
            target),
        edge(
            target,
            [=](const auto& gy, const auto& a, const auto& t) {
                using V = std::remove_cvref_t<decltype(gy)>;
                const Tensor p = logarithm ? exp(plain(t)) : plain(t);
                const Tensor zero = zeros({}, p.dtype());
                const V slope =
                    where(V(equal(p, zero)), V(zero), (logarithm ? t : log(t)) + 1.0 - a);
                return scale(gy, part) * (logarithm ? exp(t) * slope : slope);
            },
            x, target));
}

}  // namespace glassgrad
