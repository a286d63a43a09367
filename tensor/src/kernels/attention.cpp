// Softmax in tiles, forward with a running maximum and sum, backward from what is kept of a row.

#include "each.hpp"
#include "fast_exp.hpp"

#include <array>
#include <limits>
#include <utility>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

/// The largest score of each column, and of those that `best` holds; scores are multiplied by
/// `factor`.
template <class T>
GLASSGRAD_INLINE void find_largest(std::int64_t keys, T factor, T* scores, T* best) {
    constexpr int width = panel_columns<T>;
    // Two chains each, so that one doesn't wait for the other.
    T other[width];
    for (int j = 0; j < width; ++j) other[j] = hidden<T>;
    std::int64_t p = 0;
    for (; p + 4 <= keys; p += 4) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            const T a = x[j] * factor;
            const T b = x[width + j] * factor;
            const T c = x[2 * width + j] * factor;
            const T d = x[3 * width + j] * factor;
            x[j] = a;
            x[width + j] = b;
            x[2 * width + j] = c;
            x[3 * width + j] = d;
            best[j] = a > best[j] ? a : best[j];
            other[j] = b > other[j] ? b : other[j];
            best[j] = c > best[j] ? c : best[j];
            other[j] = d > other[j] ? d : other[j];
        }
    }
    for (; p < keys; ++p) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            x[j] *= factor;
            best[j] = x[j] > best[j] ? x[j] : best[j];
        }
    }
    for (int j = 0; j < width; ++j) best[j] = other[j] > best[j] ? other[j] : best[j];
}

/// exp(score - best), and the sum of each column.
template <class T>
GLASSGRAD_INLINE void exponentiate(std::int64_t keys, const T* best, T* scores, T* sums) {
    constexpr int width = panel_columns<T>;
    T origin[width];
    for (int j = 0; j < width; ++j) {
        // All that is not NaN is hidden when the largest is -inf: exp(-inf - 0) is 0.
        origin[j] = best[j] == hidden<T> ? T{0} : best[j];
        sums[j] = 0;
    }
#ifdef __FMA__
    Vector<T> from[2];
    Vector<T> totals[2] = {};
    each<2>([&](auto half) { from[half] = load(origin + half * lanes<T>); });
    for (std::int64_t p = 0; p < keys; ++p, scores += width) {
        each<2>([&](auto half) {
            T* const x = scores + half * lanes<T>;
            const Vector<T> e = exp_below(load(x) - from[half]);
            store(x, e);
            totals[half] += e;
        });
    }
    each<2>([&](auto half) { store(sums + half * lanes<T>, totals[half]); });
#else
    for (std::int64_t p = 0; p < keys; ++p, scores += width) {
        for (int j = 0; j < width; ++j) {
            scores[j] = exp_below(scores[j] - origin[j]);
            sums[j] += scores[j];
        }
    }
#endif
}

template <class T>
bool weigh(std::int64_t keys, T factor, T* scores, T* top, double* total, T* by) {
    constexpr int width = panel_columns<T>;
    T best[width];
    T sums[width];
    for (int j = 0; j < width; ++j) best[j] = top[j];
    find_largest(keys, factor, scores, best);
    exponentiate(keys, best, scores, sums);
    bool changed = false;
    for (int j = 0; j < width; ++j) {
        // A sum that is NaN stays so, whatever the largest was.
        const T change =
            best[j] == top[j] || total[j] != total[j] ? T{1} : fast_exp(top[j] - best[j]);
        by[j] = change;
        top[j] = best[j];
        total[j] = (change == 0 ? 0.0 : total[j] * static_cast<double>(change)) +
                   static_cast<double>(sums[j]);
        changed |= change != 1;
    }
    return changed;
}

template <class T>
bool share(std::int64_t keys, T factor, T* scores, T* top, T* total) {
    constexpr int width = panel_columns<T>;
    T best[width];
    T sums[width];
    for (int j = 0; j < width; ++j) best[j] = hidden<T>;
    find_largest(keys, factor, scores, best);
    exponentiate(keys, best, scores, sums);
    T by[width];
    bool numbers = true;
    for (int j = 0; j < width; ++j) {
        top[j] = best[j];
        total[j] = sums[j];
        by[j] = T{1} / sums[j];
        numbers &= sums[j] == sums[j];
    }
    for (std::int64_t p = 0; p < keys; ++p, scores += width) {
        for (int j = 0; j < width; ++j) {
            const T weight = scores[j] * by[j];
            scores[j] = scores[j] == 0 ? T{0} : weight;
        }
    }
    return numbers;
}

