// The only file that calls the BLAS, through xtensor-blas's overloads of gemm. Its header and
// <cblas.h> cannot meet in one file, and HAVE_CBLAS must be set or it computes with loops of its
// own in silence.

#include "blas.hpp"

#include "fail.hpp"

#ifndef HAVE_CBLAS
#error "HAVE_CBLAS=1 must be defined for tensor/, or xtensor-blas skips the BLAS"
#endif
#include <glassgrad/tensor/detail/xtensor_shim.hpp>

#include <xtensor-blas/xblas.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// Looked up weakly: other libraries than OpenBLAS lack them.
extern "C" {
[[gnu::weak]] void openblas_set_num_threads(int);
[[gnu::weak]] int openblas_get_parallel();
[[gnu::weak]] char* openblas_get_config();
[[gnu::weak]] char* openblas_get_corename();
}

namespace glassgrad::detail {
namespace {

template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t, T>;

/// Rows of c, N wide from column 0 on, with the sums of a row in registers. Each sum runs over k in
/// order, whatever N is.
template <int N, class T>
void panel(std::int64_t m, std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col,
           const T* b, std::int64_t b_row, T* c, std::int64_t c_row) {
    using A = Arithmetic<T>;
    for (std::int64_t i = 0; i < m; ++i, a += a_row, c += c_row) {
        A sums[N] = {};
        for (std::int64_t p = 0; p < k; ++p) {
            const A x = static_cast<A>(a[p * a_col]);
            for (int j = 0; j < N; ++j) sums[j] += x * static_cast<A>(b[p * b_row + j]);
        }
        for (int j = 0; j < N; ++j) c[j] = static_cast<T>(sums[j]);
    }
}

/// Plain loops over op(b) row by row, in panels of up to eight columns.
template <class T>
void panels(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a, const T* b,
            std::int64_t b_row, T* c, std::int64_t c_row) {
    const std::int64_t a_row = a.transposed ? 1 : a.stride;
    const std::int64_t a_col = a.transposed ? a.stride : 1;
    for (std::int64_t j = 0; j < n; j += 8) {
        const auto run = [&](auto width) {
            panel<width()>(m, k, a.data, a_row, a_col, b + j, b_row, c + j, c_row);
        };
        switch (std::min<std::int64_t>(8, n - j)) {
            case 1: run(std::integral_constant<int, 1>{}); break;
            case 2: run(std::integral_constant<int, 2>{}); break;
            case 3: run(std::integral_constant<int, 3>{}); break;
            case 4: run(std::integral_constant<int, 4>{}); break;
            case 5: run(std::integral_constant<int, 5>{}); break;
            case 6: run(std::integral_constant<int, 6>{}); break;
            case 7: run(std::integral_constant<int, 7>{}); break;
            default: run(std::integral_constant<int, 8>{}); break;
        }
    }
}

}  // namespace

template <class T>
void multiply_in_loops(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                       const Operand<T>& b, T* c, std::int64_t c_stride) {
    if (!b.transposed) {
        panels(m, n, k, a, b.data, b.stride, c, c_stride);
        return;
    }
    // b is read down its columns: turned on the stack first, or a column at a time.
    constexpr std::int64_t room = 1024;
    if (n > room / k) {
        const std::int64_t a_row = a.transposed ? 1 : a.stride;
        const std::int64_t a_col = a.transposed ? a.stride : 1;
        for (std::int64_t j = 0; j < n; ++j) {
            panel<1>(m, k, a.data, a_row, a_col, b.data + j * b.stride, 1, c + j, c_stride);
        }
        return;
    }
    T turned[room];
    for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t p = 0; p < k; ++p) turned[p * n + j] = b.data[j * b.stride + p];
    }
    panels(m, n, k, a, turned, n, c, c_stride);
}

