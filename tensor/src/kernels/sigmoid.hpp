#pragma once
// The logistic function and tanh, without branches.

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// x in [-far, far].
template <class V>
GLASSGRAD_INLINE V bounded(V x, typename Parts<V>::Number far) noexcept {
    return at_most(at_least(x, -far), far);
}

/// 1 / (1 + exp(-x)) and what it leaves of 1, each to its own last digits; the first is 0 where it
/// would be smaller than normal numbers are.
template <class V>
struct Logistic {
    static constexpr auto limit = exp_limit<typename Parts<V>::Number>;

    V x;  // no farther out than that
    V share;
    V rest;

    GLASSGRAD_INLINE explicit Logistic(V of) noexcept
        : Logistic(bounded(of, limit), exp_within(-bounded(of, limit)), of, -limit) {}
    /// From `bound`, where `of` is bounded, and exp(-bound); left of `far` the share is 0.
    GLASSGRAD_INLINE Logistic(V bound, V e, V of, typename Parts<V>::Number far) noexcept
        : x(bound) {
        const V normal = all<V>(1) / (all<V>(1) + e);
        share = of < all<V>(far) ? all<V>(0) : normal;
        rest = e * normal;
    }
};

template <class V>
GLASSGRAD_INLINE V logistic(V x) noexcept {
    return Logistic<V>(x).share;
}

template <class V>
GLASSGRAD_INLINE V fast_tanh(V x) noexcept {
    // Beyond it tanh is 1 to rounding.
    using T = typename Parts<V>::Number;
    constexpr T far = sizeof(T) == sizeof(float) ? T(10) : T(20);
    const V m = expm1_within(all<V>(2) * at_most(absolute(x), far));
    return with_sign(m / (m + all<V>(2)), x);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
