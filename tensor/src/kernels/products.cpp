// Matrix products from packed panels, as Goto and van de Geijn 2008, "Anatomy of high-performance
// matrix multiplication": a block of sums stays in registers while the inner axis runs. The sum of
// an element runs over that axis in order, wherever the element lies.

#include "vectors.hpp"

#include <algorithm>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

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
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t a_panel,
              const T* b, std::int64_t b_panel, std::int64_t b_step, const Panels<T>& c) {
    using Block = void (*)(std::int64_t, const T*, const T*, std::int64_t, const Panels<T>&, T*,
                           std::int64_t, const T*);
    constexpr int width = panel_columns<T>;
    Block blocks[panel_rows];
    each<panel_rows>([&](auto r) { blocks[r] = block<r + 1, T>; });
    for (std::int64_t j = 0; j < n; j += width, b += b_panel) {
        const std::int64_t columns = std::min<std::int64_t>(width, n - j);
        const T* bias = c.bias ? c.bias + j : nullptr;
        const T* rows = a;
        for (std::int64_t i = 0; i < m; i += panel_rows, rows += a_panel) {
            const std::int64_t count = std::min<std::int64_t>(panel_rows, m - i);
            blocks[count - 1](k, rows, b, b_step, c, c.data + i * c.stride + j, columns, bias);
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
        beats_blas, panel_rows, panel_columns<T>, pack<panel_rows, T>, pack<panel_columns<T>, T>,
        unpack<T>,  multiply<T>};
}

}  // namespace

void add_products(KernelTable& table) {
    add(table.of_float.products);
    add(table.of_double.products);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
