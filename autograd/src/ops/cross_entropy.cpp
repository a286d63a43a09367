// Cross entropy and negative log likelihood of classes. Rules are for classes along the last axis;
// another is brought there by permute.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/composed.hpp>
#include <glassgrad/tensor/detail/trailing.hpp>

#include "family.hpp"

#include <fmt/format.h>

#include <limits>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

using Inputs = std::span<const Variable>;
using Loss = Variable (*)(const Variable&, const Variable&, const CrossEntropyOptions&);

/// i64 below `classes`, none like its neighbour; every `ignored`-th is -100.
Tensor numbers(const Shape& shape, std::int64_t classes, std::int64_t ignored = 0) {
    Tensor result = Tensor::empty(shape, i64);
    auto* out = result.mutable_data<std::int64_t>();
    for (std::int64_t i = 0; i < result.numel(); ++i) {
        out[i] = ignored != 0 && i % ignored == 1 ? -100 : (i * 2 + i / 3 + 1) % classes;
    }
    return result;
}

/// Samples with class numbers of a loss that Python calls `name(a, b, …)`.
Samples class_samples(Loss loss, const std::string& name, bool smoothing) {
    Samples samples;
    const auto add = [&](std::string_view label, Tensor logits, Tensor target,
                         const CrossEntropyOptions& options, const std::string& more) {
        samples.push_back(OpSample{std::string(label),
                                   {std::move(logits), std::move(target)},
                                   [loss, options](Inputs x) { return loss(x[0], x[1], options); },
                                   name + "(a, b" + more + ")"});
    };
    const Tensor logits = spread({3, 4}, {-2, 2}, 1);
    const Tensor weight = spread({4}, {0.3, 2}, 5);
    const std::string python_weight = ", weight=torch.tensor([" + [&] {
        std::string list;
        for (const double each : weight.values<double>()) list += fmt::format("{}, ", each);
        return list;
    }() + "], dtype=torch.float64)";
    add("mean", logits, numbers({3}, 4), {}, "");
    add("sum", logits, numbers({3}, 4), {.reduction = Reduction::sum}, ", reduction='sum'");
    add("none", logits, numbers({3}, 4), {.reduction = Reduction::none}, ", reduction='none'");
    add("one row", spread({4}, {-2, 2}, 2), numbers({}, 4), {}, "");
    add("some ignored", spread({5, 4}, {-2, 2}, 3), numbers({5}, 4, 3), {}, "");
    add("some ignored, none", spread({5, 4}, {-2, 2}, 3), numbers({5}, 4, 3),
        {.reduction = Reduction::none}, ", reduction='none'");
    add("class 2 ignored", spread({5, 4}, {-2, 2}, 3), numbers({5}, 4), {.ignore_index = 2},
        ", ignore_index=2");
    add("weights", spread({5, 4}, {-2, 2}, 4), numbers({5}, 4, 3), {.weight = weight},
        python_weight);
    add("axis 1 of (2, 4, 3)", spread({2, 4, 3}, {-2, 2}, 6), numbers({2, 3}, 4), {.axis = 1}, "");
    samples.push_back(OpSample{
        "(2, 3, 4)",
        {spread({2, 3, 4}, {-2, 2}, 7), numbers({2, 3}, 4)},
        [loss](Inputs x) { return loss(x[0], x[1], {.reduction = Reduction::batch_mean}); },
        name + "(a.transpose(1, 2), b, reduction='sum') / 2"});
    samples.push_back(
        OpSample{"no rows, sum",
                 {spread({0, 4}, {-2, 2}, 8), numbers({0}, 4)},
                 [loss](Inputs x) { return loss(x[0], x[1], {.reduction = Reduction::sum}); },
                 "a.sum()"});
    samples.push_back(OpSample{"no rows, mean",
                               {spread({0, 4}, {-2, 2}, 8), numbers({0}, 4)},
                               [loss](Inputs x) { return loss(x[0], x[1], {}); },
                               "a.sum()"});
    if (!smoothing) return samples;
    add("smoothed", spread({5, 4}, {-2, 2}, 9), numbers({5}, 4, 3), {.label_smoothing = 0.2},
        ", label_smoothing=0.2");
    add("smoothed, with weights", spread({5, 4}, {-2, 2}, 10), numbers({5}, 4, 3),
        {.weight = weight, .label_smoothing = 0.2}, python_weight + ", label_smoothing=0.2");
    add("logits of 1e4", spread({3, 4}, {-1e4, 1e4}, 11), numbers({3}, 4),
        {.reduction = Reduction::none}, ", reduction='none'");
    return samples;
}

