#include "gemm.hpp"

#include "kernels/kernels.hpp"
#include "parallel.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <type_traits>

namespace glassgrad::detail {
namespace {

/// Up to this many multiplications packing costs more than it gains.
constexpr std::int64_t small = 65536;
/// So many are worth a task of their own.
constexpr std::int64_t task_work = std::int64_t{1} << 20;
/// Of the inner axis at once: as much as the second cache allows, since each part reads and writes
/// all sums once more.
constexpr std::int64_t most_depth = 768;
/// Lines of the operand that a task packs for itself, and rows of the other that it takes at once:
/// both stay in the second cache.
constexpr std::int64_t most_lines = 128;
constexpr std::int64_t most_rows = 120;
/// Bytes of the operand that is packed for all.
constexpr std::int64_t most_shared = std::int64_t{8} << 20;
/// Up to so many rows the right operand isn't packed.
constexpr std::int64_t few_rows = 8;
/// Bytes of an operand that is read as it lies although panels of it are on many pages: what is
/// read again and again stays in the second cache, that of tasks in the third.
constexpr std::int64_t most_lying_rows = std::int64_t{2} << 20;
constexpr std::int64_t most_lying_columns = std::int64_t{1} << 19;
/// Rows that are a multiple of this apart take each other's places in the first cache.
constexpr std::int64_t same_places = 4096;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
std::int64_t rounded_up(std::int64_t a, std::int64_t unit) { return quotient_up(a, unit) * unit; }

/// Of an inner axis of k at a time: equal parts, the last of them less.
std::int64_t depth_of(std::int64_t k) {
    return rounded_up(quotient_up(k, quotient_up(k, most_depth)), 4);
}

struct Size {
    std::int64_t m, n, k;
    std::int64_t work() const noexcept { return m * n * k; }
};

/// Lines of a task, in whole panels: `most` or as few as half of it, so that two threads that take
/// tasks in turn get nearly the same.
std::int64_t fair_share(std::int64_t count, std::int64_t panel, std::int64_t most) {
    const std::int64_t panels = quotient_up(count, panel);
    const std::int64_t first = quotient_up(most, panel);
    std::int64_t best = first;
    std::int64_t least = panels;
    for (std::int64_t each = first; 2 * each >= first; --each) {
        const std::int64_t pairs = panels / (2 * each);
        const std::int64_t larger = pairs * each + std::min(each, panels - pairs * 2 * each);
        if (larger < least) {
            least = larger;
            best = each;
        }
    }
    return best * panel;
}

/// Whether panels of rows are as fast where they lie as packed: twelve rows side by side are, and
/// columns that aren't far apart.
template <class T>
bool rows_lie(const Size& size, const Operand<T>& a) noexcept {
    const std::int64_t row = a.stride * std::int64_t{sizeof(T)};
    return row % same_places != 0 && (!a.transposed || size.k * row <= most_lying_rows);
}
/// The same of columns, which are read a panel at a time.
template <class T>
bool columns_lie(const Size& size, const Operand<T>& b, std::int64_t panel) noexcept {
    const std::int64_t row = b.stride * std::int64_t{sizeof(T)};
    return !b.transposed && size.n % panel == 0 && row % same_places != 0 &&
           size.k * row <= most_lying_columns;
}

/// One operand as lines along the inner axis.
template <class T>
struct Lines {
    const T* data;
    std::int64_t count;
    std::int64_t step;   ///< from line to line
    std::int64_t along;  ///< from element to element of a line
    std::int64_t per_panel;
    typename ProductKernels<T>::Pack* pack;
    bool lies;  ///< read where it is, not packed

    const T* at(std::int64_t line, std::int64_t p) const { return data + line * step + p * along; }
    void pack_into(T* out, std::int64_t first, std::int64_t lines, std::int64_t from,
                   std::int64_t depth) const {
        pack(lines, depth, at(first, from), step, along, out);
    }
};

/// A product of panels. One operand is packed whole, for all tasks, a part of the inner axis at a
/// time; each task packs its own lines of the other, so nothing is packed twice. An operand that is
/// as fast where it lies isn't packed.
template <class T>
class PackedProduct {
  public:
    PackedProduct(const Size& size, const Operand<T>& a, const Operand<T>& b, const Target<T>& c)
        : size_(size),
          kernels_(kernels<T>().products),
          rows_{a.data,
                size.m,
                a.transposed ? 1 : a.stride,
                a.transposed ? a.stride : 1,
                kernels_.panel_rows,
                kernels_.pack_rows,
                rows_lie(size, a)},
          columns_{b.data,
                   size.n,
                   b.transposed ? b.stride : 1,
                   b.transposed ? 1 : b.stride,
                   kernels_.panel_columns,
                   kernels_.pack_columns,
                   columns_lie(size, b, kernels_.panel_columns)},
          c_(c),
          depth_(depth_of(size.k)),
          by_rows_(size.m > size.n) {}

