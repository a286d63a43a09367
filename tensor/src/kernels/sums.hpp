#pragma once
// Sums of a row, in vector code. The order depends on the number of terms alone.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// What sums and squares of T never leave. A row for which T is too narrow is computed in it.
template <class T>
using Wide = std::conditional_t<sizeof(T) == sizeof(float), double, long double>;

/// What is smaller than this changes nothing when it is added to the largest number.
template <class T>
inline constexpr T lost_beside_most =
    std::numeric_limits<T>::max() * std::numeric_limits<T>::epsilon() / 16;

/// term(0) + ... + term(n - 1): in T within a block, in f64 from block to block. With `Sum` double
/// a float's terms are f64, too.
template <class Sum, class F>
GLASSGRAD_INLINE double sum_of(std::int64_t n, const F& term) noexcept {
    constexpr std::int64_t block = 512;
    double total = 0;
    for (std::int64_t begin = 0; begin < n; begin += block) {
        const std::int64_t end = n - begin < block ? n : begin + block;
        Sum sum{};
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = begin; i < end; ++i) sum += term(i);
        total += static_cast<double>(sum);
    }
    return total;
}

/// The largest, no NaN among them; -inf for nothing. clang 14 takes no such reduction for vector
/// code, so it gets lanes, which g++ would keep in memory.
template <class T>
GLASSGRAD_INLINE T largest_number(std::int64_t n, const T* x) noexcept {
#ifdef __clang__
    constexpr std::int64_t lanes = 32;
    const auto larger = [](T a, T b) { return b > a ? b : a; };
    T tops[lanes];
    for (T& each : tops) each = -std::numeric_limits<T>::infinity();
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (std::int64_t k = 0; k < lanes; ++k) tops[k] = larger(tops[k], x[i + k]);
    }
    for (std::int64_t k = 0; i < n; ++i, ++k) tops[k] = larger(tops[k], x[i]);
    for (std::int64_t half = lanes / 2; half > 0; half /= 2) {
        for (std::int64_t k = 0; k < half; ++k) tops[k] = larger(tops[k], tops[k + half]);
    }
    return tops[0];
#else
    T top = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : top)
    for (std::int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
    return top;
#endif
}

/// The smallest, no NaN among them; inf for nothing. Clang takes it one by one.
template <class T>
GLASSGRAD_INLINE T smallest_number(std::int64_t n, const T* x) noexcept {
    T low = std::numeric_limits<T>::infinity();
#ifdef __clang__
    for (std::int64_t i = 0; i < n; ++i) low = x[i] < low ? x[i] : low;
#else
#pragma omp simd reduction(min : low)
    for (std::int64_t i = 0; i < n; ++i) low = x[i] < low ? x[i] : low;
#endif
    return low;
}

template <class T>
GLASSGRAD_INLINE bool has_nan(std::int64_t n, const T* x) noexcept {
    int found = 0;
#pragma omp simd reduction(| : found)
    for (std::int64_t i = 0; i < n; ++i) found |= x[i] != x[i] ? 1 : 0;
    return found != 0;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
