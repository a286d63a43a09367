// Cross entropy and negative log likelihood of classes, a row at a time, in f64.

#include <glassgrad/tensor/detail/class_weights.hpp>
#include <glassgrad/tensor/detail/composed.hpp>
#include <glassgrad/tensor/detail/place.hpp>
#include <glassgrad/tensor/detail/trailing.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::with_float;

namespace {

void check_options(std::string_view op, const Tensor& logits, const CrossEntropyOptions& options) {
    detail::require_defined(op, logits);
    with_float(op, logits.dtype(), [](auto) {});
    if (logits.rank() == 0 || logits.shape().back() == 0) {
        fail<ShapeError>("{}: logits {} have no classes", op, logits.shape());
    }
    if (!(options.label_smoothing >= 0 && options.label_smoothing <= 1)) {
        fail<ValueError>("{}: label_smoothing {} is outside 0 to 1", op, options.label_smoothing);
    }
    const Tensor& weight = options.weight;
    if (!weight.defined()) return;
    if (!is_floating(weight.dtype())) {
        fail<TypeError>(hint("convert it with astype(f32)"), "{}: weight must be floating, got {}",
                        op, weight.dtype());
    }
    if (weight.shape() != Shape{logits.shape().back()}) {
        fail<ShapeError>("{}: weight {} does not fit the {} classes of logits {}", op,
                         weight.shape(), logits.shape().back(), logits.shape());
    }
    const Tensor wide = weight.astype(f64);
    for (std::int64_t c = 0; c < wide.numel(); ++c) {
        const double value = wide.values<double>()[static_cast<std::size_t>(c)];
        if (!(value >= 0)) fail<ValueError>("{}: weight {} of class {} is negative", op, value, c);
    }
}

Shape without_last(const Shape& shape) {
    return Shape(std::span<const std::int64_t>(shape.begin(), shape.end() - 1));
}

/// How the classes of a row count: by its target, its weights and the smoothing.
struct Classes {
    Classes(const Tensor& weight, std::int64_t count, const CrossEntropyOptions& options)
        : smoothing(options.label_smoothing), ignore(options.ignore_index), size(count) {
        if (!weight.defined()) return;
        const Tensor wide = weight.astype(f64);
        weights.assign(wide.values<double>().begin(), wide.values<double>().end());
        for (const double each : weights) total += each;
    }
    double weight(std::int64_t c) const {
        return weights.empty() ? 1 : weights[static_cast<std::size_t>(c)];
    }
    /// What every class gets, to be multiplied by its weight.
    double even() const { return smoothing / static_cast<double>(size); }
    /// What the class of the target gets beside that.
    double own(std::int64_t target) const { return (1 - smoothing) * weight(target); }
    double sum_of_weights() const { return weights.empty() ? static_cast<double>(size) : total; }

    std::vector<double> weights;
    double total = 0;
    double smoothing;
    std::int64_t ignore;
    std::int64_t size;
};

/// What the losses of a row and their gradients are made of, about the class t of the target: a
/// probability near 1 is told by what the others leave of it. In two parts and a sum in f64, since
/// a log sum exp would lose digits where logits are large.
template <class T>
struct LogSumExp {
    T top;              ///< the largest number; sums are NaN where an element is
    double others = 0;  ///< the sum of exp(x - top) over all classes but t
    double total = 0;   ///< the sum over all
    double log_sum = 0;

