// Layer norm and RMS norm.

#include "measure_rows.hpp"
#include "wide_norms.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <int R, class T>
GLASSGRAD_INLINE void norm_rows(N n, const T* x, const T* weight, const T* bias,
                                const Measure<T>* measures, T* y) noexcept {
    using V = Vector<T>;
    Measure<T> m[R];
    for (int r = 0; r < R; ++r) m[r] = measures[r];
    const auto rows = [&](const auto& finish) {
        by_vectors<T, 1>(0, n, [&](N i, auto places, auto) {
            const V w = weight ? get(weight + i, places) : V{};
            const V b = bias ? get(bias + i, places) : V{};
            each<R>([&](auto r) {
                put(y + r * n + i, finish(m[r].of(get(x + r * n + i, places)), w, b), places);
            });
        });
    };
    if (weight && bias) {
        rows([](V h, V w, V b) { return mul_add(h, w, b); });
    } else if (weight) {
        rows([](V h, V w, V) { return h * w; });
    } else if (bias) {
        rows([](V h, V, V b) { return h + b; });
    } else {
        rows([](V h, V, V) { return h; });
    }
}

template <bool Centred, int R, class T>
GLASSGRAD_INLINE void norm_some(N n, const T* x, const T* weight, const T* bias, double eps,
                                T* y) noexcept {
    const T* const none = nullptr;
    const Known<T, R> known = measure<Centred, false, R>(n, x, none, none, eps);
    bool tame = true;
    for (const Measured how : known.how) tame = tame && how != Measured::wild;
    // Results of several long rows at once come slowly where they go to memory.
    constexpr N long_row = 4096 / sizeof(T);
    if (tame && (R == 1 || n < long_row)) {
        norm_rows<R>(n, x, weight, bias, known.measure, y);
        return;
    }
    for (int r = 0; r < R; ++r) {
        if (known.how[r] == Measured::wild) {
            norm_wide<Centred>(n, x + r * n, weight, bias, eps, y + r * n);
        } else {
            norm_rows<1>(n, x + r * n, weight, bias, known.measure + r, y + r * n);
        }
    }
}

