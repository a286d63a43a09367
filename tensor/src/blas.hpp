#pragma once
// Products by the BLAS, which runs on one thread and is compared with plain loops once, at its
// first use; and those loops.

#include "kernels/product_kernels.hpp"

#include <cstdint>

namespace glassgrad::detail {

/// c (m, n) = op(a) (m, k) times op(b) (k, n) by plain loops, for any type, integers wrapping.
template <class T>
void multiply_in_loops(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                       const Operand<T>& b, T* c, std::int64_t c_stride);

/// The same for float and double by the BLAS, or with what is there as `c.add` says; knows no bias.
/// Throws ShapeError when a size does not fit the BLAS, and Error when the BLAS computes wrong
/// numbers on this machine.
template <class T>
void multiply_by_blas(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                      const Operand<T>& b, const Target<T>& c);

}  // namespace glassgrad::detail
