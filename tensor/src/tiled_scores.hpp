#pragma once
// What is added to the scores of a tile or hides them, and sums that weights of 0 take nothing to.

#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "strided.hpp"
#include "tiled_sizes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace glassgrad::detail {

/// A mask or bias that broadcasts to the scores, as matrices of which rows or columns may be one.
class Spread {
  public:
    Spread() = default;
    Spread(const Tensor& x, const Shape& scores) : x_(x), leading_(scores), all_(scores.rank()) {
        if (!x.defined()) return;
        strides_ = broadcast_strides(x.shape(), scores);
        row_ = strides_[static_cast<std::size_t>(all_ - 2)];
        column_ = strides_[static_cast<std::size_t>(all_ - 1)];
    }
    bool defined() const noexcept { return x_.defined(); }
    const Tensor& tensor() const noexcept { return x_; }
    std::int64_t row() const noexcept { return row_; }
    std::int64_t column() const noexcept { return column_; }
    /// Where matrix n begins.
    std::int64_t begin(std::int64_t n) const noexcept {
        std::int64_t at = 0;
        for (int i = all_ - 3; i >= 0; --i) {
            at += n % leading_[i] * strides_[static_cast<std::size_t>(i)];
            n /= leading_[i];
        }
        return at;
    }

  private:
    Tensor x_;
    Shape leading_;
    int all_ = 0;
    Strides strides_{};
    std::int64_t row_ = 0;
    std::int64_t column_ = 0;
};

template <class T>
class TileScores {
  public:
    static constexpr T hidden = -std::numeric_limits<T>::infinity();

    TileScores(const Shape& scores, const TiledCall& call, const TiledSizes& sizes)
        : sizes_(sizes),
          call_(call),
          mask_(call.mask, scores),
          bias_(call.bias, scores),
          // No distance is larger than this, and positions plus it don't overflow.
          window_(call.window > 0 ? std::min(call.window, sizes.queries + sizes.keys) : 0) {}

    const Spread& mask() const noexcept { return mask_; }
    const Spread& bias() const noexcept { return bias_; }

    /// Whether order and window let a query of the tile see a key of it.
    bool meets(const Range& rows, const Range& columns) const noexcept {
        const std::int64_t first = position(rows.begin);
        const std::int64_t last = position(rows.end - 1);
        return first_key(first) < columns.end && end_of_keys(last) > columns.begin;
    }

    /// Whether scores change in other ways than by order and window.
    bool adds() const noexcept {
        return mask_.defined() || bias_.defined() || call_.alibi.defined();
    }
    /// Adds to scaled scores of matrix n what is to be added, and puts -inf where a query may not
    /// look, but for order and window; rows are `step` apart.
    void add_all(std::int64_t n, const Range& rows, const Range& columns, T* out,
                 std::int64_t step) const {
        for (std::int64_t i = rows.begin; i < rows.end; ++i, out += step) {
            add(mask_, n, i, columns, out);
            add(bias_, n, i, columns, out);
            add_alibi(n, i, columns, out);
            hide(mask_, n, i, columns, out);
            hide(bias_, n, i, columns, out);
        }
    }
    /// The same for scores whose rows are keys: element i of a row is of query rows.begin + i.
    void add_turned(std::int64_t n, const Range& rows, const Range& columns, T* out,
                    std::int64_t step) const {
        for (std::int64_t j = columns.begin; j < columns.end; ++j, out += step) {
            const auto change = [&](const Spread& x, bool hides) {
                if (!x.defined() || (!hides && x.tensor().dtype() == boolean)) return;
                const std::int64_t at = x.begin(n) + rows.begin * x.row() + j * x.column();
                if (x.tensor().dtype() == boolean) {
                    change_row(x.tensor().data<bool>() + at, x.row(), rows.size(), out,
                               [](T score, bool seen) { return seen ? score : hidden; });
                } else if (hides) {
                    change_row(x.tensor().data<T>() + at, x.row(), rows.size(), out,
                               [](T score, T added) { return added == hidden ? hidden : score; });
                } else {
                    change_row(x.tensor().data<T>() + at, x.row(), rows.size(), out,
                               [](T score, T added) { return score + added; });
                }
            };
            change(mask_, false);
            change(bias_, false);
            if (call_.alibi.defined()) {
                const T slope = -call_.alibi.data<T>()[n % sizes_.heads];
                const std::int64_t distance = position(rows.begin) - j;
                for (std::int64_t i = 0; i < rows.size(); ++i) {
                    out[i] += slope * static_cast<T>(std::abs(distance + i));
                }
            }
            change(mask_, true);
            change(bias_, true);
        }
    }
    /// Puts -inf where order and window hide keys.
    void hide_by_order(const Range& rows, const Range& columns, T* out, std::int64_t step) const {
        const std::int64_t count = columns.size();
        for (std::int64_t i = rows.begin; i < rows.end; ++i, out += step) {
            const std::int64_t from = first_key(position(i)) - columns.begin;
            const std::int64_t to = end_of_keys(position(i)) - columns.begin;
            for (std::int64_t j = 0; j < std::min(from, count); ++j) out[j] = hidden;
            for (std::int64_t j = std::max<std::int64_t>(0, to); j < count; ++j) out[j] = hidden;
        }
    }
    /// What `AttentionKernels::hide` takes for scores whose rows are keys: the queries, from
    /// rows.begin on, that may see the first key.
    Range band(const Range& rows, const Range& columns, std::int64_t panel) const noexcept {
        const Range seeing = queries_of({columns.begin, columns.begin + 1});
        const auto bounded = [&](std::int64_t query) {
            return std::clamp(query - rows.begin, -columns.size(), panel);
        };
        return {bounded(seeing.begin), bounded(seeing.end)};
    }
    /// Whether order and window hide nothing of the tile.
    bool covers(const Range& rows, const Range& columns) const noexcept {
        return first_key(position(rows.end - 1)) <= columns.begin &&
               end_of_keys(position(rows.begin)) >= columns.end;
    }
    /// The keys of `columns` that some query of `rows` may see, as far as order says.
    Range seen(const Range& rows, const Range& columns) const noexcept {
        const std::int64_t end = std::min(columns.end, end_of_keys(position(rows.end - 1)));
        return {columns.begin, std::max(columns.begin, end)};
    }

