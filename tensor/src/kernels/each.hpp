#pragma once
// The loop of a function of each element. A result may lie where its operand lies, which is why
// the loops say that their steps are independent: compilers would take the safe way, one by one.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

template <class T, class F>
GLASSGRAD_INLINE void each(std::int64_t n, const T* x, T* y, const F& f) noexcept {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

template <class T, class F>
GLASSGRAD_INLINE void each(std::int64_t n, const T* a, const T* b, T* y, const F& f) noexcept {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