    void run() const {
        const Lines<T>& shared = by_rows_ ? columns_ : rows_;
        const Lines<T>& own = by_rows_ ? rows_ : columns_;
        const std::int64_t room = shared.lies ? 0 : rounded_up(shared.count, shared.per_panel);
        const std::int64_t fitting = std::max<std::int64_t>(
            1, most_shared / (std::max<std::int64_t>(1, room) * depth_ * std::int64_t{sizeof(T)}));
        const std::int64_t span = std::min(rounded_up(size_.k, depth_), fitting * depth_);
        const std::int64_t line_work = std::max<std::int64_t>(1, shared.count * size_.k);
        const std::int64_t lines = fair_share(
            own.count, own.per_panel,
            std::min(most_lines,
                     std::max(quotient_up(own.count, 16), quotient_up(task_work, line_work))));
        const Scratch<T> packed(room * span);
        for (std::int64_t from = 0; from < size_.k; from += span) {
            const std::int64_t to = std::min(size_.k, from + span);
            if (!shared.lies) pack_shared(shared, from, to, room, packed.get());
            for_chunks(own.count, lines, [&](std::int64_t begin, std::int64_t end) {
                const Scratch<T> mine(own.lies ? 0
                                               : rounded_up(end - begin, own.per_panel) * depth_);
                for (std::int64_t at = from; at < to; at += depth_) {
                    const std::int64_t depth = std::min(depth_, to - at);
                    if (!own.lies) own.pack_into(mine.get(), begin, end - begin, at, depth);
                    const T* others = packed.get() + (at - from) * room;
                    if (by_rows_) {
                        multiply(begin, end, 0, size_.n, at, depth, mine.get(), others);
                    } else {
                        multiply(0, size_.m, begin, end, at, depth, others, mine.get());
                    }
                }
            });
        }
    }

  private:
    /// Elements [from, to) of all lines, one depth after the other.
    void pack_shared(const Lines<T>& shared, std::int64_t from, std::int64_t to, std::int64_t room,
                     T* out) const {
        const std::int64_t chunk =
            rounded_up(std::max<std::int64_t>(1, parallel_threshold / depth_), shared.per_panel);
        for (std::int64_t at = from; at < to; at += depth_, out += room * depth_) {
            const std::int64_t depth = std::min(depth_, to - at);
            for_chunks(shared.count, chunk, [&](std::int64_t begin, std::int64_t end) {
                shared.pack_into(out + begin * depth, begin, end - begin, at, depth);
            });
        }
    }
    /// What rows [top, bottom) and columns [left, right) get from one depth of the inner axis; a
    /// and b are what is packed of them.
    void multiply(std::int64_t top, std::int64_t bottom, std::int64_t left, std::int64_t right,
                  std::int64_t at, std::int64_t depth, const T* a, const T* b) const {
        Panels<T> target{nullptr, c_.stride, c_.add || at > 0,
                         at + depth == size_.k && c_.bias ? c_.bias + left : nullptr};
        const std::int64_t panel = kernels_.panel_columns;
        for (std::int64_t i = top; i < bottom; i += most_rows) {
            target.data = c_.data + i * c_.stride + left;
            const Lattice<T> rows = rows_.lies
                                        ? Lattice<T>{rows_.at(i, at), rows_.step, rows_.along}
                                        : kernels_.packed_rows(a + (i - top) * depth);
            const std::int64_t a_panel = kernels_.panel_rows * (rows_.lies ? rows_.step : depth);
            if (columns_.lies) {
                kernels_.multiply(std::min(most_rows, bottom - i), right - left, depth, rows,
                                  a_panel, columns_.at(left, at), panel, columns_.along, target);
            } else {
                kernels_.multiply(std::min(most_rows, bottom - i), right - left, depth, rows,
                                  a_panel, b, panel * depth, panel, target);
            }
        }
    }

    Size size_;
    const ProductKernels<T>& kernels_;
    Lines<T> rows_;
    Lines<T> columns_;
    Target<T> c_;
    std::int64_t depth_;
    bool by_rows_;
};

template <class T>
void add_bias(std::int64_t m, std::int64_t n, const Target<T>& c) {
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) c.data[i * c.stride + j] += c.bias[j];
    }
}

