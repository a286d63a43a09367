#pragma once
// A row by vectors, the last of which may be part of one.

#include "vectors.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

using N = std::int64_t;

// Which of a vector's places are in a row: all, or so many where the row ends.
struct Whole {};
struct First {
    N count;
};
template <class T>
GLASSGRAD_INLINE Vector<T> get(const T* x, Whole) noexcept {
    return load(x);
}
template <class T>
GLASSGRAD_INLINE Vector<T> get(const T* x, First places) noexcept {
    return load_first(x, places.count);
}
template <class T>
GLASSGRAD_INLINE void put(T* x, Vector<T> v, Whole) noexcept {
    store(x, v);
}
template <class T>
GLASSGRAD_INLINE void put(T* x, Vector<T> v, First places) noexcept {
    store_first(x, places.count, v);
}
/// 0 in the others.
template <class V>
GLASSGRAD_INLINE V kept(V v, Whole) noexcept {
    return v;
}
template <class V>
GLASSGRAD_INLINE V kept(V v, First places) noexcept {
    return first_of(v, places.count);
}

/// f(i, places, chain) of each vector of [begin, end).
template <class T, int Chains, class F>
GLASSGRAD_INLINE void by_vectors(N begin, N end, const F& f) noexcept {
    constexpr std::integral_constant<int, 0> first{};
    N i = begin;
    if constexpr (Chains > 1) {
        for (; i + Chains * lanes<T> <= end; i += Chains * lanes<T>) {
            each<Chains>([&](auto chain) { f(i + chain * lanes<T>, Whole{}, chain); });
        }
    }
    for (; i + lanes<T> <= end; i += lanes<T>) f(i, Whole{}, first);
    if (i < end) f(i, First{end - i}, first);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
