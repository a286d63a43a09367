// Layer norm and RMS norm: a row at a time, the last axes being the row; other axes go to the end
// and back. Sums are f64 whatever the type.

#include <glassgrad/tensor/detail/trailing.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>
#include <glassgrad/tensor/ops/shape.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::list;
using detail::Trailing;
using detail::with_float;

namespace {

struct Rows {
    std::int64_t count;
    std::int64_t length;
};

Rows rows_of(const Shape& shape, int last) {
    Rows rows{1, 1};
    for (int i = 0; i < shape.rank(); ++i) {
        (i < shape.rank() - last ? rows.count : rows.length) *= shape[i];
    }
    return rows;
}

void check_eps(std::string_view op, const NormOptions& options) {
    if (options.eps > 0 && std::isfinite(options.eps)) return;
    fail<ValueError>(hint("1e-5 is usual"), "{}: eps must be positive, got {}", op, options.eps);
}

/// `part` must have the shape of the last `count` axes of x.
void check_part(std::string_view op, std::string_view name, const Tensor& part, const Tensor& x,
                int count) {
    if (!part.defined()) return;
    if (part.dtype() != x.dtype()) {
        fail<TypeError>(hint("convert one with astype"), "{}: {} is {}, x is {}", op, name,
                        part.dtype(), x.dtype());
    }
    const Shape wanted(std::span<const std::int64_t>(x.shape().end() - count, x.shape().end()));
    if (part.shape() != wanted) {
        fail<ShapeError>("{}: {} {} does not fit {}, whose axes have the sizes {}", op, name,
                         part.shape(), x.shape(), wanted);
    }
}

/// What a row is shifted and scaled by.
struct Measure {
    double mean;
    double scale;  ///< 1 / sqrt(var + eps)
};

/// With `Centred`, about the mean; else about 0.
template <bool Centred, class T>
Measure measure(const T* x, std::int64_t n, double eps) {
    const auto size = static_cast<double>(n);
    double mean = 0;
    if constexpr (Centred) {
        for (std::int64_t i = 0; i < n; ++i) mean += static_cast<double>(x[i]);
        mean /= size;
    }
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const double distance = static_cast<double>(x[i]) - mean;
        squares += distance * distance;
    }
    return {mean, 1 / std::sqrt(squares / size + eps)};
}

template <bool Centred>
Tensor forward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
               int last, double eps) {
    check_part(op, "weight", weight, x, last);
    check_part(op, "bias", bias, x, last);
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Rows rows = rows_of(x.shape(), last);
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        const T* in = x.data<T>();
        const T* w = weight.defined() ? weight.data<T>() : nullptr;
        const T* b = bias.defined() ? bias.data<T>() : nullptr;
        T* out = result.mutable_data<T>();
        detail::for_rows(rows.count, rows.length, [&](std::int64_t row) {
            const std::int64_t at = row * rows.length;
            const Measure m = measure<Centred>(in + at, rows.length, eps);
            for (std::int64_t i = 0; i < rows.length; ++i) {
                double y = (static_cast<double>(in[at + i]) - m.mean) * m.scale;
                if (w) y *= static_cast<double>(w[i]);
                if (b) y += static_cast<double>(b[i]);
                out[at + i] = static_cast<T>(y);
            }
        });
        return result;
    });
}

/// scale (gy - mean(gy) - h mean(gy h)), where h is the result; without mean(gy) if not centred.
template <bool Centred>
Tensor backward(std::string_view op, const Tensor& x, const Tensor& gy, int last, double eps) {
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Rows rows = rows_of(x.shape(), last);
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        const T* in = x.data<T>();
        const T* g = gy.data<T>();
        T* out = result.mutable_data<T>();
        const auto size = static_cast<double>(rows.length);
        detail::for_rows(rows.count, rows.length, [&](std::int64_t row) {
            const std::int64_t at = row * rows.length;
            const Measure m = measure<Centred>(in + at, rows.length, eps);
            const auto h = [&](std::int64_t i) {
                return (static_cast<double>(in[at + i]) - m.mean) * m.scale;
            };
            double plain = 0;
            double along = 0;
            for (std::int64_t i = 0; i < rows.length; ++i) {
                if constexpr (Centred) plain += static_cast<double>(g[at + i]);
                along += static_cast<double>(g[at + i]) * h(i);
            }
            plain /= size;
            along /= size;
            for (std::int64_t i = 0; i < rows.length; ++i) {
                const double slope = static_cast<double>(g[at + i]) - plain - h(i) * along;
                out[at + i] = static_cast<T>(m.scale * slope);
            }
        });
        return result;
    });
}

template <bool Centred>
Tensor pulled_back(std::string_view op, const Tensor& x, const Tensor& gy,
                   const NormOptions& options) {
    detail::require_defined(op, x);
    detail::require_defined(op, gy);
    check_eps(op, options);
    if (gy.shape() != x.shape() || gy.dtype() != x.dtype()) {
        fail<ShapeError>("{}: the gradient is {} {}, x is {} {}", op, gy.dtype(), gy.shape(),
                         x.dtype(), x.shape());
    }
    const Trailing axes = detail::trailing(op, x.shape(), options.axes);
    if (axes.already) return backward<Centred>(op, x, gy, axes.count, options.eps);
    return permute(backward<Centred>(op, permute(x, list(axes.order)),
                                     permute(gy, list(axes.order)), axes.count, options.eps),
                   list(axes.inverse));
}

template <bool Centred>
Tensor normalized(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options) {
    detail::require_defined(op, x);
    check_eps(op, options);
    const Trailing axes = detail::trailing(op, x.shape(), options.axes);
    if (axes.already) return forward<Centred>(op, x, weight, bias, axes.count, options.eps);
    return permute(
        forward<Centred>(op, permute(x, list(axes.order)), weight, bias, axes.count, options.eps),
        list(axes.inverse));
}

}  // namespace

Tensor layer_norm(const Tensor& x, const NormOptions& options) {
    return normalized<true>("layer_norm", x, {}, {}, options);
}
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options) {
    return normalized<true>("layer_norm", x, weight, bias, options);
}
Tensor layer_norm_vjp(const Tensor& x, const Tensor& gy, const NormOptions& options) {
    return pulled_back<true>("layer_norm_vjp", x, gy, options);
}

Tensor rms_norm(const Tensor& x, const NormOptions& options) {
    return normalized<false>("rms_norm", x, {}, {}, options);
}
Tensor rms_norm(const Tensor& x, const Tensor& weight, const NormOptions& options) {
    return normalized<false>("rms_norm", x, weight, {}, options);
}
Tensor rms_norm_vjp(const Tensor& x, const Tensor& gy, const NormOptions& options) {
    return pulled_back<false>("rms_norm_vjp", x, gy, options);
}

}  // namespace glassgrad
