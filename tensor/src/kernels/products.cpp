// Matrix products from packed panels, as Goto and van de Geijn 2008, "Anatomy of high-performance
// matrix multiplication": a block of sums stays in registers while the inner axis runs. The sum of
// an element runs over that axis in order, wherever the element lies.

#include "isa.hpp"

#ifdef __FMA__

#include <immintrin.h>

#include <algorithm>
#include <utility>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

#ifdef __AVX512F__
constexpr int vector_bytes = 64;
constexpr int panel_rows = 12;
#else
constexpr int vector_bytes = 32;
constexpr int panel_rows = 6;
#endif

template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));
template <class T>
constexpr int panel_columns = 2 * lanes<T>;

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

#ifdef __AVX512F__
inline Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm512_fmadd_ps(a, b, c);
}
inline Vector<float> splat(float x) { return _mm512_set1_ps(x); }
inline Vector<double> splat(double x) { return _mm512_set1_pd(x); }
inline Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm512_fmadd_pd(a, b, c);
}
#else
inline Vector<float> fused(Vector<float> a, Vector<float> b, Vector<float> c) {
    return _mm256_fmadd_ps(a, b, c);
}
inline Vector<float> splat(float x) { return _mm256_set1_ps(x); }
inline Vector<double> splat(double x) { return _mm256_set1_pd(x); }
inline Vector<double> fused(Vector<double> a, Vector<double> b, Vector<double> c) {
    return _mm256_fmadd_pd(a, b, c);
}
#endif

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

/// Up to W lines as a panel: out[p W + i] = x[i line_step + p step], 0 for lines that aren't there.
template <int W, class T>
void pack_panel(std::int64_t lines, std::int64_t k, const T* x, std::int64_t line_step,
                std::int64_t step, T* out) {
    if (lines < W) {
        for (std::int64_t p = 0; p < k; ++p) {
            for (std::int64_t i = 0; i < lines; ++i) out[p * W + i] = x[i * line_step + p * step];
            for (std::int64_t i = lines; i < W; ++i) out[p * W + i] = 0;
        }
        return;
    }
    if (line_step == 1) {
        for (std::int64_t p = 0; p < k; ++p, x += step, out += W) {
            for (int i = 0; i < W; ++i) out[i] = x[i];
        }
        return;
    }
    std::int64_t p = 0;
    if (step == 1) {
        for (; p + 4 <= k; p += 4) {
            int i = 0;
            for (; i + 4 <= W; i += 4) turn(x + i * line_step + p, line_step, out + p * W + i, W);
            for (; i < W; ++i) {
                for (int q = 0; q < 4; ++q) out[(p + q) * W + i] = x[i * line_step + p + q];
            }
        }
    }
    for (; p < k; ++p) {
        for (int i = 0; i < W; ++i) out[p * W + i] = x[i * line_step + p * step];
    }
}

template <int W, class T>
void pack(std::int64_t lines, std::int64_t k, const T* x, std::int64_t line_step, std::int64_t step,
          T* out) {
    for (std::int64_t i = 0; i < lines; i += W, out += W * k) {
        pack_panel<W>(std::min<std::int64_t>(W, lines - i), k, x + i * line_step, line_step, step,
                      out);
    }
}

/// A block of R rows and `columns` columns of c.
template <int R, class T>
void block(std::int64_t k, const T* a, const T* b, std::int64_t b_step, const Panels<T>& c, T* out,
           std::int64_t columns, const T* bias) {
    constexpr int width = panel_columns<T>;
    Vector<T> sums[R][2] = {};
    for (std::int64_t p = 0; p < k; ++p, a += panel_rows, b += b_step) {
        const Vector<T> low = load(b);
        const Vector<T> high = load(b + lanes<T>);
        each<R>([&](auto r) {
            const Vector<T> x = splat(a[r]);
            sums[r][0] = fused(x, low, sums[r][0]);
            sums[r][1] = fused(x, high, sums[r][1]);
        });
    }
    if (columns == width) {
        each<R>([&](auto r) {
            T* row = out + r * c.stride;
            for (int half = 0; half < 2; ++half) {
                Vector<T> sum = sums[r][half];
                if (c.add) sum = load(row + half * lanes<T>) + sum;
                if (bias) sum = sum + load(bias + half * lanes<T>);
                store(row + half * lanes<T>, sum);
            }
        });
        return;
    }
    each<R>([&](auto r) {
        T row[width];
        store(row, sums[r][0]);
        store(row + lanes<T>, sums[r][1]);
        for (std::int64_t j = 0; j < columns; ++j) {
            T sum = row[j];
            T& target = out[r * c.stride + j];
            if (c.add) sum = target + sum;
            if (bias) sum = sum + bias[j];
            target = sum;
        }
    });
}

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, const T* b,
              std::int64_t b_panel, std::int64_t b_step, const Panels<T>& c) {
    using Block = void (*)(std::int64_t, const T*, const T*, std::int64_t, const Panels<T>&, T*,
                           std::int64_t, const T*);
    constexpr int width = panel_columns<T>;
    Block blocks[panel_rows];
    each<panel_rows>([&](auto r) { blocks[r] = block<r + 1, T>; });
    for (std::int64_t j = 0; j < n; j += width, b += b_panel) {
        const std::int64_t columns = std::min<std::int64_t>(width, n - j);
        const T* bias = c.bias ? c.bias + j : nullptr;
        const T* rows = a;
        for (std::int64_t i = 0; i < m; i += panel_rows, rows += panel_rows * k) {
            const std::int64_t count = std::min<std::int64_t>(panel_rows, m - i);
            blocks[count - 1](k, rows, b, b_step, c, c.data + i * c.stride + j, columns, bias);
        }
    }
}

template <class T>
void add(ProductKernels<T>& products) {
    products = {panel_rows, panel_columns<T>, pack<panel_rows, T>, pack<panel_columns<T>, T>,
                multiply<T>};
}

}  // namespace

void add_products(KernelTable& table) {
    add(table.of_float.products);
    add(table.of_double.products);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA

#else

namespace glassgrad::detail::GLASSGRAD_ISA {

void add_products(KernelTable&) {}

}  // namespace glassgrad::detail::GLASSGRAD_ISA

#endif
