#pragma once
// What the passes of tiled attention share: sizes, scratch, the scores of a tile with all that is
// added and hidden, and products that take nothing where a weight is 0.

#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include "fast_exp.hpp"
#include "gemm.hpp"
#include "parallel.hpp"
#include "scratch.hpp"
#include "strided.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

namespace glassgrad::detail {

/// Some rows or columns of the scores.
struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t size() const noexcept { return end - begin; }
};

struct TiledSizes {
    std::int64_t matrices = 1;  ///< (query, key) matrices: all leading axes of q
    std::int64_t heads;
    std::int64_t group;  ///< so many matrices that lie together share keys and values
    std::int64_t queries;
    std::int64_t keys;
    std::int64_t width;        ///< of q and k
    std::int64_t value_width;  ///< of v
    std::int64_t tile;

    TiledSizes(const Tensor& q, const Tensor& k, const Tensor& v, std::int64_t wanted_tile)
        : heads(q.rank() > 2 ? q.size(-3) : 1),
          group(heads / std::max<std::int64_t>(1, k.rank() > 2 ? k.size(-3) : 1)),
          queries(q.size(-2)),
          keys(k.size(-2)),
          width(q.size(-1)),
          value_width(v.size(-1)),
          tile(wanted_tile > 0 ? wanted_tile : 128) {
        for (int i = 0; i < q.rank() - 2; ++i) matrices *= q.shape()[i];
        group = std::max<std::int64_t>(1, group);
    }
    /// f(task) for each task, in any order unless the work is little.
    template <class F>
    void for_tasks(std::int64_t count, const F& f) const {
        constexpr std::int64_t little = 1 << 18;
        const std::int64_t products = matrices * queries * keys * (width + value_width);
        for_chunks(count, products < little ? std::max<std::int64_t>(1, count) : 1,
                   [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t task = begin; task < end; ++task) f(task);
                   });
    }
    std::int64_t query_tiles() const noexcept { return tiles(queries); }
    std::int64_t key_tiles() const noexcept { return tiles(keys); }
    /// Into how many parts the backward pass cuts the keys, so that few heads still keep several
    /// threads busy.
    std::int64_t key_parts() const noexcept {
        constexpr std::int64_t enough = 8;
        const std::int64_t shared = std::max<std::int64_t>(1, matrices / group);
        return std::clamp<std::int64_t>(enough / shared, 1, std::max<std::int64_t>(1, key_tiles()));
    }
    Range query_tile(std::int64_t i) const noexcept { return range(i, queries); }
    Range key_tile(std::int64_t i) const noexcept { return range(i, keys); }

  private:
    std::int64_t tiles(std::int64_t n) const noexcept { return n / tile + (n % tile != 0 ? 1 : 0); }
    Range range(std::int64_t i, std::int64_t n) const noexcept {
        return {i * tile, std::min(n, (i + 1) * tile)};
    }
};

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

    TileScores(const Tensor& q, const Tensor& k, const TiledCall& call, const TiledSizes& sizes)
        : sizes_(sizes),
          call_(call),
          mask_(call.mask, scores_shape(q.shape(), k.shape())),
          bias_(call.bias, scores_shape(q.shape(), k.shape())),
          q_(q.data<T>()),
          k_(k.data<T>()),
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

    /// The scaled scores of matrix n with all that is added, and -inf where a query may not look.
    void fill(std::int64_t n, const Range& rows, const Range& columns, T* out) const {
        const std::int64_t width = sizes_.width;
        const std::int64_t count = columns.size();
        gemm<T>(rows.size(), count, width,
                {q_ + (n * sizes_.queries + rows.begin) * width, width, false},
                {k_ + (n / sizes_.group * sizes_.keys + columns.begin) * width, width, true},
                {out, count});
        const T factor = static_cast<T>(call_.scale);
        for (std::int64_t i = 0; i < rows.size() * count; ++i) out[i] *= factor;
        for (std::int64_t i = rows.begin; i < rows.end; ++i, out += count) {
            add(mask_, n, i, columns, out);
            add(bias_, n, i, columns, out);
            add_alibi(n, i, columns, out);
            hide(mask_, n, i, columns, out);
            hide(bias_, n, i, columns, out);
            const std::int64_t from = first_key(position(i)) - columns.begin;
            const std::int64_t to = end_of_keys(position(i)) - columns.begin;
            for (std::int64_t j = 0; j < std::min(from, count); ++j) out[j] = hidden;
            for (std::int64_t j = std::max<std::int64_t>(0, to); j < count; ++j) out[j] = hidden;
        }
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
    const T* q_;
    const T* k_;
    std::int64_t window_;
};

/// y (m, n) = op(weights) (m, k) times values (k, n), in which a weight of exactly 0 takes nothing
/// from its value. `bounded`: room for the values, where they are not all finite; else null.
template <class T>
void take_weighted(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& weights,
                   const T* values, T* bounded, T* y) {
    if (!bounded) {
        gemm<T>(m, n, k, weights, {values, n, false}, {y, n});
        return;
    }
    for (std::int64_t i = 0; i < k * n; ++i) bounded[i] = std::isfinite(values[i]) ? values[i] : 0;
    gemm<T>(m, n, k, weights, {bounded, n, false}, {y, n});
    const auto weight_at = [&](std::int64_t i, std::int64_t j) {
        return weights.data[weights.transposed ? j * weights.stride + i : i * weights.stride + j];
    };
    for (std::int64_t j = 0; j < k; ++j) {
        for (std::int64_t d = 0; d < n; ++d) {
            if (std::isfinite(values[j * n + d])) continue;
            for (std::int64_t i = 0; i < m; ++i) {
                const T weight = weight_at(i, j);
                if (weight == 0) continue;
                T& sum = y[i * n + d];
                if (std::isfinite(weight)) {
                    sum += weight * values[j * n + d];
                    continue;
                }
                // Infinity times the 0 that stands for the value is in the sum.
                sum = 0;
                for (std::int64_t p = 0; p < k; ++p) {
                    if (weight_at(i, p) != 0) sum += weight_at(i, p) * values[p * n + d];
                }
            }
        }
    }
}

}  // namespace glassgrad::detail
