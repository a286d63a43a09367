// Softmax and its relatives over one axis, a row at a time; other axes go to the end and back.

#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad {

using detail::fail;
using detail::with_float;

namespace {

/// Calls f(out, in, length) for each row of x along `axis`, which must be the last one.
template <class F>
Tensor map_rows(std::string_view op, const Tensor& x, const F& f) {
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        T* out = result.mutable_data<T>();
        const std::int64_t length = x.shape().back();
        const std::int64_t count = length == 0 ? 0 : x.numel() / length;
        detail::for_rows(count, length,
                         [&](std::int64_t r) { f(out + r * length, in + r * length, length); });
        return result;
    });
}

/// Largest of a row; NaN if one is NaN.
template <class T>
T largest(const T* x, std::int64_t n) {
    T best = x[0];
    for (std::int64_t i = 1; i < n; ++i) best = x[i] > best || x[i] != x[i] ? x[i] : best;
    return best;
}

/// f on x with `axis` last. NumPy's and PyTorch's softmax of a scalar is that of one element.
template <class F>
Tensor along(std::string_view op, const Tensor& x, std::int64_t axis, const F& f) {
    detail::require_defined(op, x);
    if (x.rank() == 0 && (axis == 0 || axis == -1)) {
        return f(x.with_shape({1})).with_shape(Shape{});
    }
    const int at = normalize_axis(op, axis, x.shape());
    if (at == x.rank() - 1) return f(x);
    return transpose(f(transpose(x, at, -1)), at, -1);
}

}  // namespace

Tensor softmax(const Tensor& x, std::int64_t axis) {
    return along("softmax", x, axis, [](const Tensor& rows) {
        return map_rows("softmax", rows, [](auto* y, const auto* in, std::int64_t n) {
            using T = std::remove_reference_t<decltype(*y)>;
            const T top = largest(in, n);
            if (top == -std::numeric_limits<T>::infinity()) {
                std::fill_n(y, n, T{0});
                return;
            }
            T total{0};
            for (std::int64_t i = 0; i < n; ++i) total += y[i] = std::exp(in[i] - top);
            for (std::int64_t i = 0; i < n; ++i) y[i] /= total;
        });
    });
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
    return along("log_softmax", x, axis, [](const Tensor& rows) {
        return map_rows("log_softmax", rows, [](auto* y, const auto* in, std::int64_t n) {
            using T = std::remove_reference_t<decltype(*y)>;
            const T top = largest(in, n);
            if (top == -std::numeric_limits<T>::infinity()) {
                std::fill_n(y, n, top);
                return;
            }
            T total{0};
            for (std::int64_t i = 0; i < n; ++i) total += std::exp(in[i] - top);
            const T shift = std::log(total);
            for (std::int64_t i = 0; i < n; ++i) y[i] = in[i] - top - shift;
        });
    });
}

namespace {

/// f(out, y, gy, length) for each row along `axis` of a result y and its gradient gy.
template <class F>
Tensor pull_rows(std::string_view op, const Tensor& y, const Tensor& gy, std::int64_t axis,
                 const F& f) {
    detail::require_defined(op, y);
    detail::require_defined(op, gy);
    if (y.dtype() != gy.dtype()) {
        fail<TypeError>("{}: result {} and gradient {} have different types", op, y.dtype(),
                        gy.dtype());
    }
    if (y.shape() != gy.shape()) {
        fail<ShapeError>("{}: result {} {} and gradient {} {} differ", op, y.dtype(), y.shape(),
                         gy.dtype(), gy.shape());
    }
    const bool scalar = y.rank() == 0 && (axis == 0 || axis == -1);
    if (!scalar && normalize_axis(op, axis, y.shape()) != y.rank() - 1) {
        return transpose(pull_rows(op, transpose(y, axis, -1), transpose(gy, axis, -1), -1, f),
                         axis, -1);
    }
    return with_float(op, y.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* py = y.data<T>();
        const T* pg = gy.data<T>();
        Tensor result = Tensor::empty(y.shape(), y.dtype());
        T* out = result.mutable_data<T>();
        const std::int64_t length = y.rank() == 0 ? 1 : y.shape().back();
        const std::int64_t count = length == 0 ? 0 : y.numel() / length;
        detail::for_rows(count, length, [&](std::int64_t r) {
            f(out + r * length, py + r * length, pg + r * length, length);
        });
        return result;
    });
}

}  // namespace

Tensor softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis) {
    return pull_rows("softmax_vjp", y, gy, axis,
                     [](auto* out, const auto* py, const auto* pg, std::int64_t n) {
                         using T = std::remove_reference_t<decltype(*out)>;
                         // Not 0 times gy: what a mask hides may be infinite or NaN.
                         T dot{0};
                         for (std::int64_t i = 0; i < n; ++i)
                             dot += py[i] == 0 ? T{0} : py[i] * pg[i];
                         for (std::int64_t i = 0; i < n; ++i)
                             out[i] = py[i] == 0 ? T{0} : py[i] * (pg[i] - dot);
                     });
}

Tensor log_softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis) {
    return pull_rows("log_softmax_vjp", y, gy, axis,
                     [](auto* out, const auto* py, const auto* pg, std::int64_t n) {
                         using T = std::remove_reference_t<decltype(*out)>;
                         if (largest(py, n) == -std::numeric_limits<T>::infinity()) {
                             std::fill_n(out, n, T{0});
                             return;
                         }
                         T total{0};
                         for (std::int64_t i = 0; i < n; ++i) total += pg[i];
                         for (std::int64_t i = 0; i < n; ++i)
                             out[i] = pg[i] - std::exp(py[i]) * total;
                     });
}

}  // namespace glassgrad