Samples cross_entropy_samples() {
    Samples samples = class_samples(cross_entropy, "F.cross_entropy", true);
    const auto add = [&](std::string_view label, const CrossEntropyOptions& options,
                         const std::string& torch) {
        samples.push_back(
            OpSample{std::string(label),
                     {spread({3, 4}, {-2, 2}, 12), spread({3, 4}, {0.1, 0.9}, 13)},
                     [options](Inputs x) { return cross_entropy(x[0], x[1], options); },
                     torch});
    };
    add("probabilities", {}, "F.cross_entropy(a, b)");
    add("probabilities, none", {.reduction = Reduction::none},
        "F.cross_entropy(a, b, reduction='none')");
    add("probabilities, smoothed", {.reduction = Reduction::sum, .label_smoothing = 0.2},
        "F.cross_entropy(a, b, reduction='sum', label_smoothing=0.2)");
    add("probabilities along axis 0", {.axis = 0}, "F.cross_entropy(a.T, b.T)");
    add("probabilities with weights",
        {.weight = tensor({0.5, 2.0, 1.0, 0.25}, f64), .reduction = Reduction::batch_mean},
        "F.cross_entropy(a, b, weight=torch.tensor([0.5, 2.0, 1.0, 0.25], dtype=torch.float64))");
    return samples;
}

Samples nll_samples() { return class_samples(nll_loss, "F.nll_loss", false); }

constexpr OpRow rows[] = {
    {.name = "cross_entropy",
     .forward = "y = -sum_c q[c] log_softmax(logits)[c], averaged; q is weight[t] at the class t "
                "of the target, smoothed, or the target's probabilities",
     .backward = "glogits = g (softmax(logits) sum_c q[c] - q), with g = gy / (weight of all that "
                 "count); 0 in rows that are ignored",
     .holds = "y >= 0",
     .domain = "targets 0 to classes - 1, or ignore_index; 0 with zero gradient if no row counts",
     .inputs = "logits target",
     .torch = "torch.nn.functional.cross_entropy",
     .records = "cross_entropy permute log_softmax scale add mul where sum neg",
     .samples = cross_entropy_samples},
    {.name = "nll_loss",
     .forward = "y = -weight[t] log_p[t], averaged over the weights",
     .backward = "glog_p = -g weight[t] at the class t of the target, else 0",
     .domain = "targets 0 to classes - 1, or ignore_index; 0 with zero gradient if no row counts",
     .inputs = "log_p target",
     .torch = "torch.nn.functional.nll_loss",
     .records = "nll_loss permute",
     .samples = nll_samples},
};

/// `loss(logits, target, options)` with the axis of the classes at the end.
Variable moved(Loss loss, const detail::Trailing& axis, const Variable& logits,
               const Variable& target, CrossEntropyOptions options) {
    options.axis = -1;
    const auto turned = [&](const Variable& x) { return permute(x, detail::list(axis.order)); };
    return loss(turned(logits), target.dtype() == i64 ? target : turned(target), options);
}

Attributes attributes(const CrossEntropyOptions& options) {
    constexpr const char* names[] = {"none", "sum", "mean", "batch_mean"};
    Attributes list{{"reduction", names[static_cast<int>(options.reduction)]},
                    {"ignore_index", options.ignore_index}};
    if (options.label_smoothing != 0) list.emplace_back("label_smoothing", options.label_smoothing);
    if (options.weight.defined()) list.emplace_back("weighted", true);
    return list;
}

