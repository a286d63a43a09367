// Softmax and its relatives, row by row.

#include "each.hpp"
#include "fast_exp.hpp"
#include "row_vectors.hpp"
#include "sums.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();

template <class T>
GLASSGRAD_INLINE void fill(N n, T value, T* y) noexcept {
    for (N i = 0; i < n; ++i) y[i] = value;
}

/// The sum of exp(x - top), which is NaN where an x is, for top not below x. With `Put` they are
/// written.
template <bool Put, class T>
GLASSGRAD_INLINE double exp_sum(N n, const T* x, T top, [[maybe_unused]] T* y) noexcept {
#ifdef __FMA__
    constexpr N block = 512;
    constexpr N width = lanes<T>;
    double total = 0;
    for (N begin = 0; begin < n; begin += block) {
        const N end = n - begin < block ? n : begin + block;
        Vector<T> sums{};
        N i = begin;
        for (; i + width <= end; i += width) {
            const Vector<T> e = exp_below(load(x + i) - splat(top));
            if constexpr (Put) store(y + i, e);
            sums += e;
        }
        T each[width];
        store(each, sums);
        if (i < end) {
            T rest[width];
            store(rest, exp_below(load_first(x + i, end - i) - splat(top)));
            for (N k = 0; k < end - i; ++k) {
                if constexpr (Put) y[i + k] = rest[k];
                each[k] += rest[k];
            }
        }
        for (const T one : each) total += static_cast<double>(one);
    }
    return total;
#else
    return sum_of<T>(n, [=](N i) {
        const T e = exp_below(x[i] - top);
        if constexpr (Put) y[i] = e;
        return e;
    });
#endif
}

template <class T>
double sum_exp(N n, const T* x, T top) {
    return exp_sum<false, T>(n, x, top, nullptr);
}

/// A row without a number above -inf is `flat` throughout, but for NaN.
template <class T>
bool fill_if_dead(N n, const T* x, T top, T flat, T* y) noexcept {
    if (top != -infinity<T>) return false;
    fill(n, has_nan(n, x) ? std::numeric_limits<T>::quiet_NaN() : flat, y);
    return true;
}

/// Rows shorter than this don't fill vectors: their exponentials are taken together.
constexpr N short_row = 16;

template <class T>
void softmax_of_short_rows(N rows, N n, const T* x, T* y) {
    constexpr N together = 256;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for (N left = rows; left > 0;) {
        const N count = left < together / n ? left : together / n;
        for (N r = 0; r < count; ++r) {
            const T* const row = x + r * n;
            T top = -infinity<T>;
            bool numbers = true;
            for (N i = 0; i < n; ++i) {
                top = row[i] > top ? row[i] : top;
                numbers = numbers && row[i] == row[i];
            }
            // A row of -inf alone stays as it is, and its exponentials are 0.
            const T shift = !numbers ? nan : top == -infinity<T> ? T{0} : top;
            for (N i = 0; i < n; ++i) y[r * n + i] = row[i] - shift;
        }
        const N all = count * n;
        each_vector(all, y, y, [](auto v) { return fast_exp(v); });
        for (N r = 0; r < count; ++r) {
            T* const row = y + r * n;
            double total = 0;
            for (N i = 0; i < n; ++i) total += static_cast<double>(row[i]);
            const T share = total == 0 ? T{0} : static_cast<T>(1 / total);
            for (N i = 0; i < n; ++i) row[i] *= share;
        }
        left -= count;
        x += all;
        y += all;
    }
}

template <class T>
void softmax(N rows, N n, const T* x, T* y) {
    if (n < short_row) {
        if (n > 0) softmax_of_short_rows(rows, n, x, y);
        return;
    }
    for (N r = 0; r < rows; ++r, x += n, y += n) {
        const T top = largest_number(n, x);
        if (fill_if_dead(n, x, top, T{0}, y)) continue;
        const double total = exp_sum<true>(n, x, top, y);
        const T share = static_cast<T>(1 / total);
        for (N i = 0; i < n; ++i) y[i] *= share;
    }
}

template <class T>
void log_softmax(N rows, N n, const T* x, T* y) {
    for (N r = 0; r < rows; ++r, x += n, y += n) {
        const T top = largest_number(n, x);
        if (fill_if_dead(n, x, top, top, y)) continue;
        const T shift = static_cast<T>(std::log(sum_exp(n, x, top)));
#pragma omp simd
        for (N i = 0; i < n; ++i) y[i] = x[i] - top - shift;
    }
}

/// p g, but not 0 times g: what a mask hides may be infinite or NaN.
template <class V>
GLASSGRAD_INLINE V pulled(V p, V g) noexcept {
    return p == V{} ? V{} : p * g;
}

/// A row of softmax_vjp whose sum or differences leave T.
template <class T>
[[gnu::noinline]] void softmax_vjp_wide(N n, const T* y, const T* gy, T* gx) noexcept {
    using W = Wide<T>;
    W dot = 0;
    for (N i = 0; i < n; ++i) dot += pulled(static_cast<W>(y[i]), static_cast<W>(gy[i]));
    for (N i = 0; i < n; ++i) {
        gx[i] = static_cast<T>(pulled(static_cast<W>(y[i]), static_cast<W>(gy[i]) - dot));
    }
}