template <class T>
void rescale(std::int64_t rows, const T* by, T* x) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t r = 0; r < rows; ++r, x += width) {
        for (int j = 0; j < width; ++j) {
            const T scaled = x[j] * by[j];
            x[j] = by[j] == 0 ? T{0} : scaled;
        }
    }
}

template <class T>
void weigh_again(std::int64_t queries, T factor, const T* top, const T* inverse, T* scores) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t i = 0; i < queries; ++i, scores += width) {
        const T origin = top[i];
        const T scale = inverse[i];
        each_vector(width, scores, scores, [=](auto v) {
            using V = decltype(v);
            const V score = v * all<V>(factor);
            const V weight = fast_exp(score - all<V>(origin)) * all<V>(scale);
            return score == all<V>(hidden<T>) ? all<V>(0) : weight;
        });
    }
}

template <class T>
void pull(std::int64_t queries, T factor, const T* dot, const T* weights, T* gradients) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t i = 0; i < queries; ++i, weights += width, gradients += width) {
        const T own = dot[i];
        for (int j = 0; j < width; ++j) {
            const T pulled = weights[j] * (gradients[j] - own) * factor;
            gradients[j] = weights[j] == 0 ? T{0} : pulled;
        }
    }
}

template <class T>
void pull_down(std::int64_t keys, T factor, const T* weights, T* gradients) {
    constexpr int width = panel_columns<T>;
    T dots[width];
    T others[width];
    for (int j = 0; j < width; ++j) dots[j] = others[j] = 0;
    std::int64_t p = 0;
    for (; p + 2 <= keys; p += 2) {
        const T* w = weights + p * width;
        T* g = gradients + p * width;
        for (int j = 0; j < width; ++j) {
            g[j] = w[j] == 0 ? T{0} : g[j];
            g[width + j] = w[width + j] == 0 ? T{0} : g[width + j];
            dots[j] = mul_add(w[j], g[j], dots[j]);
            others[j] = mul_add(w[width + j], g[width + j], others[j]);
        }
    }
    for (; p < keys; ++p) {
        const T* w = weights + p * width;
        T* g = gradients + p * width;
        for (int j = 0; j < width; ++j) {
            g[j] = w[j] == 0 ? T{0} : g[j];
            dots[j] = mul_add(w[j], g[j], dots[j]);
        }
    }
    for (int j = 0; j < width; ++j) dots[j] += others[j];
    for (p = 0; p < keys; ++p, weights += width, gradients += width) {
        for (int j = 0; j < width; ++j) {
            const T pulled = weights[j] * (gradients[j] - dots[j]) * factor;
            gradients[j] = weights[j] == 0 ? T{0} : pulled;
        }
    }
}

template <class T>
void hide(std::int64_t keys, std::int64_t from, std::int64_t to, T* scores) {
    constexpr int width = panel_columns<T>;
    T at[width];
    for (int j = 0; j < width; ++j) at[j] = static_cast<T>(j);
    for (std::int64_t p = 0; p < keys; ++p, scores += width) {
        const T low = static_cast<T>(from + p);
        const T high = static_cast<T>(to + p);
        for (int j = 0; j < width; ++j) {
            const T score = at[j] < low ? hidden<T> : scores[j];
            scores[j] = at[j] < high ? score : hidden<T>;
        }
    }
}

