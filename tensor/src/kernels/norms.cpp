// Layer norm and RMS norm, row by row. Sums are of T in lanes within a block, f64 from block to
// block.

#include "sums.hpp"
#include "vectors.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

/// How far lanes add up in T.
constexpr N block = 1024;

// For loops whose body runs on vectors, and on numbers where a row ends.
template <class V, class T>
GLASSGRAD_INLINE V at(const T* x) noexcept {
    if constexpr (std::is_same_v<V, T>) {
        return *x;
    } else {
        return load(x);
    }
}
template <class T>
GLASSGRAD_INLINE void put(T* x, T v) noexcept {
    *x = v;
}
template <class T>
GLASSGRAD_INLINE void put(T* x, Vector<T> v) noexcept {
    store(x, v);
}
/// A sum of vectors and numbers in chains that don't wait for one another.
template <class T, int Chains = 1>
struct Sum {
    Vector<T> chains[Chains] = {};
    T rest{};

    template <int Chain = 0>
    GLASSGRAD_INLINE Vector<T>& of(Vector<T>) noexcept {
        return chains[Chain];
    }
    template <int Chain = 0>
    GLASSGRAD_INLINE T& of(T) noexcept {
        return rest;
    }
    GLASSGRAD_INLINE double total() const noexcept {
        Vector<T> all = chains[0];
        for (int chain = 1; chain < Chains; ++chain) all += chains[chain];
        T sums[lanes<T>];
        store(sums, all);
        for (int half = lanes<T> / 2; half > 0; half /= 2) {
            for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
        }
        return static_cast<double>(sums[0] + rest);
    }
};

/// f(i, chain, V) of each i at which a V begins: vectors as far as they go, then numbers.
template <class T, int Chains, class F>
GLASSGRAD_INLINE void by_vectors(N begin, N end, const F& f) noexcept {
    constexpr std::integral_constant<int, 0> first{};
    N i = begin;
    if constexpr (Chains > 1) {
        for (; i + Chains * lanes<T> <= end; i += Chains * lanes<T>) {
            each<Chains>([&](auto chain) { f(i + chain * lanes<T>, chain, Vector<T>{}); });
        }
    }
    for (; i + lanes<T> <= end; i += lanes<T>) f(i, first, Vector<T>{});
    for (; i < end; ++i) f(i, first, T{});
}

/// What a row is shifted and scaled by. The mean in two parts, since differences from it are all
/// that counts and a float holds too little of it.
template <class T>
struct Measure {
    T mean;
    T mean_low;
    T scale;  // 1 / sqrt(var + eps)

    template <class V>
    GLASSGRAD_INLINE V of(V x) const noexcept {
        return ((x - all<V>(mean)) - all<V>(mean_low)) * all<V>(scale);
    }
};

/// With `Centred`, about the mean; else about 0.
template <bool Centred, class T>
struct WideMeasure {
    Wide<T> mean{};
    Wide<T> scale;

    WideMeasure(N n, const T* x, double eps) noexcept {
        const auto size = static_cast<Wide<T>>(n);
        // The second round leaves 0 of equal numbers.
        for (int round = 0; Centred && round < 2; ++round) {
            Wide<T> off = 0;
            for (N i = 0; i < n; ++i) off += static_cast<Wide<T>>(x[i]) - mean;
            mean += off / size;
        }
        Wide<T> squares = 0;
        for (N i = 0; i < n; ++i) {
            const Wide<T> d = static_cast<Wide<T>>(x[i]) - mean;
            squares += d * d;
        }
        scale = 1 / std::sqrt(squares / size + static_cast<Wide<T>>(eps));
    }
    Wide<T> of(T x) const noexcept { return (static_cast<Wide<T>>(x) - mean) * scale; }
};

template <bool Centred, class T>
[[gnu::noinline]] void norm_wide(N n, const T* x, const T* weight, const T* bias, double eps,
                                 T* y) noexcept {
    const WideMeasure<Centred, T> m(n, x, eps);
    for (N i = 0; i < n; ++i) {
        const Wide<T> scaled = m.of(x[i]) * static_cast<Wide<T>>(weight ? weight[i] : T{1});
        y[i] = static_cast<T>(scaled + static_cast<Wide<T>>(bias ? bias[i] : T{0}));
    }
}

