#pragma once
// The loop of a function of each element. A result may lie where its operand lies, which is why
// the loops say that their steps are independent: compilers would take the safe way, one by one.

#include "vectors.hpp"

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

/// The same of a function that also takes a vector.
template <class T, class F>
GLASSGRAD_INLINE void each_vector(std::int64_t n, const T* x, T* y, const F& f) noexcept {
#ifdef __FMA__
    std::int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, f(load(x + i)));
    if (i < n) store_first(y + i, n - i, f(load_first(x + i, n - i)));
#else
    each(n, x, y, f);
#endif
}

template <class T, class F>
GLASSGRAD_INLINE void each_vector(std::int64_t n, const T* a, const T* b, T* y,
                                  const F& f) noexcept {
#ifdef __FMA__
    std::int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, f(load(a + i), load(b + i)));
    if (i < n) store_first(y + i, n - i, f(load_first(a + i, n - i), load_first(b + i, n - i)));
#else
    each(n, a, b, y, f);
#endif
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