    /// The keys that some query of `rows` may see, as far as order and window say.
    Range keys_of(const Range& rows) const noexcept {
        const std::int64_t begin = std::max<std::int64_t>(0, first_key(position(rows.begin)));
        const std::int64_t end = std::min(sizes_.keys, end_of_keys(position(rows.end - 1)));
        return {begin, std::max(begin, end)};
    }
    /// The queries that may see some key of `columns`; may reach beyond the first and the last.
    Range queries_of(const Range& columns) const noexcept {
        const std::int64_t shift = sizes_.keys - sizes_.queries;
        const std::int64_t all = sizes_.queries + sizes_.keys;
        const std::int64_t begin = call_.causal  ? columns.begin
                                   : window_ > 0 ? columns.begin - window_ + 1
                                                 : -all;
        const std::int64_t end = window_ > 0 ? columns.end + window_ - 1 : 2 * all;
        return {begin - shift, end - shift};
    }

    /// Which weights of the tile dropout keeps: those that it keeps in the named form.
    void draw_kept(std::int64_t n, const Range& rows, const Range& columns, bool* out) const {
        const auto count = static_cast<std::size_t>(columns.size());
        for (std::int64_t i = rows.begin; i < rows.end; ++i, out += count) {
            call_.rng.peek_bernoulli(1 - call_.dropout_p,
                                     (n * sizes_.queries + i) * sizes_.keys + columns.begin,
                                     std::span<bool>(out, count));
        }
    }

  private:
    std::int64_t position(std::int64_t query) const noexcept {
        return query + sizes_.keys - sizes_.queries;
    }
    std::int64_t first_key(std::int64_t position) const noexcept {
        return window_ > 0 ? position - window_ + 1 : 0;
    }
    std::int64_t end_of_keys(std::int64_t position) const noexcept {
        if (call_.causal) return position + 1;
        return window_ > 0 ? position + window_ : sizes_.keys;
    }

