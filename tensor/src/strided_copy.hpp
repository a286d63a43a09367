#pragma once
// One copy through strides: what permute, slice, flip and broadcasting have in common.

#include <glassgrad/tensor/tensor.hpp>

#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "strided.hpp"
#include "write_elements.hpp"

#include <algorithm>

namespace glassgrad::detail {

/// out[0] = ... = out[count - 1] = value
template <class T>
void write_number(std::int64_t count, T value, T* out) {
    if constexpr (std::is_floating_point_v<T>) {
        const auto fill = kernels<T>().map.fill;
        write_elements(count, out,
                       [=](std::int64_t, std::int64_t n, T* to) { fill(n, value, to); });
    } else {
        std::fill_n(out, count, value);
    }
}

/// A dense copy of what `strides` and `start` read from the buffer of x, in the given shape.
inline Tensor strided_copy(const Tensor& x, const Shape& shape, const Strides& strides,
                           std::int64_t start) {
    Tensor result = Tensor::empty(shape, x.dtype());
    const StridedWalk<1> walk(shape, {strides});
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        T* out = result.mutable_data<T>();
        if (x.numel() == 1) return write_number(result.numel(), *x.data<T>(), out);
        const T* in = x.data<T>() + start;
        in_chunks(walk,
                  [&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
                      const T* from = in + offsets[0];
                      if (steps[0] == 1) {
                          std::copy_n(from, n, out + at);
                      } else if (steps[0] == 0) {
                          std::fill_n(out + at, n, *from);
                      } else {
                          for (std::int64_t i = 0; i < n; ++i) out[at + i] = from[i * steps[0]];
                      }
                  });
    });
    return result;
}

}  // namespace glassgrad::detail
