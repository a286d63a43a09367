#pragma once
// One matrix product. Tiny ones are our own loops; larger ones go to the BLAS, which runs on one
// thread and is compared with plain loops once, at its first use.

#include <cstdint>

namespace glassgrad::detail {

/// A row-major matrix, read as it lies or transposed; `stride` elements from row to row.
template <class T>
struct Operand {
    const T* data;
    std::int64_t stride;
    bool transposed;
};

/// c (m, n), rows `n` apart, = op(a) (m, k) times op(b) (k, n). T is float, double or
/// std::int64_t (wrapping). Throws ShapeError when a size does not fit the BLAS, and Error when
/// the BLAS computes wrong numbers on this machine.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a, const Operand<T>& b,
          T* c);

}  // namespace glassgrad::detail
