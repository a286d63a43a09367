#pragma once
// What matrix products are made of: operands packed as panels, the product of panels, and that of
// small matrices as they lie.

#include <cstdint>

namespace glassgrad::detail {

/// A row-major matrix, read as it lies or transposed; `stride` elements from row to row.
template <class T>
struct Operand {
    const T* data;
    std::int64_t stride;
    bool transposed;
};

/// A product that goes to rows `stride` apart, and is added to what is there if `add`.
template <class T>
struct Target {
    T* data;
    std::int64_t stride;
    bool add = false;
    const T* bias = nullptr;  ///< one for each column, added to the product
};

/// Where a product goes: rows `stride` apart, added to what is there if `add`; `bias`, one for each
/// column, is added after that, if it isn't null.
template <class T>
struct Panels {
    T* data;
    std::int64_t stride;
    bool add;
    const T* bias;
};

/// A matrix by where its elements are: (i, p) is data[i row + p step].
template <class T>
struct Lattice {
    const T* data;
    std::int64_t row;
    std::int64_t step;
};

/// Numbers of a transposed right operand that `multiply_small` turns on the stack.
inline constexpr std::int64_t small_room = 4096;

template <class T>
struct ProductKernels {
    bool beats_blas;             ///< else large products are better left to it
    std::int64_t panel_rows;     ///< rows of the left operand in a panel
    std::int64_t panel_columns;  ///< columns of the right one
    /// Packs `lines` rows or columns of `k` elements as panels, k elements of each line of a panel
    /// side by side: line i, element p is x[i line_step + p step]. The last panel is filled up with
    /// zeros.
    using Pack = void(std::int64_t lines, std::int64_t k, const T* x, std::int64_t line_step,
                      std::int64_t step, T* out);
    Pack* pack_rows;
    Pack* pack_columns;
    /// A panel of rows, as packed.
    Lattice<T> packed_rows(const T* packed) const noexcept { return {packed, 1, panel_rows}; }
    /// Writes lines of one panel of columns: out[i line_step + p] is element p of line i.
    void (*unpack_columns)(std::int64_t lines, std::int64_t k, const T* x, T* out,
                           std::int64_t line_step);
    /// c (m, n) = a (m, k), panels of rows `a_panel` apart, times b (k, n): panels of columns
    /// `b_panel` apart, their rows `b_step`. Either is packed or as it lies; a row or a step of a
    /// is
    /// 1. Each element is a sum over k in order, whatever m and n are.
    void (*multiply)(std::int64_t m, std::int64_t n, std::int64_t k, const Lattice<T>& a,
                     std::int64_t a_panel, const T* b, std::int64_t b_panel, std::int64_t b_step,
                     const Panels<T>& c);
    /// The same for a few rows of a, `a_step` apart, with the columns of b as they lie: column j,
    /// element p is b[j column_step + p step], and one of the two steps is 1. Each element is the
    /// sum that `multiply` gives.
    void (*multiply_few)(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                         std::int64_t a_step, const T* b, std::int64_t column_step,
                         std::int64_t step, const Panels<T>& c);
    /// c (m, n) = op(a) (m, k) times op(b) (k, n), the same sums, of operands as they lie; a b that
    /// is transposed has at most small_room numbers.
    void (*multiply_small)(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                           const Operand<T>& b, const Target<T>& c) = nullptr;
};

}  // namespace glassgrad::detail
