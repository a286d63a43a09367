#pragma once
// The normal distribution, without branches: its share below x, its density, the error function.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// c0 + z (c1 + z (c2 + ...))
template <class V, class C>
GLASSGRAD_INLINE V polynomial(V, C c0) noexcept {
    return all<V>(c0);
}
template <class V, class C, class... Rest>
GLASSGRAD_INLINE V polynomial(V z, C c0, Rest... rest) noexcept {
    return mul_add(polynomial(z, rest...), z, all<V>(c0));
}

/// exp(t² / 2) times the share of the normal distribution beyond t >= 0. With u = (t - 4) / (t + 4)
/// it is a polynomial in u, divided by t + 4: interpolated at Chebyshev's points, relative error
/// below 1.4e-8 for t <= 15 (f32) and 3.7e-17 for t <= 39 (f64).
template <class V>
GLASSGRAD_INLINE V scaled_tail(V t) noexcept {
    const V share = all<V>(1) / (t + all<V>(4));
    const V u = all<V>(1) - all<V>(8) * share;
    if constexpr (sizeof(typename Parts<V>::Number) == sizeof(float)) {
        return share * polynomial(u, 0.755285138596F, -0.607896594145F, 0.38713668307F,
                                  -0.186523306758F, 0.0604061855143F, -0.00752540241821F,
                                  -0.00352097282399F, 0.00156688168778F, 0.00018899651942F,
                                  -0.000125558385602F);
    } else {
        return share *
               polynomial(
                   u, 0.75528513041575147989, -0.60789664197189175887, 0.3871374007422188786,
                   -0.18652185795969416326, 0.060396574890699464128, -0.0075401889655930590206,
                   -0.0034796923622425333441, 0.0016308184418903595964, 0.00013334425401904911618,
                   -0.00023109481831937621135, -1.9078665316613574344e-6, 3.514418115776097273e-5,
                   7.1500559592160986612e-7, -5.9188927317632364472e-6, -6.2513210404786801933e-7,
                   1.0198048518135172659e-6, 2.6368248576407625062e-7, -1.5426320536771073947e-7,
                   -7.6380820534903504495e-8, 1.4578593347036459717e-8, 1.3924023993501710103e-8,
                   7.2695454790266894559e-11, -9.6534254202285046694e-10);
    }
}

/// The normal distribution at x: the share below, and exp(-x² / 2). Both are 0 where they would be
/// smaller than normal numbers are.
template <class V>
struct Normal {
    V x;  // no farther out than that
    V share;
    V bell;

    GLASSGRAD_INLINE explicit Normal(V of) noexcept {
        // Half its square is just below exp_limit.
        using T = typename Parts<V>::Number;
        constexpr T far = sizeof(T) == sizeof(float) ? T(13.15) : T(37.6);
        const V size = absolute(of);
        const V t = at_most(size, far);
        x = with_sign(t, of);
        const V square = t * t;
        const V half = all<V>(-0.5);
        const V e = exp_within(half * square, half * lost_of_product(t, t, square));
        bell = size > all<V>(far) ? all<V>(0) : e;
        const V tail = bell * scaled_tail(t);
        share = of < all<V>(0) ? tail : all<V>(1) - tail;
    }
};

/// The error function, within 3 units in the last place: near 0 by a polynomial in x² that has a
/// relative error below 1.5e-9 (f32) and 7.2e-17 (f64), farther out by the tail.
template <class T>
GLASSGRAD_INLINE T fast_erf(T x) noexcept {
    constexpr bool narrow = sizeof(T) == sizeof(float);
    constexpr T near = T(0.75);
    constexpr T far = narrow ? T(5) : T(7);
    const T size = std::abs(x);
    const T t = size > far ? far : size;
    const T square = t * t;
    T inner;
    if constexpr (narrow) {
        inner = polynomial(square, 1.12837916558F, -0.376126194694F, 0.112833865384F,
                           -0.0268351145686F, 0.00511533211253F, -0.000675647956868F);
    } else {
        inner = polynomial(square, 1.1283791670955125029, -0.3761263890318122615,
                           0.11283791670806737126, -0.026866170611287811774,
                           0.005223977232952475155, -0.00085483008320694317602,
                           0.00012054266028326730405, -1.4898622841474459721e-5,
                           1.6044523839624666453e-6, -1.2711547089821421463e-7);
    }
    const T tail = exp_within(-square, -lost_of_product(t, t, square)) *
                   scaled_tail(t * T(1.41421356237309504880));
    const T outer = std::copysign(T{1} - T{2} * tail, x);
    return size < near ? x * inner : outer;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