namespace {

template <class T>
void call_blas(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
               const Operand<T>& b, const Target<T>& c) {
    using Index = xt::blas_index_t;
    const std::int64_t largest = std::max({m, n, k, a.stride, b.stride, c.stride});
    if (largest > std::numeric_limits<Index>::max()) {
        fail<ShapeError>("matmul: size {} is beyond what the BLAS can index", largest);
    }
    const auto op = [](bool transposed) { return transposed ? cxxblas::Trans : cxxblas::NoTrans; };
    cxxblas::gemm<Index>(cxxblas::RowMajor, op(a.transposed), op(b.transposed),
                         static_cast<Index>(m), static_cast<Index>(n), static_cast<Index>(k), T{1},
                         a.data, static_cast<Index>(std::max<std::int64_t>(1, a.stride)), b.data,
                         static_cast<Index>(std::max<std::int64_t>(1, b.stride)), T(c.add ? 1 : 0),
                         c.data, static_cast<Index>(std::max<std::int64_t>(1, c.stride)));
}

/// Small whole numbers, whose products are exact in any order of summation.
template <class T>
bool agrees_with_loops(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
    const auto fill = [](std::int64_t count, std::int64_t seed) {
        std::vector<T> values(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i) {
            values[static_cast<std::size_t>(i)] = static_cast<T>((i * 7 + seed) % 11 - 5);
        }
        return values;
    };
    const auto a = fill(m * k, 3);
    const auto b = fill(k * n, 8);
    std::vector<T> expected(static_cast<std::size_t>(m * n), T{-1});
    std::vector<T> got(expected);
    const Operand<T> oa{a.data(), ta ? m : k, ta};
    const Operand<T> ob{b.data(), tb ? k : n, tb};
    multiply_in_loops(m, n, k, oa, ob, expected.data(), n);
    call_blas<T>(m, n, k, oa, ob, {got.data(), n});
    return expected == got;
}

/// Puts an OpenBLAS with threads of its own on one, then multiplies a dozen shapes both ways.
bool check_blas() {
    // The OpenMP build takes its threads from the caller's region; setting it would limit ours.
    if (openblas_set_num_threads && openblas_get_parallel && openblas_get_parallel() == 1) {
        openblas_set_num_threads(1);
    }
    constexpr std::int64_t shapes[][3] = {{1, 17, 33}, {16, 16, 16}, {37, 41, 43}, {65, 3, 130}};
    for (const auto& [m, n, k] : shapes) {
        for (const bool ta : {false, true}) {
            for (const bool tb : {false, true}) {
                if (!agrees_with_loops<float>(m, n, k, ta, tb) ||
                    !agrees_with_loops<double>(m, n, k, ta, tb)) {
                    fail<Error>(
                        hint("set OPENBLAS_CORETYPE to a kernel that this processor runs, such as "
                             "Haswell, or install another BLAS"),
                        "matmul: the BLAS{}{} computes wrong products of ({}, {}) by ({}, {})",
                        openblas_get_config ? std::string(" ") + openblas_get_config() : "",
                        openblas_get_corename ? std::string(" ") + openblas_get_corename() : "", m,
                        k, k, n);
                }
            }
        }
    }
    return true;
}

}  // namespace

template <class T>
void multiply_by_blas(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                      const Operand<T>& b, const Target<T>& c) {
    static const bool checked = check_blas();
    (void)checked;
    call_blas(m, n, k, a, b, c);
}

// NOLINTBEGIN(bugprone-macro-parentheses): T is a type
#define GLASSGRAD_PRODUCTS(T)                                                                    \
    template void multiply_in_loops(std::int64_t, std::int64_t, std::int64_t, const Operand<T>&, \
                                    const Operand<T>&, T*, std::int64_t)
GLASSGRAD_PRODUCTS(float);
GLASSGRAD_PRODUCTS(double);
GLASSGRAD_PRODUCTS(std::int64_t);
#undef GLASSGRAD_PRODUCTS
// NOLINTEND(bugprone-macro-parentheses)
template void multiply_by_blas(std::int64_t, std::int64_t, std::int64_t, const Operand<float>&,
                               const Operand<float>&, const Target<float>&);
template void multiply_by_blas(std::int64_t, std::int64_t, std::int64_t, const Operand<double>&,
                               const Operand<double>&, const Target<double>&);

}  // namespace glassgrad::detail
