// Sums along rows and along columns, in f64, and a look whether they are to be had.

#include "sums.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

template <class T>
double sum(N n, const T* x) {
    return sum_of<double>(n, [=](N i) { return static_cast<double>(x[i]); });
}

/// Four rows at a time, one after the other for each column, so that sums are read and written
/// once for four; columns in pieces whose sums stay near.
template <class T>
void add_columns(N rows, N n, const T* x, double* sums) {
    constexpr N piece = 1024;
    for (N begin = 0; begin < n; begin += piece) {
        const N width = n - begin < piece ? n - begin : piece;
        double* const to = sums + begin;
        const T* row = x + begin;
        N r = 0;
        for (; r + 4 <= rows; r += 4, row += 4 * n) {
#pragma omp simd
            for (N i = 0; i < width; ++i) {
                const double two =
                    to[i] + static_cast<double>(row[i]) + static_cast<double>(row[n + i]);
                to[i] =
                    two + static_cast<double>(row[2 * n + i]) + static_cast<double>(row[3 * n + i]);
            }
        }
        for (; r < rows; ++r, row += n) {
#pragma omp simd
            for (N i = 0; i < width; ++i) to[i] += static_cast<double>(row[i]);
        }
    }
}

// One is added to each exponent: only that of a NaN or an infinity, which is all ones, carries into
// the sign.
template <class T>
bool all_finite(N n, const T* x) {
    using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
    constexpr Bits one = Bits{1} << (std::numeric_limits<T>::digits - 1);
    constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
    constexpr Bits exponent = sign - one;
    constexpr N block = 2048;
    for (N begin = 0; begin < n; begin += block) {
        const N end = n - begin < block ? n : begin + block;
        Bits carried = 0;
        for (N i = begin; i < end; ++i) carried |= (std::bit_cast<Bits>(x[i]) & exponent) + one;
        if (carried & sign) return false;
    }
    return true;
}

template <class T>
void add(Rows<T>& rows) {
    rows.all_finite = all_finite<T>;
    rows.sum = sum<T>;
    rows.add_columns = add_columns<T>;
}

}  // namespace

void add_sum_rows(KernelTable& table) {
    add(table.of_float.row);
    add(table.of_double.row);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