    /// What is added up goes to `exps`, too, if that isn't null, but for class t.
    LogSumExp(const T* x, std::int64_t n, std::int64_t t, T* exps = nullptr) {
        const detail::Rows<T>& row = detail::kernels<T>().row;
        top = row.top(n, x);
        if (dead()) return;
        const auto sum = [&](std::int64_t begin, std::int64_t end) {
            return exps ? row.put_exp(end - begin, x + begin, top, exps + begin)
                        : row.sum_exp(end - begin, x + begin, top);
        };
        others = sum(0, t) + sum(t + 1, n);
        total = others + std::exp(static_cast<double>(x[t]) - static_cast<double>(top));
        log_sum = std::log(total);
    }
    bool dead() const { return top == -std::numeric_limits<T>::infinity(); }
    double log_softmax(double x) const { return x - static_cast<double>(top) - log_sum; }
};

/// -log_softmax(x)[c], infinite for a class of -inf.
template <class T>
double surprise(const T* x, std::int64_t c, const LogSumExp<T>& all) {
    const auto value = static_cast<double>(x[c]);
    if (value == -std::numeric_limits<double>::infinity()) return -value;
    return -all.log_softmax(value);
}

/// Losses of the rows, reduced. `row_loss(row, target)` is called for rows that count.
template <class T, class F>
Tensor reduce_losses(const Tensor& logits, const Tensor& target, const CrossEntropyOptions& options,
                     const F& row_loss) {
    const auto* t = target.data<std::int64_t>();
    const std::int64_t length = logits.shape().back();
    Tensor losses = zeros(target.shape(), f64);
    auto* out = losses.mutable_data<double>();
    detail::for_rows(target.numel(), length, [&](std::int64_t r) {
        if (t[r] != options.ignore_index) out[r] = row_loss(r, t[r]);
    });
    if (options.reduction == Reduction::none) return losses.astype(dtype_of<T>());
    const double share = detail::class_share(target, options);
    if (share == 0) return zeros({}, dtype_of<T>());
    return (sum(losses) * share).astype(dtype_of<T>());
}

}  // namespace

void detail::check_classes(std::string_view op, const Tensor& logits, const Tensor& target,
                           const CrossEntropyOptions& options) {
    check_options(op, logits, options);
    const Shape wanted = without_last(logits.shape());
    if (target.shape() != wanted) {
        fail<ShapeError>(hint("class numbers have the shape of the logits without the axis of the "
                              "classes; probabilities, in f32 or f64, their whole shape"),
                         "{}: targets {} do not fit logits {}, they need {}", op, target.shape(),
                         logits.shape(), wanted);
    }
    const std::int64_t classes = logits.shape().back();
    const auto* t = target.data<std::int64_t>();
    for (std::int64_t i = 0; i < target.numel(); ++i) {
        if ((t[i] >= 0 && t[i] < classes) || t[i] == options.ignore_index) continue;
        fail<IndexError>(
            hint("targets that do not count have the ignore_index, {}", options.ignore_index),
            "{}: target {} at {} is outside 0 to {}, the {} classes of logits {}", op, t[i],
            detail::place(i, target.shape()), classes - 1, classes, logits.shape());
    }
}

void detail::check_classes_vjp(std::string_view op, const Tensor& logits, const Tensor& target,
                               const Tensor& gy, const CrossEntropyOptions& options) {
    for (const Tensor& each : {logits, target, gy}) require_defined(op, each);
    if (target.dtype() != i64) {
        fail<TypeError>("{}: needs class numbers, i64, got targets of {}", op, target.dtype());
    }
    check_classes(op, logits, target, options);
    if (normalize_axis(op, options.axis, logits.shape()) != logits.rank() - 1) {
        fail<ValueError>(hint("permute the logits"),
                         "{}: the classes of {} must lie along the last axis, got axis {}", op,
                         logits.shape(), options.axis);
    }
    const Shape wanted = options.reduction == Reduction::none ? target.shape() : Shape();
    if (gy.dtype() != logits.dtype() || gy.shape() != wanted) {
        fail<ShapeError>("{}: the gradient is {} {}, the loss of {} {} is {} {}", op, gy.dtype(),
                         gy.shape(), logits.dtype(), logits.shape(), logits.dtype(), wanted);
    }
}

