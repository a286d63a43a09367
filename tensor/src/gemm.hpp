#pragma once
// One matrix product, by what is fastest for its size: operands as they lie, of small matrices or
// of a few rows, packed panels, or the BLAS.

#include "blas.hpp"

#include <cstdint>

namespace glassgrad::detail {

/// c (m, n) = op(a) (m, k) times op(b) (k, n), or added to what is there, and the bias. T is float,
/// double or std::int64_t (wrapping; neither adds nor knows a bias). A large product is cut into
/// tasks by shape alone, for as many threads as there are, unless the caller is one of them. What
/// an element is summed up from, and in which order, depends on k alone.
/// Throws as `multiply_by_blas`.
template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a, const Operand<T>& b,
          const Target<T>& c);

}  // namespace glassgrad::detail