/// The sum of `pulled` of a row: in T within a block, in f64 from block to block.
template <class T>
GLASSGRAD_INLINE double sum_of_pulled(N n, const T* y, const T* gy) noexcept {
    constexpr N block = 512;
    constexpr int chains = 4;
    double total = 0;
    for (N begin = 0; begin < n; begin += block) {
        Vector<T> sums[chains] = {};
        by_vectors<T, chains>(begin, n - begin < block ? n : begin + block,
                              [&](N i, auto places, auto chain) {
                                  sums[chain] += pulled(get(y + i, places), get(gy + i, places));
                              });
        total += static_cast<double>(sum_of_lanes((sums[0] + sums[1]) + (sums[2] + sums[3])));
    }
    return total;
}

template <class T>
void softmax_vjp(N rows, N n, const T* y, const T* gy, T* gx) {
    for (N r = 0; r < rows; ++r, y += n, gy += n, gx += n) {
        const T dot = static_cast<T>(sum_of_pulled(n, y, gy));
        if (!(std::abs(dot) < lost_beside_most<T>)) {
            softmax_vjp_wide(n, y, gy, gx);
            continue;
        }
        by_vectors<T, 1>(0, n, [&](N i, auto places, auto) {
            put(gx + i, pulled(get(y + i, places), get(gy + i, places) - splat(dot)), places);
        });
    }
}

/// A row of log_softmax_vjp whose sum or differences leave T.
template <class T>
[[gnu::noinline]] void log_softmax_vjp_wide(N n, const T* y, const T* gy, T* gx) noexcept {
    using W = Wide<T>;
    W total = 0;
    for (N i = 0; i < n; ++i) total += static_cast<W>(gy[i]);
    for (N i = 0; i < n; ++i) {
        gx[i] = static_cast<T>(static_cast<W>(gy[i]) - static_cast<W>(fast_exp(y[i])) * total);
    }
}

template <class T>
void log_softmax_vjp(N rows, N n, const T* y, const T* gy, T* gx) {
    for (N r = 0; r < rows; ++r, y += n, gy += n, gx += n) {
        if (largest_number(n, y) == -infinity<T> && !has_nan(n, y)) {
            fill(n, T{0}, gx);
            continue;
        }
        const T total = static_cast<T>(sum_of<T>(n, [=](N i) { return gy[i]; }));
        if (!(std::abs(total) < lost_beside_most<T>)) {
            log_softmax_vjp_wide(n, y, gy, gx);
            continue;
        }
#pragma omp simd
        for (N i = 0; i < n; ++i) gx[i] = gy[i] - fast_exp(y[i]) * total;
    }
}

template <class T>
T top(N n, const T* x) {
    const T number = largest_number(n, x);
    return number == -infinity<T> && has_nan(n, x) ? std::numeric_limits<T>::quiet_NaN() : number;
}

template <class T>
T largest(N n, const T* x) {
    return has_nan(n, x) ? std::numeric_limits<T>::quiet_NaN() : largest_number(n, x);
}

template <class T>
T smallest(N n, const T* x) {
    return has_nan(n, x) ? std::numeric_limits<T>::quiet_NaN() : smallest_number(n, x);
}

template <class T>
N find(N n, const T* x, T value) {
    constexpr N block = 256;
    const bool nan = value != value;
    for (N begin = 0; begin < n; begin += block) {
        const N end = n - begin < block ? n : begin + block;
        int found = 0;
#pragma omp simd reduction(| : found)
        for (N i = begin; i < end; ++i) {
            found |= (x[i] == value ? 1 : 0) | (nan && x[i] != x[i] ? 1 : 0);
        }
        if (found == 0) continue;
        for (N i = begin; i < end; ++i) {
            if (x[i] == value || (nan && x[i] != x[i])) return i;
        }
    }
    return n;
}

template <class T>
double put_exp(N n, const T* x, T top, T* y) {
    return exp_sum<true>(n, x, top, y);
}

template <class T>
void line(N n, T factor, T constant, T* y) {
#pragma omp simd
    for (N i = 0; i < n; ++i) y[i] = mul_add(y[i], factor, constant);
}

template <class T>
void add(Rows<T>& rows) {
    rows.softmax = softmax<T>;
    rows.log_softmax = log_softmax<T>;
    rows.softmax_vjp = softmax_vjp<T>;
    rows.log_softmax_vjp = log_softmax_vjp<T>;
    rows.largest = largest<T>;
    rows.smallest = smallest<T>;
    rows.find = find<T>;
    rows.top = top<T>;
    rows.sum_exp = sum_exp<T>;
    rows.put_exp = put_exp<T>;
    rows.line = line<T>;
}

}  // namespace

void add_softmax(KernelTable& table) {
    add(table.of_float.row);
    add(table.of_double.row);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
