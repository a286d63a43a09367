// Largest and smallest elements, where they are, and the smooth maximum.

#include <glassgrad/tensor/ops.hpp>

#include "reduce_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::Plan;
using detail::plan;
using detail::reduce_rows;
using detail::require_elements;
using detail::sum_run;
using detail::with_float;
using detail::with_number;

namespace {

template <bool Larger>
Tensor extreme(std::string_view op, const Tensor& x, const ReduceOptions& options) {
    const Plan view = plan(op, x, options.axes, options.keepdims);
    require_elements(op, view, x);
    return with_number(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (Larger && std::is_floating_point_v<T>) {
            const auto largest = detail::kernels<T>().row.largest;
            return reduce_rows<T, T>(view, x.dtype(),
                                     [&](const T* row, std::int64_t n) { return largest(n, row); });
        }
        return reduce_rows<T, T>(view, x.dtype(), [](const T* row, std::int64_t n) {
            T best = row[0];
            for (std::int64_t i = 1; i < n; ++i) {
                if (row[i] != row[i]) best = row[i];
                if (Larger ? row[i] > best : row[i] < best) best = row[i];
            }
            return best;
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
        return reduce_rows<T, std::int64_t>(view, i64, [](const T* row, std::int64_t n) {
            std::int64_t best = 0;
            for (std::int64_t i = 1; i < n && row[best] == row[best]; ++i) {
                const bool beyond = Larger ? row[i] > row[best] : row[i] < row[best];
                if (beyond || row[i] != row[i]) best = i;
            }
            return best;
        });
    });
}

template <class T>
double logsumexp_run(const T* row, std::int64_t n) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < n; ++i) {
        const double value = row[i];
        if (value != value) return value;
        largest = std::max(largest, value);
    }
    if (std::isinf(largest)) return largest;
    std::vector<double> terms(static_cast<std::size_t>(n));
    std::transform(row, row + n, terms.begin(),
                   [&](T value) { return std::exp(static_cast<double>(value) - largest); });
    return largest + std::log(sum_run(terms.data(), n));
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
