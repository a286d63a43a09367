// Arithmetic of two operands, either of which may be one number for all, and choice by a mask.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

/// y[i] = f(a[i step_a], b[i step_b]), fast where steps are 0 or 1.
template <class T, class F>
GLASSGRAD_INLINE void pair(N n, const T* a, N step_a, const T* b, N step_b, T* y,
                           const F& f) noexcept {
    if (n == 0) return;
    if (step_a == 1 && step_b == 1) {
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
    } else if (step_a == 1 && step_b == 0) {
        const T right = *b;
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = f(a[i], right);
    } else if (step_a == 0 && step_b == 1) {
        const T left = *a;
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = f(left, b[i]);
    } else {
        for (N i = 0; i < n; ++i) y[i] = f(a[i * step_a], b[i * step_b]);
    }
}

/// By bits: neither a choice between values nor bool is vector code to compilers where the mask is
/// narrower than they are.
template <class T>
GLASSGRAD_INLINE T chosen(unsigned char first, T a, T b) noexcept {
    using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
    const Bits all = Bits{0} - static_cast<Bits>(first);
    return std::bit_cast<T>((std::bit_cast<Bits>(a) & all) | (std::bit_cast<Bits>(b) & ~all));
}

template <class T>
void choose(N n, const bool* mask, N step_mask, const T* a, N step_a, const T* b, N step_b, T* y) {
    if (n == 0) return;
    const auto* m = reinterpret_cast<const unsigned char*>(mask);
    if (step_mask == 1 && step_a == 1 && step_b == 1) {
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = chosen(m[i], a[i], b[i]);
    } else if (step_mask == 1 && step_a == 0 && step_b == 1) {
        const T left = *a;
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = chosen(m[i], left, b[i]);
    } else if (step_mask == 1 && step_a == 1 && step_b == 0) {
        const T right = *b;
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = chosen(m[i], a[i], right);
    } else {
        for (N i = 0; i < n; ++i) {
            y[i] = mask[i * step_mask] ? a[i * step_a] : b[i * step_b];
        }
    }
}

/// A function of two numbers as a kernel; F has no state.
template <class T, class F>
void each_pair(N n, const T* a, N step_a, const T* b, N step_b, T* y) {
    pair(n, a, step_a, b, step_b, y, F{});
}
template <class T, class F>
auto kernel_of(F) {
    return each_pair<T, F>;
}

template <class T>
void add(Pairs<T>& pairs) {
    pairs.add = kernel_of<T>([](T a, T b) { return a + b; });
    pairs.sub = kernel_of<T>([](T a, T b) { return a - b; });
    pairs.mul = kernel_of<T>([](T a, T b) { return a * b; });
    pairs.div = kernel_of<T>([](T a, T b) { return a / b; });
    pairs.chain_mul = kernel_of<T>([](T g, T x) { return g == 0 ? T{0} : g * x; });
    pairs.chain_div = kernel_of<T>([](T g, T x) { return g == 0 ? T{0} : g / x; });
    // NaN if either is.
    pairs.maximum = kernel_of<T>([](T a, T b) { return a > b || a != a ? a : b; });
    pairs.minimum = kernel_of<T>([](T a, T b) { return a < b || a != a ? a : b; });
    pairs.choose = choose<T>;
}

template <class T>
void add(Maps<T>& maps) {
    maps.neg = [](N n, const T* x, T* y) {
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = -x[i];
    };
    maps.abs = [](N n, const T* x, T* y) {
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = std::abs(x[i]);
    };
    maps.square = [](N n, const T* x, T* y) {
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = x[i] * x[i];
    };
    maps.clamp = [](N n, T low, T high, const T* x, T* y) {
#pragma omp simd
        for (N i = 0; i < n; ++i) {
            const T over = x[i] < low ? low : x[i];
            y[i] = over > high ? high : over;
        }
    };
}

}  // namespace

void add_arithmetic(KernelTable& table) {
    add(table.of_float.pair);
    add(table.of_double.pair);
    add(table.of_float.map);
    add(table.of_double.map);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
