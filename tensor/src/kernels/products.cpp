// Matrix products from packed panels, as Goto and van de Geijn 2008, "Anatomy of high-performance
// matrix multiplication": a block of sums stays in registers while the inner axis runs. The sum of
// an element runs over that axis in order, wherever the element lies.

#include "vectors.hpp"

#include <algorithm>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

/// Elements [p, p + lanes) of lines `first` to `first + count` of a panel of W: turned in
/// registers. Lines from `lines` on are 0. A vector that is wider than the panel runs into what is
/// written next, so the last is stored short if `end`.
template <int W, int First, int Count, class T>
inline void pack_square(std::int64_t lines, const T* x, std::int64_t line_step, T* out, bool end) {
    Vector<T> square[lanes<T>] = {};
    each<Count>([&](auto i) {
        if (First + i >= lines) return;
        const T* line = x + (First + i) * line_step;
        __builtin_prefetch(line + W * line_step);
        square[i] = load(line);
    });
    turn_square<T>(square);
    each<lanes<T>>([&](auto q) {
        if (Count < lanes<T> && q == lanes<T> - 1 && end) {
            T last[lanes<T>];
            store(last, square[q]);
            for (int i = 0; i < Count; ++i) out[q * W + First + i] = last[i];
        } else {
            store(out + q * W + First, square[q]);
        }
    });
}

/// Up to W lines as a panel: out[p W + i] = x[i line_step + p step], 0 for lines that aren't there.
template <int W, class T>
void pack_panel(std::int64_t lines, std::int64_t k, const T* x, std::int64_t line_step,
                std::int64_t step, T* out) {
    std::int64_t p = 0;
    if (step == 1) {
        constexpr int whole = W / lanes<T>;
        for (; p + lanes<T> <= k; p += lanes<T>) {
            const bool end = p + lanes<T> == k;
            if constexpr (whole == 0) {
                pack_square<W, 0, W>(lines, x + p, line_step, out + p * W, end);
            }
            each<whole>([&](auto i) {
                pack_square<W, i * lanes<T>, lanes<T>>(lines, x + p, line_step, out + p * W, end);
            });
            if constexpr (whole > 0 && W % lanes<T> != 0) {
                for (int i = whole * lanes<T>; i < W; ++i) {
                    for (int q = 0; q < lanes<T>; ++q) {
                        out[(p + q) * W + i] = i < lines ? x[i * line_step + p + q] : T{0};
                    }
                }
            }
        }
    }
    for (; p < k; ++p) {
        for (std::int64_t i = 0; i < lines; ++i) out[p * W + i] = x[i * line_step + p * step];
        for (std::int64_t i = lines; i < W; ++i) out[p * W + i] = 0;
    }
}

/// The same for lines that lie beside each other. Panels take a few elements of the inner axis in
/// turn, so that what is read lies on few pages.
template <int W, class T>
void pack_beside(std::int64_t lines, std::int64_t k, const T* x, std::int64_t step, T* out) {
    constexpr std::int64_t elements_at_once = 16;
    constexpr int vectors = (W + lanes<T> - 1) / lanes<T>;
    for (std::int64_t p = 0; p < k; p += elements_at_once) {
        const std::int64_t end = std::min(k, p + elements_at_once);
        for (std::int64_t i = 0; i < lines; i += W) {
            const T* from = x + p * step + i;
            T* to = out + i * k + p * W;
            std::int64_t q = p;
            // A vector may run into what is written next.
            if (i + vectors * lanes<T> <= lines) {
                const std::int64_t covered = W % lanes<T> == 0 ? end : std::min(end, k - 1);
                for (; q < covered; ++q, from += step, to += W) {
                    each<vectors>(
                        [&](auto v) { store(to + v * lanes<T>, load(from + v * lanes<T>)); });
                }
            }
            const std::int64_t there = std::min<std::int64_t>(W, lines - i);
            for (; q < end; ++q, from += step, to += W) {
                std::copy_n(from, there, to);
                std::fill(to + there, to + W, T{0});
            }
        }
    }
}

template <int W, class T>
void pack(std::int64_t lines, std::int64_t k, const T* x, std::int64_t line_step, std::int64_t step,
          T* out) {
    if (line_step == 1) {
        pack_beside<W>(lines, k, x, step, out);
        return;
    }
    for (std::int64_t i = 0; i < lines; i += W, out += W * k) {
        pack_panel<W>(std::min<std::int64_t>(W, lines - i), k, x + i * line_step, line_step, step,
                      out);
    }
}