/// The gradients of a row, as `pull_rows`.
template <bool Centred, class T>
[[gnu::noinline]] void pull_wide(N n, const T* x, const T* gy, const T* weight, double eps, T* gx,
                                 double* gw, double* gb) noexcept {
    const WideMeasure<Centred, T> m(n, x, eps);
    const auto pulled = [=](N i) {
        return static_cast<Wide<T>>(gy[i]) * static_cast<Wide<T>>(weight ? weight[i] : T{1});
    };
    Wide<T> plain = 0;
    Wide<T> along = 0;
    for (N i = 0; i < n; ++i) {
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
    for (N i = 0; i < n; ++i) {
        gx[i] = static_cast<T>(m.scale * (pulled(i) - shift - m.of(x[i]) * slope));
    }
}

/// With `Centred`, about the mean; else about 0. In f64, for numbers whose squares T holds. False
/// if it doesn't hold the scale.
template <bool Centred, class T>
[[gnu::noinline]] bool measure_any(N n, const T* x, double eps, Measure<T>& m) noexcept {
    const auto size = static_cast<double>(n);
    m = {};
    if constexpr (Centred) {
        double mean = sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]); }) / size;
        // Leaves 0 of equal numbers.
        mean += sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]) - mean; }) / size;
        m.mean = static_cast<T>(mean);
        m.mean_low = static_cast<T>(mean - static_cast<double>(m.mean));
    }
    const double squares = sum_of<double>(n, [=](N i) {
        const auto d = static_cast<double>((x[i] - m.mean) - m.mean_low);
        return d * d;
    });
    const double scale = 1 / std::sqrt(squares / size + eps);
    m.scale = static_cast<T>(scale);
    return scale < static_cast<double>(std::numeric_limits<T>::max());
}

/// The same by sums in T. Those of differences from a mean that is nearly right mend it. False if
/// T holds no such sums.
template <bool Centred, class T>
GLASSGRAD_INLINE bool measure(N n, const T* x, double eps, Measure<T>& m) noexcept {
    constexpr int chains = 4;
    const auto size = static_cast<double>(n);
    double sum = 0;
    if constexpr (Centred) {
        for (N begin = 0; begin < n; begin += block) {
            Sum<T, chains> part;
            by_vectors<T, chains>(begin, n - begin < block ? n : begin + block,
                                  [&](N i, auto chain, auto v) {
                                      using V = decltype(v);
                                      part.template of<chain>(v) += at<V>(x + i);
                                  });
            sum += part.total();
        }
    }
    const T near = static_cast<T>(sum / size);
    double off = 0;
    double squares = 0;
    for (N begin = 0; begin < n; begin += block) {
        Sum<T, chains> plain;
        Sum<T, chains> square;
        by_vectors<T, chains>(begin, n - begin < block ? n : begin + block,
                              [&](N i, auto chain, auto v) {
                                  using V = decltype(v);
                                  const V d = at<V>(x + i) - all<V>(near);
                                  plain.template of<chain>(v) += d;
                                  V& to = square.template of<chain>(v);
                                  to = mul_add(d, d, to);
                              });
        off += plain.total();
        squares += square.total();
    }
    const double shift = Centred ? off / size : 0;
    const double variance = squares / size - shift * shift;
    constexpr double least = sizeof(T) == sizeof(float) ? 1e-24 : 1e-280;
    constexpr double most = std::numeric_limits<T>::max();
    if (!(squares < most)) return false;
    // Else squares may be too small for T, or the mean is no better than the spread.
    if (!(variance > least && variance > shift * shift)) {
        return measure_any<Centred>(n, x, eps, m);
    }
    m = {near, static_cast<T>(shift), static_cast<T>(1 / std::sqrt(variance + eps))};
    return true;
}

