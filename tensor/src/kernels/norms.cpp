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
        // NOLINTNEXTLINE(bugprone-branch-clone): pragmas look alike to it
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

/// gx = scale (g - mean(g) - h mean(g h)), where h is the norm of x; without mean(g) if not
/// centred. `part(i, h)` takes what other gradients want of element i on the way.
template <bool Centred, class T, class G, class Part>
GLASSGRAD_INLINE void pull(N n, const T* x, const Measure<T>& m, const G& g, const Part& part,
                           T* gx) noexcept {
    constexpr N block = 512;
    double plain = 0;
    double along = 0;
    for (N begin = 0; begin < n; begin += block) {
        const N end = n - begin < block ? n : begin + block;
        T sum{};
        T product{};
#pragma omp simd reduction(+ : sum, product)
        for (N i = begin; i < end; ++i) {
            const T h = m.of(x[i]);
            const T value = g(i);
            sum += value;
            product += value * h;
            part(i, h);
        }
        plain += static_cast<double>(sum);
        along += static_cast<double>(product);
    }
    const auto size = static_cast<double>(n);
    const T shift = Centred ? static_cast<T>(plain / size) : T{};
    const T slope = static_cast<T>(along / size);
#pragma omp simd
    for (N i = 0; i < n; ++i) gx[i] = m.scale * (g(i) - shift - m.of(x[i]) * slope);
}

/// A row's gradients, with those parts that `part` takes.
template <bool Centred, class T, class Part>
GLASSGRAD_INLINE void pull_row(N n, const T* x, const T* gy, const T* weight, const Measure<T>& m,
                               const Part& part, T* gx) noexcept {
    if (!gx) {
#pragma omp simd
        for (N i = 0; i < n; ++i) part(i, m.of(x[i]));
    } else if (weight) {
        pull<Centred>(
            n, x, m, [=](N i) { return gy[i] * weight[i]; }, part, gx);
    } else {
        pull<Centred>(
            n, x, m, [=](N i) { return gy[i]; }, part, gx);
    }
}

template <bool Centred, class T>
void norm_vjp(N rows, N n, const T* x, const T* gy, const T* weight, double eps,
              const NormTargets<T>& gradients) {
    T* gx = gradients.x;
    double* const gw = gradients.weight;
    double* const gb = gradients.bias;
    for (N r = 0; r < rows; ++r, x += n, gy += n) {
        const Measure<T> m = gx || gw ? measure<Centred>(n, x, eps) : Measure<T>{};
        const auto to_weight = [=](N i, T h) { gw[i] += static_cast<double>(gy[i] * h); };
        const auto to_bias = [=](N i, T) { gb[i] += static_cast<double>(gy[i]); };
        const auto to_both = [=](N i, T h) {
            to_weight(i, h);
            to_bias(i, h);
        };
        if (gw && gb) {
            pull_row<Centred>(n, x, gy, weight, m, to_both, gx);
        } else if (gw) {
            pull_row<Centred>(n, x, gy, weight, m, to_weight, gx);
        } else if (gb) {
            pull_row<Centred>(n, x, gy, weight, m, to_bias, gx);
        } else {
            pull_row<Centred>(
                n, x, gy, weight, m, [](N, T) {}, gx);
        }
        if (gx) gx += n;
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