void detail::check_whole(std::string_view op, const Tensor& logits, const Tensor& target) {
    if (target.dtype() != logits.dtype()) {
        fail<TypeError>(hint("class numbers are i64, probabilities of the type of the logits"),
                        "{}: targets are {}, the logits {}", op, target.dtype(), logits.dtype());
    }
    if (target.shape() != logits.shape()) {
        fail<ShapeError>(hint("class numbers are i64, of the shape of the logits without the axis "
                              "of the classes"),
                         "{}: probabilities {} do not fit logits {}", op, target.shape(),
                         logits.shape());
    }
}

void detail::check_probabilities(std::string_view op, const Tensor& logits, const Tensor& target,
                                 const CrossEntropyOptions& options) {
    check_options(op, logits, options);
    check_whole(op, logits, target);
}

Tensor detail::counted_rows(const Tensor& target, const CrossEntropyOptions& options) {
    Shape shape = target.shape();
    shape.push_back(1);
    const std::int64_t ignored[] = {options.ignore_index};
    return not_equal(target, from_span(std::span<const std::int64_t>(ignored), {}))
        .with_shape(shape);
}

Tensor detail::class_weights(const Shape& logits, DType dtype, const Tensor& target,
                             const CrossEntropyOptions& options) {
    return with_float("cross_entropy", dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        const std::int64_t length = logits.back();
        const Classes classes(options.weight, length, options);
        Tensor result = zeros(logits, dtype);
        T* out = result.mutable_data<T>();
        const auto* t = target.data<std::int64_t>();
        detail::for_rows(target.numel(), length, [&](std::int64_t r) {
            if (t[r] == classes.ignore) return;
            T* q = out + r * length;
            for (std::int64_t c = 0; c < length; ++c) {
                const double even = classes.even() * classes.weight(c);
                q[c] = static_cast<T>(c == t[r] ? even + classes.own(c) : even);
            }
        });
        return result;
    });
}

double detail::class_share(const Tensor& target, const CrossEntropyOptions& options) {
    if (options.reduction == Reduction::none || options.reduction == Reduction::sum) return 1;
    const auto t = target.values<std::int64_t>();
    if (options.reduction == Reduction::batch_mean) {
        return share(Reduction::batch_mean, target.numel(),
                     target.rank() == 0 ? 1 : target.shape()[0]);
    }
    const Tensor weight = options.weight.defined() ? options.weight.astype(f64) : Tensor();
    double total = 0;
    for (const std::int64_t each : t) {
        if (each == options.ignore_index) continue;
        total += weight.defined() ? weight.values<double>()[static_cast<std::size_t>(each)] : 1;
    }
    return total == 0 ? 0 : 1 / total;
}

Tensor cross_entropy(const Tensor& logits, const Tensor& target,
                     const CrossEntropyOptions& options) {
    constexpr std::string_view op = "cross_entropy";
    detail::require_defined(op, logits);
    detail::require_defined(op, target);
    if (logits.rank() > 0) {
        const detail::Trailing axis = detail::trailing(op, logits.shape(), options.axis);
        if (!axis.already) {
            if (target.dtype() != i64) detail::check_whole(op, logits, target);
            const auto moved = [&](const Tensor& x) {
                return permute(x, detail::list(axis.order));
            };
            CrossEntropyOptions last = options;
            last.axis = -1;
            return cross_entropy(moved(logits), target.dtype() == i64 ? target : moved(target),
                                 last);
        }
    }
    if (target.dtype() != i64) {
        detail::check_probabilities(op, logits, target, options);
        return detail::cross_entropy_of_probabilities(logits, target, options);
    }
    detail::check_classes(op, logits, target, options);
    return with_float(op, logits.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const std::int64_t length = logits.shape().back();
        const Classes classes(options.weight, length, options);
        const T* x = logits.data<T>();
        return reduce_losses<T>(logits, target, options, [&](std::int64_t r, std::int64_t t) {
            const T* row = x + r * length;
            const LogSumExp<T> all(row, length, t);
            double loss = classes.own(t) == 0 ? 0 : classes.own(t) * surprise(row, t, all);
            if (classes.smoothing == 0) return loss;
            for (std::int64_t c = 0; c < length; ++c) {
                const double part = classes.even() * classes.weight(c);
                if (part != 0) loss += part * surprise(row, c, all);
            }
            return loss;
        });
    });
}