template <bool Centred, class T>
void norm(N rows, N n, const T* x, const T* weight, const T* bias, double eps, T* y) {
    for (N r = 0; r < rows; ++r, x += n, y += n) {
        Measure<T> m;
        if (!measure<Centred>(n, x, eps, m)) {
            norm_wide<Centred>(n, x, weight, bias, eps, y);
            continue;
        }
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

/// The sum of so many.
template <int Count, class V>
GLASSGRAD_INLINE V in_pairs(const V* x) noexcept {
    if constexpr (Count == 1) {
        return *x;
    } else {
        return in_pairs<Count / 2>(x) + in_pairs<Count / 2>(x + Count / 2);
    }
}

/// What columns [begin, end) of R rows add to the gradients of weight and bias, for sums that T
/// doesn't hold.
template <int R, class T>
[[gnu::noinline]] void add_columns(N begin, N end, N n, const T* x, const T* gy,
                                   const Measure<T>* m, double* gw, double* gb) noexcept {
    for (int r = 0; r < R; ++r, x += n, gy += n) {
        for (N i = begin; i < end; ++i) {
            const auto g = static_cast<double>(gy[i]);
            if (gw) gw[i] += g * static_cast<double>(m[r].of(x[i]));
            if (gb) gb[i] += g;
        }
    }
}

/// The gradients of R rows, measured by `m`: gx = scale (g - mean(g) - h mean(g h)), where g is
/// gy weight and h is the norm of x; without mean(g) if not centred.
template <bool Centred, int R, class T>
void pull_rows(N n, const T* x, const T* gy, const T* weight, double eps, const Measure<T>* m,
               T* gx, double* gw, double* gb) noexcept {
    double plain[R] = {};
    double along[R] = {};
    Measure<T> rows[R];
    for (int r = 0; r < R; ++r) rows[r] = m[r];
    for (N begin = 0; begin < n; begin += block) {
        const N end = n - begin < block ? n : begin + block;
        // Of these rows together, so that sums in f64 are read and written once for all.
        T columns_h[block];
        T columns[block];
        Sum<T> sums[R];
        Sum<T> sums_h[R];
        Sum<T> wild;  // NaN if a sum over the rows is or has left T
        by_vectors<T, 1>(begin, end, [&](N i, auto, auto v) {
            using V = decltype(v);
            const V w = weight ? at<V>(weight + i) : all<V>(T{1});
            V column_h[R];
            V column[R];
            each<R>([&](auto r) {
                const V h = rows[r].of(at<V>(x + r * n + i));
                const V g = at<V>(gy + r * n + i);
                column_h[r] = g * h;
                column[r] = g;
                const V value = g * w;
                sums[r].of(v) += value;
                V& to = sums_h[r].of(v);
                to = mul_add(value, h, to);
            });
            const V all_h = in_pairs<R>(column_h);
            const V all_g = in_pairs<R>(column);
            put(columns_h + (i - begin), all_h);
            put(columns + (i - begin), all_g);
            V& odd = wild.of(v);
            odd = mul_add(all_h, all<V>(T{0}), mul_add(all_g, all<V>(T{0}), odd));
        });
        const bool tame = wild.total() == 0;
        if (!tame) add_columns<R>(begin, end, n, x, gy, rows, gw, gb);
        if (gw && tame) {
#pragma omp simd
            for (N i = begin; i < end; ++i) gw[i] += static_cast<double>(columns_h[i - begin]);
        }
        if (gb && tame) {
#pragma omp simd
            for (N i = begin; i < end; ++i) gb[i] += static_cast<double>(columns[i - begin]);
        }
        for (int r = 0; r < R; ++r) {
            plain[r] += sums[r].total();
            along[r] += sums_h[r].total();
        }
    }
    if (!gx) return;
    const auto size = static_cast<double>(n);
    constexpr double calm = lost_beside_most<T>;
    const double longest = std::sqrt(size);  // no element of a norm is beyond it
    for (int r = 0; r < R; ++r, x += n, gy += n, gx += n) {
        const Measure<T> row = rows[r];
        const double mean_g = Centred ? plain[r] / size : 0;
        const double mean_gh = along[r] / size;
        if (!(std::abs(mean_g) < calm && std::abs(mean_gh) * longest < calm)) {
            pull_wide<Centred>(n, x, gy, weight, eps, gx, nullptr, nullptr);
            continue;
        }
        const T shift = static_cast<T>(mean_g);
        const T slope = static_cast<T>(mean_gh);
        // NOLINTNEXTLINE(bugprone-branch-clone): pragmas look alike to it
        if (weight) {
#pragma omp simd
            for (N i = 0; i < n; ++i) {
                gx[i] = row.scale * (gy[i] * weight[i] - shift - row.of(x[i]) * slope);
            }
        } else {
#pragma omp simd
            for (N i = 0; i < n; ++i) {
                gx[i] = row.scale * (gy[i] - shift - row.of(x[i]) * slope);
            }
        }
    }
}

template <bool Centred, class T>
void norm_vjp(N rows, N n, const T* x, const T* gy, const T* weight, double eps,
              const NormTargets<T>& gradients) {
    constexpr int together = 4;
    T* gx = gradients.x;
    double* const gw = gradients.weight;
    double* const gb = gradients.bias;
    for (N r = 0; r < rows;) {
        const int count = rows - r < together ? 1 : together;
        Measure<T> m[together] = {};
        bool held[together] = {true, true, true, true};
        if (gx || gw) {
            for (int k = 0; k < count; ++k) held[k] = measure<Centred>(n, x + k * n, eps, m[k]);
        }
        if (count == together && held[0] && held[1] && held[2] && held[3]) {
            pull_rows<Centred, together>(n, x, gy, weight, eps, m, gx, gw, gb);
        } else {
            for (int k = 0; k < count; ++k) {
                T* const to = gx ? gx + k * n : nullptr;
                if (held[k]) {
                    pull_rows<Centred, 1>(n, x + k * n, gy + k * n, weight, eps, m + k, to, gw, gb);
                } else {
                    pull_wide<Centred>(n, x + k * n, gy + k * n, weight, eps, to, gw, gb);
                }
            }
        }
        r += count;
        x += count * n;
        gy += count * n;
        if (gx) gx += count * n;
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
