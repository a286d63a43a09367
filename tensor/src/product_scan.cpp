// Products along axes with their derivative, and sums up to each element.

#include <glassgrad/tensor/ops.hpp>

#include "elementwise.hpp"
#include "reduce_rows.hpp"

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

namespace glassgrad {

using detail::Plan;
using detail::plan;
using detail::reduce_rows;
using detail::with_float;
using detail::with_number;

namespace {

/// Wide enough to add up or multiply a T: i64 wraps, f32 goes in f64.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t, double>;

/// out[i] = g times the product of all but x[i]: what stands before it times what stands after.
template <class T>
void others_run(const T* x, T g, std::int64_t n, T* out) {
    std::vector<double> before(static_cast<std::size_t>(n));
    double product = 1;
    for (std::int64_t i = 0; i < n; ++i) {
        before[static_cast<std::size_t>(i)] = product;
        product *= static_cast<double>(x[i]);
    }
    double after = 1;
    for (std::int64_t i = n - 1; i >= 0; --i) {
        const double others = before[static_cast<std::size_t>(i)] * after;
        out[i] = g == 0 ? T{0} : static_cast<T>(static_cast<double>(g) * others);
        after *= static_cast<double>(x[i]);
    }
}

}  // namespace

Tensor prod(const Tensor& x, const ReduceOptions& options) {
    if (x.dtype() == boolean) return prod(x.astype(i64), options);
    const Plan view = plan("prod", x, options.axes, options.keepdims);
    return with_number("prod", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return reduce_rows<T, T>(view, x.dtype(), [](const T* row, std::int64_t n) {
            Wide<T> product = 1;
            for (std::int64_t i = 0; i < n; ++i) product *= static_cast<Wide<T>>(row[i]);
            return static_cast<T>(product);
        });
    });
}

Tensor prod_vjp(const Tensor& x, const Tensor& gy, const Axes& axes) {
    detail::require_defined("prod_vjp", gy);
    const Plan view = plan("prod_vjp", x, axes, false);
    detail::require_same_type("prod_vjp", x, gy);
    if (gy.numel() != view.rows) {
        detail::fail<ShapeError>("prod_vjp: gy {} is not the product's shape {}", gy.shape(),
                                 view.result_shape);
    }
    return with_float("prod_vjp", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        Tensor result = Tensor::empty(view.x.shape(), x.dtype());
        const T* in = view.x.template data<T>();
        const T* g = gy.data<T>();
        T* out = result.mutable_data<T>();
        const std::int64_t n = view.length;
        const std::int64_t rows_a_chunk =
            std::max<std::int64_t>(1, detail::parallel_threshold / std::max<std::int64_t>(1, n));
        detail::for_chunks(view.rows, rows_a_chunk, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t r = begin; r < end; ++r) {
                others_run(in + r * n, g[r], n, out + r * n);
            }
        });
        // Back from kept axes first, reduced axes last.
        const std::uint32_t mask = normalize_axes("prod_vjp", axes, x.shape());
        std::int64_t back[max_rank];
        std::int64_t at = 0;
        for (const std::uint32_t reduced : {0u, 1u}) {
            for (int i = 0; i < x.rank(); ++i) {
                if ((mask >> i & 1u) == reduced) back[i] = at++;
            }
        }
        return permute(result,
                       std::span<const std::int64_t>(back, static_cast<std::size_t>(x.rank())));
    });
}

Tensor cumsum(const Tensor& x, std::int64_t axis, const CumsumOptions& options) {
    detail::require_defined("cumsum", x);
    if (x.dtype() == boolean) return cumsum(x.astype(i64), axis, options);
    const int along = normalize_axis("cumsum", axis, x.shape());
    std::int64_t inner = 1;
    for (int i = along + 1; i < x.rank(); ++i) inner *= x.shape()[i];
    const std::int64_t n = x.shape()[along];
    return with_number("cumsum", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        const T* in = x.data<T>();
        T* out = result.mutable_data<T>();
        const std::int64_t lines = n == 0 ? 0 : x.numel() / n;
        const std::int64_t chunk = std::max<std::int64_t>(1, detail::parallel_threshold / (n + 1));
        detail::for_chunks(lines, chunk, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t line = begin; line < end; ++line) {
                const std::int64_t start = line / inner * n * inner + line % inner;
                Wide<T> total = 0;
                for (std::int64_t i = 0; i < n; ++i) {
                    const std::int64_t at = start + (options.reverse ? n - 1 - i : i) * inner;
                    total += static_cast<Wide<T>>(in[at]);
                    out[at] = static_cast<T>(total);
                }
            }
        });
        return result;
    });
}

}  // namespace glassgrad
