// Sums, means, spread and norms.

#include <glassgrad/tensor/ops.hpp>

#include "reduce_rows.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace glassgrad {

using detail::fail;
using detail::in_pieces;
using detail::Plan;
using detail::plan;
using detail::reduce_rows;
using detail::require_elements;
using detail::sum_of_terms;
using detail::sum_run;
using detail::with_float;
using detail::with_number;

namespace {

/// The sum of a run divided by `divisor`. Sums of f64 that leave its range on the way are long
/// double.
template <class T>
T divided_sum(const T* row, std::int64_t n, double divisor) {
    const auto kernel = detail::kernels<T>().row.sum;
    const auto total = in_pieces<double>(
        row, n, [&](const T* x, std::int64_t count) { return kernel(count, x); }, std::plus<>());
    if constexpr (std::is_same_v<T, double>) {
        if (!std::isfinite(total)) {
            const long double wide = std::accumulate(row, row + n, 0.0L);
            return static_cast<double>(wide / static_cast<long double>(divisor));
        }
    }
    return static_cast<T>(total / divisor);
}

/// Sum of the squares about the mean; exactly 0 where all elements are equal.
template <class T>
double squares_about_mean(const T* row, std::int64_t n) {
    if (std::all_of(row, row + n, [&](T value) { return value == row[0]; })) {
        return std::isinf(row[0]) ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    }
    const auto itself = [](T value) { return static_cast<double>(value); };
    const double middle = sum_of_terms(row, n, itself) / static_cast<double>(n);
    return sum_of_terms(row, n, [=](T value) {
        const double distance = static_cast<double>(value) - middle;
        return distance * distance;
    });
}

template <class F>
Tensor spread_about_mean(std::string_view op, const Tensor& x, const VarOptions& options,
                         const F& finish) {
    const Plan view = plan(op, x, options.axes, options.keepdims);
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        require_elements(op, view, x);
        const double divisor = static_cast<double>(view.length) - options.correction;
        if (view.rows > 0 && !(divisor > 0)) {
            fail<ValueError>("{}: {} elements with correction {} leave no degree of freedom", op,
                             view.length, options.correction);
        }
        return reduce_rows<T, T>(view, x.dtype(), [&](const T* row, std::int64_t n) {
            return static_cast<T>(finish(squares_about_mean(row, n) / divisor));
        });
    });
}

/// The root of the sum of squares, scaled where squares overflow or lose digits.
template <class T>
double length_of(const T* row, std::int64_t n) {
    const auto sum_scaled = [&](double unit) {
        return sum_of_terms(row, n, [=](T value) {
            const double part = static_cast<double>(value) / unit;
            return part * part;
        });
    };
    const double sum = sum_scaled(1);
    if (sum != sum || (sum > 1e-290 && !std::isinf(sum))) return std::sqrt(sum);
    double largest = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(row[i])));
    }
    if (largest == 0 || std::isinf(largest)) return largest;
    return largest * std::sqrt(sum_scaled(largest));
}

}  // namespace

namespace {

/// x as `outer` blocks of `length` rows of `inner` elements, whose rows are added up; `inner` is 0
/// where the reduced axes don't lie together.
struct Block {
    std::int64_t outer = 1;
    std::int64_t length = 1;
    std::int64_t inner = 1;
};

Block block_of(std::string_view op, const Tensor& x, const Axes& axes) {
    const std::uint32_t mask = normalize_axes(op, axes, x.shape());
    Block block;
    bool reducing = false;
    bool after = false;
    for (int i = 0; i < x.rank(); ++i) {
        const std::int64_t size = x.shape()[i];
        if (size == 1) continue;
        if ((mask >> i & 1u) == 0) {
            after = reducing;
            (after ? block.inner : block.outer) *= size;
        } else if (after) {
            return {1, 1, 0};
        } else {
            reducing = true;
            block.length *= size;
        }
    }
    return block;
}

/// The sums of columns, in f64: a part for each of at most 64 pieces of the rows, which are added
/// up in order.
template <class T>
void sum_columns(const T* x, const Block& block, double divisor, T* out) {
    const std::int64_t inner = block.inner;
    const std::int64_t piece =
        std::max({std::int64_t{1}, (block.length + 63) / 64, detail::parallel_threshold / inner});
    constexpr std::int64_t few = 256;
    if (block.outer == 1 && block.length <= piece && inner <= few) {
        double total[few];
        std::fill_n(total, inner, 0.0);
        detail::kernels<T>().row.add_columns(block.length, inner, x, total);
        for (std::int64_t i = 0; i < inner; ++i) out[i] = static_cast<T>(total[i] / divisor);
        return;
    }
    const std::int64_t pieces = (block.length + piece - 1) / piece;
    Tensor parts = zeros({block.outer * pieces, inner}, f64);
    auto* sums = parts.mutable_data<double>();
    const auto add_columns = detail::kernels<T>().row.add_columns;
    detail::for_rows(block.outer * pieces, std::min(piece, block.length) * inner,
                     [&](std::int64_t part) {
                         const std::int64_t begin = part % pieces * piece;
                         const std::int64_t rows = std::min(piece, block.length - begin);
                         const T* first = x + (part / pieces * block.length + begin) * inner;
                         add_columns(rows, inner, first, sums + part * inner);
                     });
    detail::for_rows(block.outer, pieces * inner, [&](std::int64_t o) {
        double* total = sums + o * pieces * inner;
        for (std::int64_t p = 1; p < pieces; ++p) {
            for (std::int64_t i = 0; i < inner; ++i) total[i] += total[p * inner + i];
        }
        for (std::int64_t i = 0; i < inner; ++i) {
            out[o * inner + i] = static_cast<T>(total[i] / divisor);
        }
    });
}

enum class Divide { no, by_count };

template <class T>
Tensor float_sum(std::string_view op, const Tensor& x, const ReduceOptions& options, Divide by) {
    const bool average = by == Divide::by_count;
    const Block block = block_of(op, x, options.axes);
    if (block.inner > 1 && block.length > 0) {
        Tensor result =
            Tensor::empty(detail::reduced_shape(op, x, options.axes, options.keepdims), x.dtype());
        const double divisor = average ? static_cast<double>(block.length) : 1;
        if (result.numel() > 0) {
            sum_columns(x.data<T>(), block, divisor, result.mutable_data<T>());
        }
        return result;
    }
    const Plan view = plan(op, x, options.axes, options.keepdims);
    if (average) require_elements(op, view, x);
    return reduce_rows<T, T>(view, x.dtype(), [&](const T* row, std::int64_t n) {
        return divided_sum(row, n, average ? static_cast<double>(n) : 1);
    });
}

}  // namespace