/// Of so few rows that packing the other operand costs more than multiplying by it: it is read as
/// it lies, once.
template <class T>
void product_of_few_rows(const Size& s, const Operand<T>& a, const Operand<T>& b,
                         const Target<T>& c) {
    constexpr std::int64_t chunk_elements = std::int64_t{1} << 17;
    constexpr std::int64_t unit = 64;
    const Scratch<T> turned(a.transposed ? s.m * s.k : 0);
    for (std::int64_t i = 0; a.transposed && i < s.m; ++i) {
        for (std::int64_t p = 0; p < s.k; ++p) turned.get()[i * s.k + p] = a.data[p * a.stride + i];
    }
    const T* const rows = a.transposed ? turned.get() : a.data;
    const std::int64_t a_step = a.transposed ? s.k : a.stride;
    const std::int64_t column_step = b.transposed ? b.stride : 1;
    const std::int64_t step = b.transposed ? 1 : b.stride;
    const std::int64_t depth = depth_of(s.k);
    for_chunks(s.n, rounded_up(chunk_elements / s.k + 1, unit),
               [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t at = 0; at < s.k; at += depth) {
                       const bool last = at + depth >= s.k;
                       kernels<T>().products.multiply_few(
                           s.m, end - begin, std::min(depth, s.k - at), rows + at, a_step,
                           b.data + begin * column_step + at * step, column_step, step,
                           {c.data + begin, c.stride, c.add || at > 0,
                            last && c.bias ? c.bias + begin : nullptr});
                   }
               });
}

/// By the BLAS, in blocks of rows when it is large.
template <class T>
void blas_product(const Size& s, const Operand<T>& a, const Operand<T>& b, const Target<T>& c) {
    constexpr std::int64_t row_block = 192;
    const auto rows = [&](std::int64_t begin, std::int64_t end) {
        Operand<T> some = a;
        some.data += a.transposed ? begin : begin * a.stride;
        Target<T> out = c;
        out.data += begin * c.stride;
        multiply_by_blas(end - begin, s.n, s.k, some, b, out);
        if (c.bias) add_bias(end - begin, s.n, out);
    };
    if (s.m < 2 * row_block || s.work() < task_work) {
        rows(0, s.m);
    } else {
        for_chunks(s.m, row_block, rows);
    }
}

/// Whether packing costs more than it gains.
bool is_small(const Size& s, bool b_turned) noexcept {
    return s.work() <= small && s.k <= most_depth && (!b_turned || s.k * s.n <= small_room);
}

/// Out of line, for the room that its pieces take is more than a small product costs.
template <class T>
[[gnu::noinline]] void large_product(const Size& size, const Operand<T>& a, const Operand<T>& b,
                                     const Target<T>& c) {
    if (size.m <= few_rows) {
        product_of_few_rows(size, a, b, c);
    } else if (size.n == 1 && c.stride == 1 && !c.bias) {
        product_of_few_rows<T>({1, size.m, size.k}, {b.data, b.stride, !b.transposed},
                               {a.data, a.stride, !a.transposed}, c);
    } else if (kernels<T>().products.beats_blas) {
        PackedProduct<T>(size, a, b, c).run();
    } else {
        blas_product(size, a, b, c);
    }
}

}  // namespace

template <class T>
void gemm(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a, const Operand<T>& b,
          const Target<T>& c) {
    if (m == 0 || n == 0) return;
    if constexpr (std::is_floating_point_v<T>) {
        const Size size{m, n, k};
        if (is_small(size, b.transposed)) {
            kernels<T>().products.multiply_small(m, n, k, a, b, c);
        } else {
            large_product(size, a, b, c);
        }
    } else if (k > 0) {
        multiply_in_loops(m, n, k, a, b, c.data, c.stride);
    } else {
        for (std::int64_t i = 0; i < m; ++i) std::fill_n(c.data + i * c.stride, n, T{0});
    }
}

template void gemm(std::int64_t, std::int64_t, std::int64_t, const Operand<float>&,
                   const Operand<float>&, const Target<float>&);
template void gemm(std::int64_t, std::int64_t, std::int64_t, const Operand<double>&,
                   const Operand<double>&, const Target<double>&);
template void gemm(std::int64_t, std::int64_t, std::int64_t, const Operand<std::int64_t>&,
                   const Operand<std::int64_t>&, const Target<std::int64_t>&);

}  // namespace glassgrad::detail
