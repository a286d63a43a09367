#pragma once
// Vectors of the width that a set of instructions has.

#include "isa.hpp"

#include <utility>

#ifdef __FMA__
#include <immintrin.h>
#endif

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
struct VectorOf {
    using type [[gnu::vector_size(vector_bytes)]] = T;
    using unaligned [[gnu::vector_size(vector_bytes), gnu::aligned(alignof(T)), gnu::may_alias]] =
        T;
    using four [[gnu::vector_size(4 * sizeof(T))]] = T;
    using unaligned_four
        [[gnu::vector_size(4 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
inline Vector<T> load(const T* x) {
    return *reinterpret_cast<const typename VectorOf<T>::unaligned*>(x);
}
template <class T>
inline void store(T* x, Vector<T> v) {
    *reinterpret_cast<typename VectorOf<T>::unaligned*>(x) = v;
}

#if defined(__AVX512F__)
inline Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm512_fmadd_pd(a, b, c);
}
inline Vector<float> splat(float x) { return _mm512_set1_ps(x); }
inline Vector<double> splat(double x) { return _mm512_set1_pd(x); }
#elif defined(__FMA__)
inline Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm256_fmadd_pd(a, b, c);
}
inline Vector<float> splat(float x) { return _mm256_set1_ps(x); }
inline Vector<double> splat(double x) { return _mm256_set1_pd(x); }
#else
template <class V>
inline V fused(V a, V b, V c) {
    return a * b + c;
}
inline Vector<float> splat(float x) { return Vector<float>{x, x, x, x}; }
inline Vector<double> splat(double x) { return Vector<double>{x, x}; }
#endif

/// f(0), ..., f(N - 1), each known while compiling, so that arrays indexed so become registers.
template <int N, class F>
[[gnu::always_inline]] inline void each(const F& f) {
    [&]<int... I>(std::integer_sequence<int, I...>) { (f(std::integral_constant<int, I>{}), ...); }
    (std::make_integer_sequence<int, N>{});
}

/// Four rows of four numbers, `step` apart, turned and written `out_step` apart.
template <class T>
inline void turn(const T* x, std::int64_t step, T* out, std::int64_t out_step) {
    using In = const typename VectorOf<T>::unaligned_four;
    using Out = typename VectorOf<T>::unaligned_four;
    using Four = typename VectorOf<T>::four;
    const Four a = *reinterpret_cast<In*>(x);
    const Four b = *reinterpret_cast<In*>(x + step);
    const Four c = *reinterpret_cast<In*>(x + 2 * step);
    const Four d = *reinterpret_cast<In*>(x + 3 * step);
    const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Four ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Four cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *reinterpret_cast<Out*>(out) = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *reinterpret_cast<Out*>(out + out_step) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *reinterpret_cast<Out*>(out + 2 * out_step) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *reinterpret_cast<Out*>(out + 3 * out_step) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

/// Elements of the lower half of a and of b in turn, or of the upper halves.
template <int Upper, class V, int... I>
inline V interleaved(V a, V b, std::integer_sequence<int, I...>) {
    constexpr int count = sizeof...(I);
    return __builtin_shufflevector(a, b, (I / 2 + Upper * count / 2 + I % 2 * count)...);
}

/// As many rows as a vector has elements, turned in place.
template <class T>
[[gnu::always_inline]] inline void turn_square(Vector<T> (&rows)[lanes<T>]) {
    constexpr int count = lanes<T>;
    constexpr std::make_integer_sequence<int, count> places{};
    for (int step = 1; step < count; step *= 2) {
        Vector<T> next[count];
        each<count / 2>([&](auto i) {
            next[2 * i] = interleaved<0>(rows[i], rows[i + count / 2], places);
            next[2 * i + 1] = interleaved<1>(rows[i], rows[i + count / 2], places);
        });
        each<count>([&](auto i) { rows[i] = next[i]; });
    }
}

// What packed products are made of: panels of so many rows, and of so many columns.
#if defined(__AVX512F__)
constexpr int panel_rows = 12;
#elif defined(__FMA__)
constexpr int panel_rows = 6;
#else
constexpr int panel_rows = 4;
#endif
template <class T>
constexpr int panel_columns = 2 * lanes<T>;

}  // namespace
}  // namespace glassgrad::detail::GLASSGRAD_ISA
