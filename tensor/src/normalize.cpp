// Softmax and its relatives over one axis, a row at a time; other axes go to the end and back.

#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

namespace glassgrad {

using detail::fail;
using detail::with_float;

namespace {

/// The kernel of the element type that `choose` picks, on the rows of x along its last axis.
template <class F>
Tensor map_rows(std::string_view op, const Tensor& x, const F& choose) {
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto kernel = choose(detail::kernels<T>().row);
        const T* in = x.data<T>();
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        T* out = result.mutable_data<T>();
        const std::int64_t n = x.shape().back();
        detail::for_row_blocks(n == 0 ? 0 : x.numel() / n, n,
                               [&](std::int64_t begin, std::int64_t end) {
                                   kernel(end - begin, n, in + begin * n, out + begin * n);
                               });
        return result;
    });
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
        return map_rows("softmax", rows, [](const auto& row) { return row.softmax; });
    });
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
    return along("log_softmax", x, axis, [](const Tensor& rows) {
        return map_rows("log_softmax", rows, [](const auto& row) { return row.log_softmax; });
    });
}

namespace {

/// The kernel that `choose` picks, on the rows along `axis` of a result y and its gradient gy.
template <class F>
Tensor pull_rows(std::string_view op, const Tensor& y, const Tensor& gy, std::int64_t axis,
                 const F& choose) {
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
        return transpose(pull_rows(op, transpose(y, axis, -1), transpose(gy, axis, -1), -1, choose),
                         axis, -1);
    }
    return with_float(op, y.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* py = y.data<T>();
        const T* pg = gy.data<T>();
        Tensor result = Tensor::empty(y.shape(), y.dtype());
        T* out = result.mutable_data<T>();
        const auto kernel = choose(detail::kernels<T>().row);
        const std::int64_t n = y.rank() == 0 ? 1 : y.shape().back();
        detail::for_row_blocks(
            n == 0 ? 0 : y.numel() / n, n, [&](std::int64_t begin, std::int64_t end) {
                kernel(end - begin, n, py + begin * n, pg + begin * n, out + begin * n);
            });
        return result;
    });
}

}  // namespace

Tensor softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis) {
    return pull_rows("softmax_vjp", y, gy, axis, [](const auto& row) { return row.softmax_vjp; });
}

Tensor log_softmax_vjp(const Tensor& y, const Tensor& gy, std::int64_t axis) {
    return pull_rows("log_softmax_vjp", y, gy, axis,
                     [](const auto& row) { return row.log_softmax_vjp; });
}

}  // namespace glassgrad