/// R rows and V vectors of columns of c.
template <int R, int V, class T>
void block(std::int64_t k, const Lattice<T>& a, const T* b, std::int64_t b_row,
           const Panels<T>& c) {
    // An address reaches three rows.
    constexpr int starts = (R + 2) / 3;
    const T* rows[starts];
    each<starts>([&](auto i) { rows[i] = a.data + 3 * i * a.row; });
    const std::int64_t row = a.row;
    const std::int64_t step = a.step;
    Vector<T> sums[R][V] = {};
    for (std::int64_t p = 0; p < k; ++p, b += b_row) {
        Vector<T> line[V];
        each<V>([&](auto v) { line[v] = load(b + v * lanes<T>); });
        each<R>([&](auto r) {
            const Vector<T> x = splat(rows[r / 3][r % 3 * row]);
            each<V>([&](auto v) { sums[r][v] = fused(x, line[v], sums[r][v]); });
        });
        each<starts>([&](auto i) { rows[i] += step; });
    }
    T* out = c.data;
    const std::int64_t stride = c.stride;
    const bool add = c.add;
    each<R>([&](auto r) {
        each<V>([&](auto v) {
            T* const to = out + v * lanes<T>;
            store(to, add ? load(to) + sums[r][v] : sums[r][v]);
        });
        out += stride;
    });
}

template <class T>
using Block = void (*)(std::int64_t, const Lattice<T>&, const T*, std::int64_t, const Panels<T>&);
/// Those of 1 to panel_rows rows.
template <int V, class T, int... I>
constexpr std::array<Block<T>, panel_rows> blocks_of(std::integer_sequence<int, I...>) {
    return {block<I + 1, V, T>...};
}
template <int V, class T>
constexpr std::array<Block<T>, panel_rows> blocks =
    blocks_of<V, T>(std::make_integer_sequence<int, panel_rows>{});

template <class T>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Lattice<T>& a, const T* b,
              std::int64_t b_row, const Panels<T>& c) {
    for (std::int64_t j = 0; j < n; j += panel_columns<T>) {
        const Block<T>* const of_rows =
            n - j < panel_columns<T> ? blocks<1, T>.data() : blocks<2, T>.data();
        for (std::int64_t i = 0; i < m; i += panel_rows) {
            const std::int64_t count = m - i < panel_rows ? m - i : panel_rows;
            of_rows[count - 1](k, {a.data + i * a.row, a.row, a.step}, b + j, b_row,
                               {c.data + i * c.stride + j, c.stride, c.add, nullptr});
        }
    }
}

template <class T>
double dot(std::int64_t n, const T* x, const T* y) {
    constexpr int chains = 16;
    double sums[chains] = {};
    std::int64_t i = 0;
    for (; i + chains <= n; i += chains) {
        for (int j = 0; j < chains; ++j) {
            sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
        }
    }
    for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    double sum = 0;
    for (const double each : sums) sum += each;
    return sum;
}

/// 0 times a number is 0: a sum of such products is NaN once one factor is infinite or NaN.
template <class T>
bool finite(std::int64_t rows, std::int64_t n, const T* x, std::int64_t row) {
    constexpr int chains = 4;
    const Vector<T> zero = splat(T{0});
    Vector<T> sums[chains] = {};
    T rest = 0;
    std::int64_t r = 0;
    // Of narrow rows a few at once.
    for (; n == 2 * lanes<T> && r + 2 <= rows; r += 2, x += 2 * row) {
        each<chains>([&](auto c) {
            sums[c] = fused(load(x + c / 2 * row + c % 2 * lanes<T>), zero, sums[c]);
        });
    }
    for (; r < rows; ++r, x += row) {
        std::int64_t i = 0;
        for (; i + chains * lanes<T> <= n; i += chains * lanes<T>) {
            each<chains>(
                [&](auto c) { sums[c] = fused(load(x + i + c * lanes<T>), zero, sums[c]); });
        }
        if (i + 2 * lanes<T> <= n) {
            each<2>([&](auto c) { sums[c] = fused(load(x + i + c * lanes<T>), zero, sums[c]); });
            i += 2 * lanes<T>;
        }
        if (i + lanes<T> <= n) {
            sums[2] = fused(load(x + i), zero, sums[2]);
            i += lanes<T>;
        }
        for (; i < n; ++i) rest += x[i] * 0;
    }
    const Vector<T> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    for (int i = 0; i < lanes<T>; ++i) rest += sum[i];
    return rest == 0;
}

template <class T>
void add(AttentionKernels<T>& attention) {
    attention = {weigh<T>,     rescale<T>, weigh_again<T>, pull<T>, share<T>,
                 pull_down<T>, hide<T>,    multiply<T>,    dot<T>,  finite<T>};
}

}  // namespace

void add_attention(KernelTable& table) {
    add(table.of_float.attention);
    add(table.of_double.attention);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