    /// out[i] = f(out[i], x[i step])
    template <class X, class F>
    static void change_row(const X* x, std::int64_t step, std::int64_t count, T* out, const F& f) {
        if (step == 0) {
            const X one = *x;
            for (std::int64_t i = 0; i < count; ++i) out[i] = f(out[i], one);
        } else {
            for (std::int64_t i = 0; i < count; ++i) out[i] = f(out[i], x[i * step]);
        }
    }
    void add(const Spread& x, std::int64_t n, std::int64_t i, const Range& columns, T* out) const {
        if (!x.defined() || x.tensor().dtype() == boolean) return;
        const std::int64_t step = x.column();
        const T* from = x.tensor().data<T>() + x.begin(n) + i * x.row() + columns.begin * step;
        for (std::int64_t j = 0; j < columns.size(); ++j) out[j] += from[j * step];
    }
    void hide(const Spread& x, std::int64_t n, std::int64_t i, const Range& columns, T* out) const {
        if (!x.defined()) return;
        const std::int64_t step = x.column();
        const std::int64_t at = x.begin(n) + i * x.row() + columns.begin * step;
        if (x.tensor().dtype() == boolean) {
            const bool* from = x.tensor().data<bool>() + at;
            for (std::int64_t j = 0; j < columns.size(); ++j) {
                out[j] = from[j * step] ? out[j] : hidden;
            }
        } else {
            const T* from = x.tensor().data<T>() + at;
            for (std::int64_t j = 0; j < columns.size(); ++j) {
                out[j] = from[j * step] == hidden ? hidden : out[j];
            }
        }
    }
    void add_alibi(std::int64_t n, std::int64_t i, const Range& columns, T* out) const {
        if (!call_.alibi.defined()) return;
        const T slope = -call_.alibi.data<T>()[n % sizes_.heads];
        const std::int64_t distance = position(i) - columns.begin;
        for (std::int64_t j = 0; j < columns.size(); ++j) {
            out[j] += slope * static_cast<T>(std::abs(distance - j));
        }
    }

    TiledSizes sizes_;
    const TiledCall& call_;
    Spread mask_;
    Spread bias_;
    std::int64_t window_;
};

/// Puts 0 in the place of what is infinite or NaN.
template <class T>
void bound(T* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) x[i] = std::isfinite(x[i]) ? x[i] : T{0};
}

/// Makes good for bounded values in sums (m, n), rows `row` apart, of weights times values: a value
/// that isn't finite gives to those whose weight isn't 0. `weight_at(i, j, p)` is what sum (i, j)
/// takes of value p, `value_at(i, j, p)` that value.
template <class T, class WeightAt, class ValueAt>
void add_unbounded(std::int64_t m, std::int64_t n, std::int64_t k, const WeightAt& weight_at,
                   const ValueAt& value_at, T* sums, std::int64_t row) {
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            T& sum = sums[i * row + j];
            for (std::int64_t p = 0; p < k; ++p) {
                const T weight = weight_at(i, j, p);
                if (weight == 0 || std::isfinite(value_at(i, j, p))) continue;
                if (std::isfinite(weight)) {
                    sum += weight * value_at(i, j, p);
                    continue;
                }
                // Infinity times the 0 that stands for the value is in the sum.
                sum = 0;
                for (std::int64_t r = 0; r < k; ++r) {
                    if (weight_at(i, j, r) != 0) sum += weight_at(i, j, r) * value_at(i, j, r);
                }
                break;
            }
        }
    }
}

/// out (width, panel) += valuesᵀ weights, of weights (k, panel) and values (k, width), rows `row`
/// apart, that are packed turned, in panels for k of `packed_k`. A weight of 0 takes nothing, not
/// even from infinity or NaN; unless all values are `finite`, the packed ones are bounded.
template <class T>
void take_weighted(const ProductKernels<T>& products, std::int64_t k, std::int64_t width,
                   const T* packed, std::int64_t packed_k, bool finite, const T* values,
                   std::int64_t row, const T* weights, T* out) {
    const std::int64_t panel = products.panel_columns;
    const auto multiply = [&](T* to, bool add) {
        products.multiply(width, panel, k, products.packed_rows(packed),
                          products.panel_rows * packed_k, weights, 0, panel,
                          {to, panel, add, nullptr});
    };
    if (finite) {
        multiply(out, true);
        return;
    }
    const Scratch<T> sums(width * panel);
    multiply(sums.get(), false);
    add_unbounded(
        width, panel, k,
        [&](std::int64_t, std::int64_t j, std::int64_t p) { return weights[p * panel + j]; },
        [&](std::int64_t i, std::int64_t, std::int64_t p) { return values[p * row + i]; },
        sums.get(), panel);
    for (std::int64_t i = 0; i < width * panel; ++i) out[i] += sums.get()[i];
}

}  // namespace glassgrad::detail