/// What a row's loss is multiplied by on its way into y, times gy.
template <class V>
V row_slopes(const V& gy, const Tensor& target, const CrossEntropyOptions& options) {
    V g = scale(gy, detail::class_share(target, options));
    if (options.reduction != Reduction::none) return g;
    Shape shape = target.shape();
    shape.push_back(1);
    return reshape(g, shape);
}

}  // namespace

std::span<const OpRow> detail::cross_entropy_rows() { return rows; }

Variable cross_entropy_vjp(const Variable& logits, const Variable& target, const Variable& gy,
                           const CrossEntropyOptions& options) {
    const Tensor& x = logits.value();
    const Tensor& t = target.value();
    if (!grad_enabled()) return Variable(cross_entropy_vjp(x, t, gy.value(), options));
    detail::check_classes_vjp("cross_entropy_vjp", x, t, gy.value(), options);
    const Tensor q = detail::class_weights(x.shape(), x.dtype(), t, options);
    const Tensor all = sum(q, {.axes = {-1}, .keepdims = true});
    const Variable slopes = row_slopes(gy, t, options);
    if (x.numel() == 0) return (softmax(logits) * Variable(all) - Variable(q)) * slopes;
    const double infinity = std::numeric_limits<double>::infinity();
    const Tensor alive =
        not_equal(max(x, {.axes = {-1}, .keepdims = true}), detail::number(-infinity, x.dtype()));
    const Tensor counts = logical_and(alive, detail::counted_rows(t, options));
    // Rows that don't count are cleaned before, for the derivatives of this, and cut off after.
    const bool partial = detail::any(logical_not(counts));
    const Variable zero = detail::number(0, x.dtype());
    const Variable clean = partial ? where(counts, logits, zero) : logits;
    const Variable gx = (softmax(clean) * Variable(all) - Variable(q)) * slopes;
    return partial ? where(counts, gx, zero) : gx;
}

Variable cross_entropy(const Variable& logits, const Variable& target,
                       const CrossEntropyOptions& options) {
    if (logits.rank() > 0) {
        const auto axis = detail::trailing("cross_entropy", logits.shape(), options.axis);
        if (!axis.already) {
            if (target.dtype() != i64) {
                detail::check_whole("cross_entropy", logits.value(), target.value());
            }
            return moved(cross_entropy, axis, logits, target, options);
        }
    }
    if (target.dtype() != i64) {
        detail::computed(
            find(rows, "cross_entropy"),
            [&] {
                detail::check_probabilities("cross_entropy", logits.value(), target.value(),
                                            options);
            },
            logits, target);
        return detail::cross_entropy_of_probabilities(logits, target, options);
    }
    return record(
        find(rows, "cross_entropy"),
        [&] { return cross_entropy(logits.value(), target.value(), options); },
        [&] { return attributes(options); },
        edge(
            logits,
            [options](const auto& gy, const auto& x, const auto& t) {
                return cross_entropy_vjp(x, t, gy, options);
            },
            logits, target),
        detail::constant(target));
}

Variable nll_loss(const Variable& log_p, const Variable& target,
                  const CrossEntropyOptions& options) {
    if (log_p.rank() > 0) {
        const auto axis = detail::trailing("nll_loss", log_p.shape(), options.axis);
        // nll_loss of the values says what is wrong with targets that are no numbers of classes.
        if (!axis.already && target.dtype() == i64) {
            return moved(nll_loss, axis, log_p, target, options);
        }
    }
    const Shape shape = log_p.shape();
    return record(
        find(rows, "nll_loss"), [&] { return nll_loss(log_p.value(), target.value(), options); },
        [&] { return attributes(options); },
        edge(
            log_p,
            [options, shape](const auto& gy, const auto& t) {
                using V = std::remove_cvref_t<decltype(gy)>;
                const Tensor& numbers = detail::plain(t);
                const Tensor q = detail::class_weights(shape, gy.dtype(), numbers, options);
                return V(neg(q)) * row_slopes(gy, numbers, options);
            },
            target),
        detail::constant(target));
}

}  // namespace glassgrad
