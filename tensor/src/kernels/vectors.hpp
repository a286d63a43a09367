#pragma once
// Vectors of the width that a set of instructions has.

#include "isa.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#ifdef __FMA__
#include <immintrin.h>
#endif

namespace glassgrad::detail::GLASSGRAD_ISA {

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

#if defined(__AVX512F__)
/// No number beyond the limit; NaN stays.
inline Vector<float> at_least(Vector<float> x, float low) { return _mm512_max_ps(splat(low), x); }
inline Vector<double> at_least(Vector<double> x, double low) {
    return _mm512_max_pd(splat(low), x);
}
inline Vector<float> at_most(Vector<float> x, float high) { return _mm512_min_ps(splat(high), x); }
inline Vector<double> at_most(Vector<double> x, double high) {
    return _mm512_min_pd(splat(high), x);
}
#elif defined(__FMA__)
inline Vector<float> at_least(Vector<float> x, float low) { return _mm256_max_ps(splat(low), x); }
inline Vector<double> at_least(Vector<double> x, double low) {
    return _mm256_max_pd(splat(low), x);
}
inline Vector<float> at_most(Vector<float> x, float high) { return _mm256_min_ps(splat(high), x); }
inline Vector<double> at_most(Vector<double> x, double high) {
    return _mm256_min_pd(splat(high), x);
}
#endif

#ifdef __FMA__
inline Vector<float> mul_add(Vector<float> a, Vector<float> b, Vector<float> c) {
    return fused(a, b, c);
}
inline Vector<double> mul_add(Vector<double> a, Vector<double> b, Vector<double> c) {
    return fused(a, b, c);
}
inline Vector<float> lost_of_product(Vector<float> a, Vector<float> b, Vector<float> product) {
    return fused(a, b, -product);
}
inline Vector<double> lost_of_product(Vector<double> a, Vector<double> b, Vector<double> product) {
    return fused(a, b, -product);
}
#endif

/// The numbers that a value consists of, and bits as wide as each.
template <class V>
struct Parts {
    using Number = V;
    using Bits = std::conditional_t<sizeof(V) == sizeof(float), std::uint32_t, std::uint64_t>;
};
template <>
struct Parts<Vector<float>> {
    using Number = float;
    using Bits [[gnu::vector_size(vector_bytes)]] = std::uint32_t;
};
template <>
struct Parts<Vector<double>> {
    using Number = double;
    using Bits [[gnu::vector_size(vector_bytes)]] = std::uint64_t;
};

/// A number, or a vector of it.
template <class V>
GLASSGRAD_INLINE V all(typename Parts<V>::Number x) noexcept {
    if constexpr (std::is_same_v<V, typename Parts<V>::Number>) {
        return x;
    } else {
        return splat(x);
    }
}

template <class V>
GLASSGRAD_INLINE V absolute(V x) noexcept {
    if constexpr (std::is_same_v<V, typename Parts<V>::Number>) {
        return std::abs(x);
    } else {
        using Bits = typename Parts<V>::Bits;
        return std::bit_cast<V>(std::bit_cast<Bits>(x) & ~std::bit_cast<Bits>(all<V>(-0.0)));
    }
}
/// The size of one with the sign of the other.
template <class V>
GLASSGRAD_INLINE V with_sign(V size, V sign) noexcept {
    if constexpr (std::is_same_v<V, typename Parts<V>::Number>) {
        return std::copysign(size, sign);
    } else {
        using Bits = typename Parts<V>::Bits;
        const Bits one = std::bit_cast<Bits>(all<V>(-0.0));
        return std::bit_cast<V>((std::bit_cast<Bits>(size) & ~one) |
                                (std::bit_cast<Bits>(sign) & one));
    }
}

/// The first `count` of a vector's lanes; the others are 0.
template <class T>
inline Vector<T> load_first(const T* x, std::int64_t count) {
#ifdef __AVX512F__
    const auto mask = (1U << count) - 1;
    if constexpr (sizeof(T) == sizeof(float)) {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), x);
    } else {
        return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), x);
    }
#else
    T every[lanes<T>] = {};
    for (std::int64_t i = 0; i < count; ++i) every[i] = x[i];
    return load(every);
#endif
}
template <class T>
inline void store_first(T* y, std::int64_t count, Vector<T> v) {
#ifdef __AVX512F__
    const auto mask = (1U << count) - 1;
    if constexpr (sizeof(T) == sizeof(float)) {
        _mm512_mask_storeu_ps(y, static_cast<__mmask16>(mask), v);
    } else {
        _mm512_mask_storeu_pd(y, static_cast<__mmask8>(mask), v);
    }
#else
    T every[lanes<T>];
    store(every, v);
    for (std::int64_t i = 0; i < count; ++i) y[i] = every[i];
#endif
}

/// To where a vector of memory begins, past the caches; seen by other threads after
/// `end_stores_past`.
template <class T>
inline void store_past(T* y, Vector<T> v) {
#if defined(__AVX512F__)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(y), std::bit_cast<__m512i>(v));
#elif defined(__AVX2__)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(y), std::bit_cast<__m256i>(v));
#else
    store(y, v);
#endif
}
inline void end_stores_past() {
#ifdef __AVX2__
    _mm_sfence();
#endif
}

template <class V, int... I>
inline V first_of(V v, std::int64_t count, std::integer_sequence<int, I...>) {
    using Bits = typename Parts<V>::Bits;
    constexpr Bits places{I...};
    const auto in = places < static_cast<decltype(Bits{}[0] + 0)>(count);
    return std::bit_cast<V>(std::bit_cast<Bits>(v) & std::bit_cast<Bits>(in));
}
/// v, but 0 from its lane `count` on.
template <class V>
[[gnu::always_inline]] inline V first_of(V v, std::int64_t count) {
    constexpr int all = static_cast<int>(sizeof(V) / sizeof(v[0]));
    return first_of(v, count, std::make_integer_sequence<int, all>{});
}

template <int By, class V, int... I>
inline V turned(V v, std::integer_sequence<int, I...>) {
    constexpr int count = sizeof...(I);
    return __builtin_shufflevector(v, v, ((I + By) % count)...);
}
/// Of the lanes, by halves.
template <class V>
[[gnu::always_inline]] inline auto sum_of_lanes(V v) {
    constexpr int count = static_cast<int>(sizeof(V) / sizeof(v[0]));
    constexpr std::make_integer_sequence<int, count> places{};
    if constexpr (count >= 16) v += turned<8>(v, places);
    if constexpr (count >= 8) v += turned<4>(v, places);
    if constexpr (count >= 4) v += turned<2>(v, places);
    v += turned<1>(v, places);
    return v[0];
}

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

}  // namespace glassgrad::detail::GLASSGRAD_ISA
