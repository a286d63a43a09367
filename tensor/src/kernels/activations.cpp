// Activations and their derivatives. Tails are exact: what an infinity or a large number times 0
// would make NaN is taken to its limit.

#include "each.hpp"
#include "fast_log.hpp"
#include "gauss.hpp"
#include "sigmoid.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

/// x times a share in [0, 1] that falls to 0 faster than x grows.
template <class V>
GLASSGRAD_INLINE V shared(V x, V share) noexcept {
    return share == all<V>(0) ? all<V>(-0.0) : x * share;
}

constexpr long double twice_scale = 1.59576912160573071175978423973L;  // sqrt(8 / pi)
constexpr long double cubic = 0.044715L;

/// (1 + tanh(u)) / 2 = sigmoid(2 u), which keeps its digits far left, for u = scale (x + cubic x³).
/// A second number holds most of what 2 u loses when it is rounded. Its x is x, bounded.
template <class V>
GLASSGRAD_INLINE Logistic<V> tanh_share(V x) noexcept {
    using T = typename Parts<V>::Number;
    // Where 2 u is just below exp_limit.
    constexpr T far = sizeof(T) == sizeof(float) ? T(9.97) : T(21.1);
    constexpr T linear = static_cast<T>(twice_scale);
    constexpr T linear_lost = static_cast<T>(twice_scale - linear);
    const V z = bounded(x, far);
    const V factor = mul_add(all<V>(static_cast<T>(twice_scale * cubic)) * z, z, all<V>(linear));
    const V u = z * factor;
    const V lost = mul_add(z, all<V>(linear_lost), lost_of_product(z, factor, u));
    return Logistic<V>(z, exp_within(-u, -lost), x, -far);
}

// Where x is bounded, shares are exactly 0 or 1 and what they are multiplied by no longer counts.

template <class V>
GLASSGRAD_INLINE V gelu_slope(V x) noexcept {
    using T = typename Parts<V>::Number;
    const Normal<V> normal(x);
    return mul_add(normal.x * all<V>(T(0.39894228040143267794)), normal.bell, normal.share);
}

template <class V>
GLASSGRAD_INLINE V gelu_tanh_slope(V x) noexcept {
    using T = typename Parts<V>::Number;
    const Logistic<V> p = tanh_share(x);
    const V bend =
        mul_add(all<V>(static_cast<T>(3 * twice_scale * cubic)) * p.x, p.x, all<V>(T(twice_scale)));
    return mul_add(p.x * p.share * p.rest, bend, p.share);
}

template <class V>
GLASSGRAD_INLINE V silu_slope(V x) noexcept {
    const Logistic<V> s(x);
    return s.share * mul_add(s.x, s.rest, all<V>(1));
}

template <class T>
GLASSGRAD_INLINE T softplus(T x) noexcept {
    return (x > 0 ? x : x != x ? x : T{0}) + fast_log1p(fast_exp(-std::abs(x)));
}

template <class T>
void add(Maps<T>& maps) {
    using N = std::int64_t;
    maps.tanh = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return fast_tanh(v); });
    };
    maps.sigmoid = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return logistic(v); });
    };
    maps.softplus = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return softplus(v); }); };
    maps.relu = [](N n, const T* x, T* y) { each(n, x, y, [](T v) { return v < 0 ? T{0} : v; }); };
    maps.leaky_relu = [](N n, T slope, const T* x, T* y) {
        each(n, x, y, [slope](T v) { return v > 0 ? v : slope * v; });
    };
    maps.elu = [](N n, T alpha, const T* x, T* y) {
        each(n, x, y, [alpha](T v) { return v > 0 ? v : alpha * fast_expm1(v); });
    };
    maps.gelu = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return shared(v, Normal<decltype(v)>(v).share); });
    };
    maps.gelu_tanh = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return shared(v, tanh_share(v).share); });
    };
    maps.silu = [](N n, const T* x, T* y) {
        each_vector(n, x, y, [](auto v) { return shared(v, logistic(v)); });
    };
}

template <class T>
void add(Slopes<T>& slopes) {
    using N = std::int64_t;
    slopes.tanh = [](N n, const T* y, const T* gy, T* gx) {
        each(n, y, gy, gx, [](T v, T g) { return g * (T{1} - v * v); });
    };
    slopes.sigmoid = [](N n, const T* y, const T* gy, T* gx) {
        each(n, y, gy, gx, [](T v, T g) { return g * (v * (T{1} - v)); });
    };
    slopes.softplus = [](N n, const T* x, const T* gy, T* gx) {
        each_vector(n, x, gy, gx, [](auto v, auto g) { return g * logistic(v); });
    };
    slopes.relu = [](N n, const T* y, const T* gy, T* gx) {
        each(n, y, gy, gx, [](T v, T g) { return v > 0 ? g : T{0}; });
    };
    slopes.gelu = [](N n, const T* x, const T* gy, T* gx) {
        each_vector(n, x, gy, gx, [](auto v, auto g) { return g * gelu_slope(v); });
    };
    slopes.gelu_tanh = [](N n, const T* x, const T* gy, T* gx) {
        each_vector(n, x, gy, gx, [](auto v, auto g) { return g * gelu_tanh_slope(v); });
    };
    slopes.silu = [](N n, const T* x, const T* gy, T* gx) {
        each_vector(n, x, gy, gx, [](auto v, auto g) { return g * silu_slope(v); });
    };
}

}  // namespace

void add_activations(KernelTable& table) {
    add(table.of_float.map);
    add(table.of_double.map);
    add(table.of_float.slope);
    add(table.of_double.slope);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