template <bool Centred, class T>
void norm(N rows, N n, const T* x, const T* weight, const T* bias, double eps, T* y) {
    N r = 0;
    for (; r + together <= rows; r += together) {
        norm_some<Centred, together>(n, x + r * n, weight, bias, eps, y + r * n);
    }
    for (; r < rows; ++r) norm_some<Centred, 1>(n, x + r * n, weight, bias, eps, y + r * n);
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

/// What the gradient of a row's x takes: gx = scale (g - shift - h slope), where g is gy weight and
/// h is the norm of x.
template <class T>
struct Pull {
    Measure<T> row;
    T shift;  // mean(g), 0 if not centred
    T slope;  // mean(g h)
};

/// What columns [begin, end) of R rows add to the gradients of weight and bias, for sums that T
/// doesn't hold.
template <int R, class T>
[[gnu::noinline]] void add_columns(N begin, N end, N n, const T* x, const T* gy,
                                   const Pull<T>* pulls, double* gw, double* gb) noexcept {
    for (int r = 0; r < R; ++r, x += n, gy += n) {
        for (N i = begin; i < end; ++i) {
            const auto g = static_cast<double>(gy[i]);
            if (gw) gw[i] += g * static_cast<double>(pulls[r].row.of(x[i]));
            if (gb) gb[i] += g;
        }
    }
}

enum class Puts { nothing, plainly, past_caches };

/// The gradients of R rows.
template <int R, Puts Put, class T>
void pull_rows(N n, const T* x, const T* gy, const T* weight, const Pull<T>* pulls, T* gx,
               double* gw, double* gb) noexcept {
    using V = Vector<T>;
    Pull<T> rows[R];
    for (int r = 0; r < R; ++r) rows[r] = pulls[r];
    by_blocks(n, [&](N begin, N end) {
        // Of these rows together, so that sums in f64 are read and written once for all.
        T columns_h[block];
        T columns[block];
        V wild{};  // NaN if a sum over the rows is or has left T
        by_vectors<T, 1>(begin, end, [&](N i, auto places, auto) {
            const V w = weight ? get(weight + i, places) : splat(T{1});
            V column_h[R];
            V column[R];
            each<R>([&](auto r) {
                const V h = rows[r].row.of(get(x + r * n + i, places));
                const V g = get(gy + r * n + i, places);
                column_h[r] = g * h;
                column[r] = g;
                if constexpr (Put != Puts::nothing) {
                    const V pulled = splat(rows[r].row.scale) *
                                     (g * w - splat(rows[r].shift) - h * splat(rows[r].slope));
                    T* const to = gx + r * n + i;
                    if constexpr (Put == Puts::past_caches) {
                        store_past(to, pulled);
                    } else {
                        put(to, pulled, places);
                    }
                }
            });
            const V all_h = in_pairs<R>(column_h);
            const V all_g = in_pairs<R>(column);
            store(columns_h + (i - begin), all_h);
            store(columns + (i - begin), all_g);
            wild = mul_add(all_h, V{}, mul_add(all_g, V{}, wild));
        });
        if (sum_of_lanes(wild) != 0) {
            add_columns<R>(begin, end, n, x, gy, rows, gw, gb);
            return;
        }
        if (gw) {
#pragma omp simd
            for (N i = begin; i < end; ++i) gw[i] += static_cast<double>(columns_h[i - begin]);
        }
        if (gb) {
#pragma omp simd
            for (N i = begin; i < end; ++i) gb[i] += static_cast<double>(columns[i - begin]);
        }
    });
}

template <bool Centred, int R, class T>
GLASSGRAD_INLINE void pull_some(N n, const T* x, const T* gy, const T* weight, double eps, T* gx,
                                double* gw, double* gb, bool past) noexcept {
    Pull<T> pulls[R] = {};
    bool held[R];
    bool all_held = true;
    if (gx || gw) {
        const Known<T, R> known = measure<Centred, true, R>(n, x, gy, weight, eps);
        const auto size = static_cast<double>(n);
        const double longest = std::sqrt(size);  // no element of a norm is beyond it
        constexpr double calm = lost_beside_most<T>;
        for (int r = 0; r < R; ++r) {
            const double shift = known.plain[r] / size;
            const double slope = known.along[r] / size;
            pulls[r] = {known.measure[r], static_cast<T>(shift), static_cast<T>(slope)};
            held[r] = known.how[r] != Measured::wild && std::abs(shift) < calm &&
                      std::abs(slope) * longest < calm;
            all_held = all_held && held[r];
        }
    }
    if (all_held) {
        (past ? pull_rows<R, Puts::past_caches, T>
         : gx ? pull_rows<R, Puts::plainly, T>
              : pull_rows<R, Puts::nothing, T>)(n, x, gy, weight, pulls, gx, gw, gb);
        return;
    }
    for (int r = 0; r < R; ++r, x += n, gy += n) {
        T* const to = gx ? gx + r * n : nullptr;
        if (held[r]) {
            (gx ? pull_rows<1, Puts::plainly, T>
                : pull_rows<1, Puts::nothing, T>)(n, x, gy, weight, pulls + r, to, gw, gb);
        } else {
            pull_wide<Centred>(n, x, gy, weight, eps, to, gw, gb);
        }
    }
}

template <bool Centred, class T>
void norm_vjp(N rows, N n, const T* x, const T* gy, const T* weight, double eps,
              const NormTargets<T>& to) {
    const bool past = to.past_caches && n % lanes<T> == 0 &&
                      reinterpret_cast<std::uintptr_t>(to.x) % vector_bytes == 0;
    const auto some = [&](N r, auto count) {
        pull_some<Centred, count>(n, x + r * n, gy + r * n, weight, eps,
                                  to.x ? to.x + r * n : nullptr, to.weight, to.bias, past);
    };
    N r = 0;
    for (; r + together <= rows; r += together) {
        some(r, std::integral_constant<int, together>{});
    }
    for (; r < rows; ++r) some(r, std::integral_constant<int, 1>{});
    if (past) end_stores_past();
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