template <class T>
void unpack(std::int64_t lines, std::int64_t k, const T* x, T* out, std::int64_t line_step) {
    constexpr int width = panel_columns<T>;
    std::int64_t i = 0;
    for (; i + 4 <= lines; i += 4) {
        std::int64_t p = 0;
        for (; p + 4 <= k; p += 4)
            // NOLINTNEXTLINE(readability-suspicious-call-argument): a panel's step is its width
            turn(x + p * width + i, width, out + i * line_step + p, line_step);
        for (; p < k; ++p) {
            for (int q = 0; q < 4; ++q) out[(i + q) * line_step + p] = x[p * width + i + q];
        }
    }
    for (; i < lines; ++i) {
        for (std::int64_t p = 0; p < k; ++p) out[i * line_step + p] = x[p * width + i];
    }
}

/// A block of R rows and `columns` columns of c. Rows of a lie beside each other, or elements of a
/// row do.
template <int R, bool Beside, class T>
void block(std::int64_t k, const Lattice<T>& a, const T* b, std::int64_t b_step, const Panels<T>& c,
           T* out, std::int64_t columns, const T* bias) {
    constexpr int width = panel_columns<T>;
    constexpr int reach_apart = 3;  // rows that an address reaches
    constexpr int reach = Beside ? R : reach_apart;
    constexpr int starts = (R + reach - 1) / reach;
    const T* rows[starts];
    each<starts>([&](auto i) { rows[i] = a.data + reach * i * a.row; });
    const std::int64_t apart = Beside ? 1 : a.row;
    const std::int64_t step = Beside ? a.step : 1;
    Vector<T> sums[R][2] = {};
    for (std::int64_t p = 0; p < k; ++p, b += b_step) {
        const Vector<T> low = load(b);
        const Vector<T> high = load(b + lanes<T>);
        each<R>([&](auto r) {
            const Vector<T> x = splat(rows[r / reach][r % reach * apart]);
            sums[r][0] = fused(x, low, sums[r][0]);
            sums[r][1] = fused(x, high, sums[r][1]);
        });
        each<starts>([&](auto i) { rows[i] += step; });
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
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const Lattice<T>& a,
              std::int64_t a_panel, const T* b, std::int64_t b_panel, std::int64_t b_step,
              const Panels<T>& c) {
    using Block = void (*)(std::int64_t, const Lattice<T>&, const T*, std::int64_t,
                           const Panels<T>&, T*, std::int64_t, const T*);
    constexpr int width = panel_columns<T>;
    const bool beside = a.row == 1;
    Block blocks[panel_rows];
    each<panel_rows>(
        [&](auto r) { blocks[r] = beside ? block<r + 1, true, T> : block<r + 1, false, T>; });
    for (std::int64_t j = 0; j < n; j += width, b += b_panel) {
        const std::int64_t columns = std::min<std::int64_t>(width, n - j);
        const T* bias = c.bias ? c.bias + j : nullptr;
        Lattice<T> rows = a;
        for (std::int64_t i = 0; i < m; i += panel_rows, rows.data += a_panel) {
            const std::int64_t count = std::min<std::int64_t>(panel_rows, m - i);
            blocks[count - 1](k, rows, b, b_step, c, c.data + i * c.stride + j, columns, bias);
        }
    }
}

/// What becomes of sums of one row: `count` of them are written.
template <class T>
inline void put(Vector<T> sums, std::int64_t count, T* out, bool add, const T* bias) {
    if (count == lanes<T>) {
        if (add) sums = load(out) + sums;
        if (bias) sums = sums + load(bias);
        store(out, sums);
        return;
    }
    T row[lanes<T>];
    store(row, sums);
    for (std::int64_t j = 0; j < count; ++j) {
        if (add) row[j] = out[j] + row[j];
        out[j] = bias ? row[j] + bias[j] : row[j];
    }
}

constexpr int rows_at_once = 4;

/// R rows of a times `count` columns of b, each of them k numbers side by side: squares of b are
/// turned in registers, so that columns lie beside each other while the inner axis runs.
template <int R, class T>
void few_by_columns(std::int64_t count, std::int64_t k, const T* a, std::int64_t a_step, const T* b,
                    std::int64_t column_step, const Panels<T>& c, T* out, const T* bias) {
    const T* columns[lanes<T>];
    for (int i = 0; i < lanes<T>; ++i) {
        columns[i] = b + std::min<std::int64_t>(i, count - 1) * column_step;
    }
    Vector<T> sums[R] = {};
    std::int64_t p = 0;
    for (; p + lanes<T> <= k; p += lanes<T>) {
        Vector<T> square[lanes<T>];
        each<lanes<T>>([&](auto i) {
            __builtin_prefetch(columns[i] + p + lanes<T> * column_step);
            square[i] = load(columns[i] + p);
        });
        turn_square<T>(square);
        each<lanes<T>>([&](auto q) {
            each<R>(
                [&](auto r) { sums[r] = fused(splat(a[r * a_step + p + q]), square[q], sums[r]); });
        });
    }
    for (; p < k; ++p) {
        T line[lanes<T>];
        for (int i = 0; i < lanes<T>; ++i) line[i] = columns[i][p];
        each<R>([&](auto r) { sums[r] = fused(splat(a[r * a_step + p]), load(line), sums[r]); });
    }
    each<R>([&](auto r) { put(sums[r], count, out + r * c.stride, c.add, bias); });
}

constexpr int columns_at_once = 512;

/// R rows of a times `count` columns of b, whose rows are numbers side by side.
template <int R, class T>
void few_by_rows(std::int64_t count, std::int64_t k, const T* a, std::int64_t a_step, const T* b,
                 std::int64_t step, const Panels<T>& c, T* out, const T* bias) {
    T sums[R][columns_at_once];
    each<R>([&](auto r) { std::fill_n(sums[r], columns_at_once, T{0}); });
    const auto take = [&](auto depth, std::int64_t p) {
        std::int64_t j = 0;
        for (; j + lanes<T> <= count; j += lanes<T>) {
            Vector<T> rows[depth];
            each<depth>([&](auto q) {
                __builtin_prefetch(b + (p + q + depth) * step + j);
                rows[q] = load(b + (p + q) * step + j);
            });
            each<R>([&](auto r) {
                Vector<T> sum = load(sums[r] + j);
                each<depth>(
                    [&](auto q) { sum = fused(splat(a[r * a_step + p + q]), rows[q], sum); });
                store(sums[r] + j, sum);
            });
        }
        for (; j < count; ++j) {
            each<R>([&](auto r) {
                each<depth>([&](auto q) {
                    sums[r][j] = mul_add(a[r * a_step + p + q], b[(p + q) * step + j], sums[r][j]);
                });
            });
        }
    };
    std::int64_t p = 0;
    for (; p + 8 <= k; p += 8) take(std::integral_constant<int, 8>{}, p);
    for (; p < k; ++p) take(std::integral_constant<int, 1>{}, p);
    each<R>([&](auto r) {
        for (std::int64_t j = 0; j < count; j += lanes<T>) {
            put(load(sums[r] + j), std::min<std::int64_t>(lanes<T>, count - j),
                out + r * c.stride + j, c.add, bias ? bias + j : nullptr);
        }
    });
}

template <class T>
void multiply_few(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_step,
                  const T* b, std::int64_t column_step, std::int64_t step, const Panels<T>& c) {
    using Few = void (*)(std::int64_t, std::int64_t, const T*, std::int64_t, const T*, std::int64_t,
                         const Panels<T>&, T*, const T*);
    const bool by_rows = column_step == 1;
    Few few[rows_at_once];
    each<rows_at_once>(
        [&](auto r) { few[r] = by_rows ? few_by_rows<r + 1, T> : few_by_columns<r + 1, T>; });
    const std::int64_t columns = by_rows ? columns_at_once : lanes<T>;
    for (std::int64_t j = 0; j < n; j += columns) {
        for (std::int64_t i = 0; i < m; i += rows_at_once) {
            few[std::min<std::int64_t>(rows_at_once, m - i) - 1](
                std::min(columns, n - j), k, a + i * a_step, a_step, b + j * column_step,
                by_rows ? step : column_step, c, c.data + i * c.stride + j,
                c.bias ? c.bias + j : nullptr);
        }
    }
}

template <class T>
void add(ProductKernels<T>& products) {
#ifdef __FMA__
    constexpr bool beats_blas = true;
#else
    constexpr bool beats_blas = false;
#endif
    products = {
        beats_blas, panel_rows,  panel_columns<T>, pack<panel_rows, T>, pack<panel_columns<T>, T>,
        unpack<T>,  multiply<T>, multiply_few<T>};
}

}  // namespace

void add_products(KernelTable& table) {
    add(table.of_float.products);
    add(table.of_double.products);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