Tensor sum(const Tensor& x, const ReduceOptions& options) {
    if (x.dtype() == boolean) return sum(x.astype(i64), options);
    detail::require_defined("sum", x);
    return with_number("sum", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if constexpr (std::is_floating_point_v<T>) {
            return float_sum<T>("sum", x, options, Divide::no);
        } else {
            const Plan view = plan("sum", x, options.axes, options.keepdims);
            return reduce_rows<T, T>(view, x.dtype(), [](const T* row, std::int64_t n) {
                const auto run = [](const T* part, std::int64_t count) {
                    return sum_run(part, count);
                };
                return static_cast<T>(in_pieces<std::uint64_t>(row, n, run, std::plus<>()));
            });
        }
    });
}

Tensor mean(const Tensor& x, const ReduceOptions& options) {
    detail::require_defined("mean", x);
    normalize_axes("mean", options.axes, x.shape());
    return with_float("mean", x.dtype(), [&](auto type) {
        return float_sum<typename decltype(type)::type>("mean", x, options, Divide::by_count);
    });
}

Tensor var(const Tensor& x, const VarOptions& options) {
    return spread_about_mean("var", x, options, [](double v) { return v; });
}

Tensor std(const Tensor& x, const VarOptions& options) {
    return spread_about_mean("std", x, options, [](double v) { return std::sqrt(v); });
}

Tensor norm(const Tensor& x, const VectorNormOptions& options) {
    detail::require_defined("norm", x);
    const ReduceOptions common{.axes = options.axes, .keepdims = options.keepdims};
    if (options.ord != 1 && options.ord != 2 && !(std::isinf(options.ord) && options.ord > 0)) {
        fail<ValueError>("norm: ord must be 1, 2 or infinity, got {}", options.ord);
    }
    normalize_axes("norm", options.axes, x.shape());
    return with_float("norm", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if (options.ord == 1) return sum(abs(x), common);
        const Plan view = plan("norm", x, options.axes, options.keepdims);
        if (options.ord != 2) {
            require_elements("norm", view, x);
            return max(abs(x), common);
        }
        return reduce_rows<T, T>(view, x.dtype(), [](const T* row, std::int64_t n) {
            return static_cast<T>(length_of(row, n));
        });
    });
}

namespace {

bool ends_with(const Shape& shape, const Shape& part) {
    return shape.rank() >= part.rank() &&
           std::equal(part.begin(), part.end(), shape.end() - part.rank());
}

/// What `sum` gives of floating numbers over all axes that `shape`, with which x's ends, has not.
Tensor sum_of_leading(const Tensor& x, const Shape& shape) {
    const std::int64_t inner = shape.numel();
    const std::int64_t length = x.numel() / inner;
    if (length == 1) return x.with_shape(shape);
    Tensor result = Tensor::empty(shape, x.dtype());
    with_float("sum_to", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        sum_columns<T>(x.data<T>(), {1, length, inner}, 1, result.mutable_data<T>());
    });
    return result;
}

}  // namespace

Tensor sum_to(const Tensor& x, const Shape& shape) {
    detail::require_defined("sum_to", x);
    if (x.shape() == shape) return x;
    if (is_floating(x.dtype()) && x.numel() > 0 && shape.numel() > 1 &&
        ends_with(x.shape(), shape)) {
        return sum_of_leading(x, shape);
    }
    if (broadcast_shapes("sum_to", x.shape(), shape) != x.shape()) {
        fail<ShapeError>("sum_to: {} is not a broadcast of {}", x.shape(), shape);
    }
    std::int64_t axes[max_rank];
    int count = 0;
    const int offset = x.rank() - shape.rank();
    for (int i = 0; i < x.rank(); ++i) {
        if (i < offset || (shape[i - offset] == 1 && x.shape()[i] != 1)) axes[count++] = i;
    }
    const Axes reduced(std::span<const std::int64_t>(axes, static_cast<std::size_t>(count)));
    return sum(x, {.axes = reduced}).with_shape(shape);
}

}  // namespace glassgrad
