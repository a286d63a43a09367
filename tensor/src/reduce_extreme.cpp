// Largest and smallest elements, where they are, and the smooth maximum.

#include <glassgrad/tensor/ops.hpp>

#include "reduce_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace glassgrad {

using detail::in_pieces;
using detail::Plan;
using detail::plan;
using detail::reduce_rows;
using detail::require_elements;
using detail::with_float;
using detail::with_number;

namespace {

template <bool Larger>
Tensor extreme(std::string_view op, const Tensor& x, const ReduceOptions& options) {
    const Plan view = plan(op, x, options.axes, options.keepdims);
    require_elements(op, view, x);
    return with_number(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto run = [](const T* row, std::int64_t n) {
            if constexpr (std::is_floating_point_v<T>) {
                const auto& kernels = detail::kernels<T>().row;
                return (Larger ? kernels.largest : kernels.smallest)(n, row);
            } else {
                return Larger ? *std::max_element(row, row + n) : *std::min_element(row, row + n);
            }
        };
        // A NaN on either side stays.
        const auto join = [](T best, T next) {
            return next != next || (Larger ? next > best : next < best) ? next : best;
        };
        return reduce_rows<T, T>(view, x.dtype(), [&](const T* row, std::int64_t n) {
            return in_pieces<T>(row, n, run, join);
        });
    });
}

/// The first of the largest (or smallest); a NaN counts as that.
template <bool Larger>
Tensor arg_extreme(std::string_view op, const Tensor& x, const ArgOptions& options) {
    const Axes axes = options.axis ? Axes(*options.axis) : Axes();
    const Plan view = plan(op, x, axes, options.keepdims);
    require_elements(op, view, x);
    return with_number(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto place = [](const T* row, std::int64_t n) {
            if constexpr (std::is_floating_point_v<T>) {
                const auto& kernels = detail::kernels<T>().row;
                return row +
                       kernels.find(n, row, (Larger ? kernels.largest : kernels.smallest)(n, row));
            } else {
                return Larger ? std::max_element(row, row + n) : std::min_element(row, row + n);
            }
        };
        const auto join = [](const T* best, const T* next) {
            const bool beyond = Larger ? *next > *best : *next < *best;
            return *best == *best && (beyond || *next != *next) ? next : best;
        };
        return reduce_rows<T, std::int64_t>(view, i64, [&](const T* row, std::int64_t n) {
            return in_pieces<const T*>(row, n, place, join) - row;
        });
    });
}

template <class T>
double logsumexp_run(const T* row, std::int64_t n) {
    constexpr T least = -std::numeric_limits<T>::infinity();
    if (n == 0) return least;
    const auto largest = detail::kernels<T>().row.largest;
    const T top = in_pieces<T>(
        row, n, [=](const T* x, std::int64_t count) { return largest(count, x); },
        [](T a, T b) { return b != b || b > a ? b : a; });
    if (!std::isfinite(top)) return top;
    const auto sum_exp = detail::kernels<double>().row.sum_exp;
    const auto sum = [=](const T* x, std::int64_t count) {
        constexpr std::int64_t block = 256;
        double wide[block];
        double total = 0;
        for (std::int64_t begin = 0; begin < count; begin += block) {
            const std::int64_t size = std::min(block, count - begin);
            std::copy(x + begin, x + begin + size, wide);
            total += sum_exp(size, wide, static_cast<double>(top));
        }
        return total;
    };
    return static_cast<double>(top) + std::log(in_pieces<double>(row, n, sum, std::plus<>()));
}

}  // namespace

Tensor max(const Tensor& x, const ReduceOptions& options) {
    return extreme<true>("max", x, options);
}
Tensor min(const Tensor& x, const ReduceOptions& options) {
    return extreme<false>("min", x, options);
}

Tensor amax(const Tensor& x, const ReduceOptions& options) { return max(x, options); }
Tensor amin(const Tensor& x, const ReduceOptions& options) { return min(x, options); }

Tensor argmax(const Tensor& x, const ArgOptions& options) {
    return arg_extreme<true>("argmax", x, options);
}
Tensor argmin(const Tensor& x, const ArgOptions& options) {
    return arg_extreme<false>("argmin", x, options);
}

Tensor logsumexp(const Tensor& x, const ReduceOptions& options) {
    const Plan view = plan("logsumexp", x, options.axes, options.keepdims);
    return with_float("logsumexp", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return reduce_rows<T, T>(view, x.dtype(), [](const T* row, std::int64_t n) {
            return static_cast<T>(logsumexp_run(row, n));
        });
    });
}

}  // namespace glassgrad
