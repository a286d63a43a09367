#pragma once
// Values of attention, of which a weight of 0 takes nothing.

#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "tiled_scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace glassgrad::detail {

/// The matrix of one head as products with weights read it: where it is, or a copy that is bounded
/// and as wide as vectors are.
template <class T>
class BoundedValues {
  public:
    BoundedValues(const Kernels<T>& kernels, std::int64_t tokens, std::int64_t width, const T* x,
                  std::int64_t row)
        : attention_(kernels.attention),
          width_(width),
          padded_(rounded_up(width, kernels.products.panel_columns / 2)),
          given_(x),
          given_row_(row),
          finite_(attention_.finite(tokens, width, x, row)),
          data_(x),
          row_(row) {
        if (direct()) return;
        T* to = copy_.emplace(tokens * padded_).get();
        data_ = to;
        row_ = padded_;
        for (std::int64_t i = 0; i < tokens; ++i, x += row, to += padded_) {
            for (std::int64_t j = 0; j < width; ++j) to[j] = std::isfinite(x[j]) ? x[j] : T{0};
            std::fill_n(to + width, padded_ - width, T{0});
        }
    }
    /// out (m, width), rows `row` apart, is or takes weights (m, k) times k of the values, from
    /// `first` on. A weight of 0 takes nothing, not even from infinity or NaN.
    void weigh(std::int64_t m, const Lattice<T>& weights, const Range& some, T* out,
               std::int64_t row, bool add) const {
        const std::int64_t k = some.size();
        const T* const from = data_ + some.begin * row_;
        if (direct()) {
            attention_.multiply(m, width_, k, weights, from, row_, {out, row, add, nullptr});
            return;
        }
        const Scratch<T> sums(m * padded_);
        attention_.multiply(m, padded_, k, weights, from, row_,
                            {sums.get(), padded_, false, nullptr});
        if (!finite_) {
            add_unbounded(
                m, width_, k,
                [&](std::int64_t i, std::int64_t, std::int64_t p) {
                    return weights.data[i * weights.row + p * weights.step];
                },
                [&](std::int64_t, std::int64_t j, std::int64_t p) {
                    return given_[(some.begin + p) * given_row_ + j];
                },
                sums.get(), padded_);
        }
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < width_; ++j) {
                T& to = out[i * row + j];
                const T sum = sums.get()[i * padded_ + j];
                to = add ? to + sum : sum;
            }
        }
    }

  private:
    bool direct() const noexcept { return finite_ && width_ == padded_; }

    const AttentionKernels<T>& attention_;
    std::int64_t width_;
    std::int64_t padded_;
    const T* given_;
    std::int64_t given_row_;
    bool finite_;
    const T* data_;
    std::int64_t row_;
    std::optional<Scratch<T>> copy_;
};

}  // namespace glassgrad::detail
