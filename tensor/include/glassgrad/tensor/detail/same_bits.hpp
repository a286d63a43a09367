#pragma once

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstring>

namespace glassgrad::detail {

/// Whether both have one shape, one type and the same bytes: NaN equals itself, 0 and -0 differ.
inline bool same_bits(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && a.dtype() == b.dtype() &&
           std::memcmp(a.bytes(), b.bytes(),
                       static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

}  // namespace glassgrad::detail
