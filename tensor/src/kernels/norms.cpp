// Layer norm and RMS norm, row by row. Sums are f64 whatever the type.

#include "sums.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

/// What a row is shifted and scaled by. The mean in two parts, since differences from it are all
/// that counts and a float holds too little of it.
template <class T>
struct Measure {
    T mean;
    T mean_low;
    T scale;  // 1 / sqrt(var + eps)

    GLASSGRAD_INLINE T of(T x) const noexcept { return ((x - mean) - mean_low) * scale; }
};

/// With `Centred`, about the mean; else about 0.
template <bool Centred, class T>
GLASSGRAD_INLINE Measure<T> measure(N n, const T* x, double eps) noexcept {
    const auto size = static_cast<double>(n);
    Measure<T> m{};
    if constexpr (Centred) {
        const double mean =
            sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]); }) / size;
        m.mean = static_cast<T>(mean);
        m.mean_low = static_cast<T>(mean - static_cast<double>(m.mean));
    }
    const double squares = sum_of<double>(n, [=](N i) {
        const auto d = static_cast<double>((x[i] - m.mean) - m.mean_low);
        return d * d;
    });
    m.scale = static_cast<T>(1 / std::sqrt(squares / size + eps));
    return m;
}

template <bool Centred, class T>
void norm(N rows, N n, const T* x, const T* weight, const T* bias, double eps, T* y) {
    for (N r = 0; r < rows; ++r, x += n, y += n) {
        const Measure<T> m = measure<Centred>(n, x, eps);
        if (weight && bias) {
#pragma omp simd
            for (N i = 0; i < n; ++i) y[i] = mul_add(m.of(x[i]), weight[i], bias[i]);
        } else if (weight) {
#pragma omp simd
            for (N i = 0; i < n; ++i) y[i] = m.of(x[i]) * weight[i];
        } else if (bias) {
#pragma omp simd
            for (N i = 0; i < n; ++i) y[i] = m.of(x[i]) + bias[i];
        } else {
#pragma omp simd
            for (N i = 0; i < n; ++i) y[i] = m.of(x[i]);
        }
    }
}

/// scale (g - mean(g) - h mean(g h)), where h is the norm of x; without mean(g) if not centred.
template <bool Centred, class T, class F>
GLASSGRAD_INLINE void pull(N n, const T* x, const Measure<T>& m, const F& g, T* gx) noexcept {
    const auto size = static_cast<double>(n);
    T plain{};
    if constexpr (Centred) plain = static_cast<T>(sum_of<T>(n, g) / size);
    const T along = static_cast<T>(sum_of<T>(n, [&](N i) { return g(i) * m.of(x[i]); }) / size);
#pragma omp simd
    for (N i = 0; i < n; ++i) gx[i] = m.scale * (g(i) - plain - m.of(x[i]) * along);
}

template <bool Centred, class T>
void norm_vjp(N rows, N n, const T* x, const T* gy, const T* weight, double eps,
              const NormTargets<T>& gradients) {
    T* gx = gradients.x;
    double* gw = gradients.weight;
    double* gb = gradients.bias;
    for (N r = 0; r < rows; ++r, x += n, gy += n) {
        const Measure<T> m = gx || gw ? measure<Centred>(n, x, eps) : Measure<T>{};
        if (gw && gb) {
#pragma omp simd
            for (N i = 0; i < n; ++i) {
                gw[i] += static_cast<double>(gy[i] * m.of(x[i]));
                gb[i] += static_cast<double>(gy[i]);
            }
        } else if (gw) {
#pragma omp simd
            for (N i = 0; i < n; ++i) gw[i] += static_cast<double>(gy[i] * m.of(x[i]));
        } else if (gb) {
#pragma omp simd
            for (N i = 0; i < n; ++i) gb[i] += static_cast<double>(gy[i]);
        }
        if (!gx) continue;
        if (weight) {
            pull<Centred>(
                n, x, m, [=](N i) { return gy[i] * weight[i]; }, gx);
        } else {
            pull<Centred>(
                n, x, m, [=](N i) { return gy[i]; }, gx);
        }
        gx += n;
    }
}

template <class T>
void add(Rows<T>& rows) {
    rows.layer_norm = norm<true, T>;
    rows.rms_norm = norm<false, T>;
    rows.layer_norm_vjp = norm_vjp<true, T>;
    rows.rms_norm_vjp = norm_vjp<false, T>;
}

}  // namespace

void add_norms(KernelTable& table) {
    add(table.of_float.row);
    add(table.of_double.row);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
