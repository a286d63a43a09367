#pragma once
// Loops that the elementwise functions share: one for equal shapes, one for a broadcast operand,
// one for the rest.

#include <glassgrad/tensor/tensor.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"
#include "strided.hpp"
#include "write_elements.hpp"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace glassgrad::detail {

inline void require_same_type(std::string_view op, const Tensor& a, const Tensor& b) {
    require_defined(op, a);
    require_defined(op, b);
    if (a.dtype() == b.dtype()) return;
    fail<TypeError>(hint("convert one with astype"), "{}: {} {} and {} {} have different types", op,
                    a.dtype(), a.shape(), b.dtype(), b.shape());
}

/// y = kernel(a, b) with broadcasting, where choose(pairs) is the kernel of the element type.
template <class T, class F>
Tensor pair_kernel(std::string_view op, const Tensor& a, const Tensor& b, const F& choose) {
    const auto kernel = choose(kernels<T>().pair);
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    if (a.shape() == b.shape()) {
        Tensor result = Tensor::empty(a.shape(), a.dtype());
        T* out = result.mutable_data<T>();
        write_elements(result.numel(), out, [&](std::int64_t begin, std::int64_t n, T* to) {
            kernel(n, pa + begin, 1, pb + begin, 1, to);
        });
        return result;
    }
    const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
    Tensor result = Tensor::empty(shape, a.dtype());
    T* out = result.mutable_data<T>();
    const StridedWalk<2> walk(
        shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)});
    in_chunks(walk, [&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
        kernel(n, pa + offsets[0], steps[0], pb + offsets[1], steps[1], out + at);
    });
    return result;
}

/// out[i] = f(a[i], b[i]) with broadcasting; R is the element type of the result.
template <class R, class T, class F>
Tensor binary(std::string_view op, const Tensor& a, const Tensor& b, const F& f) {
    const T* pa = a.data<T>();
    const T* pb = b.data<T>();
    if (a.shape() == b.shape()) {
        Tensor result = Tensor::empty(a.shape(), dtype_of<R>());
        R* out = result.mutable_data<R>();
        for_elements(result.numel(), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) out[i] = f(pa[i], pb[i]);
        });
        return result;
    }
    const Shape shape = broadcast_shapes(op, a.shape(), b.shape());
    Tensor result = Tensor::empty(shape, dtype_of<R>());
    R* out = result.mutable_data<R>();
    const StridedWalk<2> walk(
        shape, {broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)});
    walk([&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
        const T* x = pa + offsets[0];
        const T* y = pb + offsets[1];
        R* o = out + at;
        if (steps[0] == 1 && steps[1] == 1) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], y[i]);
        } else if (steps[0] == 1 && steps[1] == 0) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i], *y);
        } else if (steps[0] == 0 && steps[1] == 1) {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(*x, y[i]);
        } else {
            for (std::int64_t i = 0; i < n; ++i) o[i] = f(x[i * steps[0]], y[i * steps[1]]);
        }
    });
    return result;
}

/// Integer arithmetic wraps: it is done on unsigned numbers, where that is defined.
template <class T, class F>
T wrapping(T a, T b, const F& f) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    } else {
        return f(a, b);
    }
}

template <class T, class F>
Tensor map(const Tensor& x, const F& f) {
    const T* in = x.data<T>();
    Tensor result = Tensor::empty(x.shape(), x.dtype());
    T* out = result.mutable_data<T>();
    for_elements(result.numel(), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = f(in[i]);
    });
    return result;
}

template <class F>
Tensor map_float(std::string_view op, const Tensor& x, const F& f) {
    require_defined(op, x);
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        return map<T>(x, [&](T value) { return static_cast<T>(f(value)); });
    });
}

/// y = kernel(x), where choose(maps) is the kernel of the element type.
template <class F>
Tensor map_kernel(std::string_view op, const Tensor& x, const F& choose) {
    require_defined(op, x);
    return with_float(op, x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto kernel = choose(kernels<T>().map);
        const T* in = x.data<T>();
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        T* out = result.mutable_data<T>();
        write_elements(result.numel(), out, [&](std::int64_t begin, std::int64_t n, T* to) {
            kernel(n, in + begin, to);
        });
        return result;
    });
}

/// y = kernel(number, x).
template <class F>
Tensor map_kernel(std::string_view op, const Tensor& x, double number, const F& choose) {
    return map_kernel(op, x, [&](const auto& maps) {
        return [kernel = choose(maps), number](std::int64_t n, const auto* in, auto* to) {
            kernel(n, static_cast<std::remove_cvref_t<decltype(*to)>>(number), in, to);
        };
    });
}

/// A number in the type of `x`; refused when an i64 tensor meets a fraction.
template <class T>
T scalar(std::string_view op, double value) {
    if constexpr (std::is_same_v<T, std::int64_t>) {
        if (std::trunc(value) != value) {
            fail<TypeError>(hint("convert with astype(f32) or astype(f64)"),
                            "{}: {} is not an integer, the tensor is i64", op, value);
        }
        return checked_cast<T>(op, value);
    } else {
        (void)op;
        return static_cast<T>(value);
    }
}

}  // namespace glassgrad::detail
