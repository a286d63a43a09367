#pragma once
// Norms of a row whose sums or squares T doesn't hold, and their derivatives: slow loops in f64, or
// long double for f64.

#include "sums.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

/// With `Centred`, about the mean; else about 0.
template <bool Centred, class T>
struct WideMeasure {
    Wide<T> mean{};
    Wide<T> scale;

    WideMeasure(std::int64_t n, const T* x, double eps) noexcept {
        const auto size = static_cast<Wide<T>>(n);
        // The second round leaves 0 of equal numbers.
        for (int round = 0; Centred && round < 2; ++round) {
            Wide<T> off = 0;
            for (std::int64_t i = 0; i < n; ++i) off += static_cast<Wide<T>>(x[i]) - mean;
            mean += off / size;
        }
        Wide<T> squares = 0;
        for (std::int64_t i = 0; i < n; ++i) {
            const Wide<T> d = static_cast<Wide<T>>(x[i]) - mean;
            squares += d * d;
        }
        scale = 1 / std::sqrt(squares / size + static_cast<Wide<T>>(eps));
    }
    Wide<T> of(T x) const noexcept { return (static_cast<Wide<T>>(x) - mean) * scale; }
};

/// A row of a norm, as `norm_rows`.
template <bool Centred, class T>
[[gnu::noinline]] void norm_wide(std::int64_t n, const T* x, const T* weight, const T* bias,
                                 double eps, T* y) noexcept {
    const WideMeasure<Centred, T> m(n, x, eps);
    for (std::int64_t i = 0; i < n; ++i) {
        const Wide<T> scaled = m.of(x[i]) * static_cast<Wide<T>>(weight ? weight[i] : T{1});
        y[i] = static_cast<T>(scaled + static_cast<Wide<T>>(bias ? bias[i] : T{0}));
    }
}

/// The gradients of a row, as `pull_rows`.
template <bool Centred, class T>
[[gnu::noinline]] void pull_wide(std::int64_t n, const T* x, const T* gy, const T* weight,
                                 double eps, T* gx, double* gw, double* gb) noexcept {
    const WideMeasure<Centred, T> m(n, x, eps);
    const auto pulled = [=](std::int64_t i) {
        return static_cast<Wide<T>>(gy[i]) * static_cast<Wide<T>>(weight ? weight[i] : T{1});
    };
    Wide<T> plain = 0;
    Wide<T> along = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        const auto g = static_cast<Wide<T>>(gy[i]);
        const Wide<T> h = m.of(x[i]);
        if (gw) gw[i] += static_cast<double>(g * h);
        if (gb) gb[i] += static_cast<double>(g);
        plain += pulled(i);
        along += pulled(i) * h;
    }
    if (!gx) return;
    const auto size = static_cast<Wide<T>>(n);
    const Wide<T> shift = Centred ? plain / size : 0;
    const Wide<T> slope = along / size;
    for (std::int64_t i = 0; i < n; ++i) {
        gx[i] = static_cast<T>(m.scale * (pulled(i) - shift - m.of(x[i]) * slope));
    }
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