Tensor cross_entropy_vjp(const Tensor& logits, const Tensor& target, const Tensor& gy,
                         const CrossEntropyOptions& options) {
    detail::check_classes_vjp("cross_entropy_vjp", logits, target, gy, options);
    return with_float("cross_entropy_vjp", logits.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const std::int64_t length = logits.shape().back();
        const Classes classes(options.weight, length, options);
        const double share = detail::class_share(target, options);
        const bool single = options.reduction != Reduction::none;
        Tensor result = Tensor::empty(logits.shape(), logits.dtype());
        const T* x = logits.data<T>();
        const T* g = gy.data<T>();
        const auto* t = target.data<std::int64_t>();
        T* out = result.mutable_data<T>();
        const auto line = detail::kernels<T>().row.line;
        detail::for_rows(target.numel(), length, [&](std::int64_t r) {
            const T* row = x + r * length;
            T* gx = out + r * length;
            if (t[r] == classes.ignore) {
                std::fill_n(gx, length, T{0});
                return;
            }
            const LogSumExp<T> logs(row, length, t[r], gx);
            if (logs.dead()) {
                std::fill_n(gx, length, T{0});
                return;
            }
            const double slope = static_cast<double>(g[single ? 0 : r]) * share;
            const double own = classes.own(t[r]);
            const double all = own + classes.even() * classes.sum_of_weights();
            // The row's softmax p, where p[t] = 1 - others / total.
            const double left = all - own - classes.even() * classes.weight(t[r]);
            const auto at_target = static_cast<T>(slope * (left - all * logs.others / logs.total));
            const auto factor = static_cast<T>(slope * all / logs.total);
            const bool even = classes.weights.empty() || classes.even() == 0;
            gx[t[r]] = at_target;
            line(length, factor, even ? static_cast<T>(-slope * classes.even()) : T{0}, gx);
            for (std::int64_t c = 0; !even && c < length; ++c) {
                gx[c] -= static_cast<T>(slope * classes.even() * classes.weight(c));
            }
            gx[t[r]] = at_target;
        });
        return result;
    });
}

Tensor nll_loss(const Tensor& log_p, const Tensor& target, const CrossEntropyOptions& options) {
    constexpr std::string_view op = "nll_loss";
    detail::require_defined(op, log_p);
    detail::require_defined(op, target);
    if (options.label_smoothing != 0) {
        fail<ValueError>(hint("use cross_entropy"), "nll_loss: takes no label_smoothing, got {}",
                         options.label_smoothing);
    }
    if (log_p.rank() > 0) {
        const detail::Trailing axis = detail::trailing(op, log_p.shape(), options.axis);
        if (!axis.already) {
            CrossEntropyOptions last = options;
            last.axis = -1;
            return nll_loss(permute(log_p, detail::list(axis.order)), target, last);
        }
    }
    if (target.dtype() != i64) {
        fail<TypeError>(hint("class numbers are i64"), "nll_loss: targets are {}", target.dtype());
    }
    detail::check_classes(op, log_p, target, options);
    return with_float(op, log_p.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const std::int64_t length = log_p.shape().back();
        const Classes classes(options.weight, length, options);
        const T* x = log_p.data<T>();
        return reduce_losses<T>(log_p, target, options, [&](std::int64_t r, std::int64_t t) {
            const double weight = classes.weight(t);
            return weight == 0 ? 0 : -weight * static_cast<double>(x[r * length + t]);
        });
    });
}

}  // namespace glassgrad
