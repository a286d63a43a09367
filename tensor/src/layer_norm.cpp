// Layer norm and RMS norm: a row at a time, the last axes being the row; other axes go to the end
// and back. Sums are f64 whatever the type.

#include <glassgrad/tensor/detail/norm_gradients.hpp>
#include <glassgrad/tensor/detail/trailing.hpp>
#include <glassgrad/tensor/ops/normalize.hpp>
#include <glassgrad/tensor/ops/shape.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>

namespace glassgrad {

using detail::fail;
using detail::hint;
using detail::list;
using detail::NormGradients;
using detail::NormInputs;
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
        const detail::Rows<T>& row = detail::kernels<T>().row;
        const auto kernel = Centred ? row.layer_norm : row.rms_norm;
        detail::for_row_blocks(rows.count, rows.length, [&](std::int64_t begin, std::int64_t end) {
            const std::int64_t at = begin * rows.length;
            kernel(end - begin, rows.length, in + at, w, b, eps, out + at);
        });
        return result;
    });
}

/// The gradients of a norm over the last axes, in one pass over x and gy. Sums over rows are f64,
/// a part for each of at most 64 pieces, which are added up in order.
template <bool Centred>
NormGradients backward(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& gy,
                       int last, double eps, const NormInputs& wanted) {
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Rows rows = rows_of(x.shape(), last);
        const std::int64_t n = rows.length;
        const Shape part(std::span<const std::int64_t>(x.shape().end() - last, x.shape().end()));
        NormGradients result;
        if (wanted.x) result.x = Tensor::empty(x.shape(), x.dtype());
        const T* in = x.data<T>();
        const T* g = gy.data<T>();
        const T* w = weight.defined() ? weight.data<T>() : nullptr;
        T* gx = wanted.x ? result.x.mutable_data<T>() : nullptr;
        const detail::Rows<T>& row = detail::kernels<T>().row;
        const auto kernel = Centred ? row.layer_norm_vjp : row.rms_norm_vjp;

        const std::int64_t parts = (wanted.weight ? 1 : 0) + (wanted.bias ? 1 : 0);
        // So many rows cost more than the zeroing and adding of their sums.
        const std::int64_t piece =
            std::max({std::int64_t{32}, (rows.count + 63) / 64,
                      detail::parallel_threshold / std::max<std::int64_t>(1, n)});
        // So much doesn't stay in a cache, and what isn't read before it is written comes sooner.
        constexpr std::int64_t large = std::int64_t{1} << 24;
        const bool past_caches = rows.count * n * static_cast<std::int64_t>(sizeof(T)) >= large;
        const std::int64_t pieces = n == 0 ? 0 : (rows.count + piece - 1) / piece;
        Tensor sums = zeros({pieces, parts, n}, f64);
        auto* sum = sums.mutable_data<double>();
        detail::for_chunks(n == 0 ? 0 : rows.count, piece,
                           [&](std::int64_t begin, std::int64_t end) {
                               double* to = sum + begin / piece * parts * n;
                               double* gw = wanted.weight ? to : nullptr;
                               double* gb = wanted.bias ? to + (parts - 1) * n : nullptr;
                               kernel(end - begin, n, in + begin * n, g + begin * n, w, eps,
                                      {gx ? gx + begin * n : nullptr, gw, gb, past_caches});
                           });
        const auto total = [&](std::int64_t at) {
            Tensor all = Tensor::empty(part, x.dtype());
            T* out = all.mutable_data<T>();
            double* const first = sum + at * n;
            for (std::int64_t p = 1; p < pieces; ++p) {
                const double* const more = first + p * parts * n;
                for (std::int64_t i = 0; i < n; ++i) first[i] += more[i];
            }
            for (std::int64_t i = 0; i < n; ++i) {
                out[i] = pieces > 0 ? static_cast<T>(first[i]) : T{0};
            }
            return all;
        };
        if (wanted.weight) result.weight = total(0);
        if (wanted.bias) result.bias = total(parts - 1);
        return result;
    });
}

void check_gradient(std::string_view op, const Tensor& x, const Tensor& gy,
                    const NormOptions& options) {
    detail::require_defined(op, x);
    detail::require_defined(op, gy);
    check_eps(op, options);
    if (gy.shape() != x.shape() || gy.dtype() != x.dtype()) {
        fail<ShapeError>("{}: the gradient is {} {}, x is {} {}", op, gy.dtype(), gy.shape(),
                         x.dtype(), x.shape());
    }
}

template <bool Centred>
Tensor pulled_back(std::string_view op, const Tensor& x, const Tensor& gy,
                   const NormOptions& options) {
    check_gradient(op, x, gy, options);
    const Trailing axes = detail::trailing(op, x.shape(), options.axes);
    const auto along_last = [&](const Tensor& in, const Tensor& g) {
        return backward<Centred>(op, in, {}, g, axes.count, options.eps, {.x = true}).x;
    };
    if (axes.already) return along_last(x, gy);
    return permute(along_last(permute(x, list(axes.order)), permute(gy, list(axes.order))),
                   list(axes.inverse));
}

template <bool Centred>
Tensor normalized(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                  const NormOptions& options) {
    detail::require_defined(op, x);
    check_eps(op, options);
    const int last = detail::last_count(op, x.shape(), options.axes);
    if (last >= 0) return forward<Centred>(op, x, weight, bias, last, options.eps);
    const Trailing axes = detail::trailing(op, x.shape(), options.axes);
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

NormGradients detail::layer_norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& gy,
                                           const NormOptions& options, const NormInputs& wanted) {
    check_gradient("layer_norm_vjp", x, gy, options);
    const int last = last_count("layer_norm_vjp", x.shape(), options.axes);
    return backward<true>("layer_norm_vjp", x, weight, gy, last, options.eps, wanted);
}
NormGradients detail::rms_norm_gradients(const Tensor& x, const Tensor& weight, const Tensor& gy,
                                         const NormOptions& options, const NormInputs& wanted) {
    check_gradient("rms_norm_vjp", x, gy, options);
    const int last = last_count("rms_norm_vjp", x.shape(), options.axes);
    return backward<false>("rms_norm_vjp", x, weight, gy, last, options.eps, wanted);
}

}  // namespace glassgrad
