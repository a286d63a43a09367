// The backward pass of tiled attention: weights and their gradients are made again in tiles. One
// pass over the keys serves q, k and v; a mask or bias, which may be broadcast, takes its gradient
// in a pass of its own, ordered by its elements.

#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "tiled_scores.hpp"

#include <vector>

namespace glassgrad::detail {
namespace {

template <class T>
void accumulate(double* sums, const T* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

template <class T>
class TiledPull {
  public:
    TiledPull(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
              const TiledResult& result, const Tensor& gy)
        : call_(call),
          sizes_(q, k, v, call.tile),
          scores_(q, k, call, sizes_),
          q_(q.data<T>()),
          k_(k.data<T>()),
          v_(v.data<T>()),
          gy_(gy.data<T>()),
          rows_(result.rows.data<double>()),
          finite_(all_finite(q) && all_finite(k) && all_finite(gy)),
          factor_(static_cast<T>(call.dropout_p > 0 ? kept_factor(call.dropout_p) : 1)),
          dots_(Tensor::empty({sizes_.matrices * sizes_.queries}, f64)) {
        // sum_j w_j gw_j = sum_d y_d gy_d, for each row.
        const T* y = result.output.data<T>();
        double* dots = dots_.mutable_data<double>();
        const std::int64_t width = sizes_.value_width;
        for_rows(dots_.numel(), width, [&](std::int64_t r) {
            double sum = 0;
            for (std::int64_t d = 0; d < width; ++d) {
                sum +=
                    static_cast<double>(y[r * width + d]) * static_cast<double>(gy_[r * width + d]);
            }
            dots[r] = sum;
        });
        if (width == 0) std::fill_n(dots, dots_.numel(), 0.0);
    }

    /// Gradients of q, k and v, of which the undefined ones are left out.
    void pull(TiledGradients& out) const {
        const std::int64_t shared = sizes_.matrices / sizes_.group;
        const std::int64_t parts = parts_of(shared);
        T* gq = nullptr;
        Tensor partial;
        if (out.q.defined()) {
            // Each part of the keys adds up gradients of q of its own.
            if (parts > 1) partial = Tensor::empty({parts, out.q.numel()}, out.q.dtype());
            gq = parts > 1 ? partial.mutable_data<T>() : out.q.mutable_data<T>();
        }
        T* gk = out.k.defined() ? out.k.mutable_data<T>() : nullptr;
        T* gv = out.v.defined() ? out.v.mutable_data<T>() : nullptr;
        sizes_.for_tasks(shared * parts, [&](std::int64_t task) {
            const std::int64_t part = task % parts;
            pull_part(task / parts, part, parts,
                      gq ? gq + (parts > 1 ? part * out.q.numel() : 0) : nullptr, gk, gv);
        });
        if (partial.defined()) out.q = sum(partial, {.axes = {0}}).with_shape(out.q.shape());
    }

    /// The gradient of a mask or bias.
    void pull_added(const Spread& x, Tensor& gradient) const {
        const std::int64_t row_units = x.row() != 0 ? sizes_.query_tiles() : 1;
        const std::int64_t column_units = x.column() != 0 ? sizes_.key_tiles() : 1;
        const std::int64_t matrix =
            (x.row() != 0 ? sizes_.queries : 1) * (x.column() != 0 ? sizes_.keys : 1);
        const std::int64_t own = matrix > 0 ? gradient.numel() / matrix : 0;
        T* const out = gradient.mutable_data<T>();
        sizes_.for_tasks(own * row_units * column_units, [&](std::int64_t unit) {
            pull_unit(x, unit / (row_units * column_units) * matrix,
                      x.row() != 0 ? unit / column_units % row_units : -1,
                      x.column() != 0 ? unit % column_units : -1, out);
        });
    }

    const TileScores<T>& scores() const noexcept { return scores_; }

  private:
    /// Into how many parts the keys are cut, so that few heads still keep several threads busy.
    std::int64_t parts_of(std::int64_t shared) const noexcept {
        constexpr std::int64_t enough = 8;
        if (shared == 0) return 1;
        return std::clamp<std::int64_t>(enough / shared, 1,
                                        std::max<std::int64_t>(1, sizes_.key_tiles()));
    }

    /// Room for one tile, and what is computed there.
    struct Tile {
        explicit Tile(const TiledSizes& s, bool drops)
            : weights(area(s)), gradients(area(s)), kept(drops ? area(s) : 0) {}
        static std::int64_t area(const TiledSizes& s) {
            return std::min(s.tile, s.queries) * std::min(s.tile, s.keys);
        }
        Scratch<T> weights;
        Scratch<T> gradients;
        Scratch<bool> kept;
    };

    const double* row_of(std::int64_t n, const Range& rows) const {
        return rows_ + 2 * (n * sizes_.queries + rows.begin);
    }

    /// Softmax's weights, 0 where hidden; `kept` when dropout draws.
    void weigh(std::int64_t n, const Range& rows, const Range& columns, Tile& tile) const {
        const std::int64_t count = columns.size();
        T* w = tile.weights.get();
        scores_.fill(n, rows, columns, w);
        const double* row = row_of(n, rows);
        for (std::int64_t i = 0; i < rows.size(); ++i, w += count) {
            const T top = static_cast<T>(row[2 * i]);
            const T origin = top == TileScores<T>::hidden ? T{0} : top;
            const double total = row[2 * i + 1];
            const T inverse = static_cast<T>(total == 0 ? 0 : 1 / total);
            for (std::int64_t j = 0; j < count; ++j) {
                const T weight = fast_exp(w[j] - origin) * inverse;
                w[j] = w[j] == TileScores<T>::hidden ? T{0} : weight;
            }
        }
        if (call_.dropout_p > 0) scores_.draw_kept(n, rows, columns, tile.kept.get());
    }

    /// The gradients of the scores with all that is added; 0 where hidden.
    void pull_scores(std::int64_t n, const Range& rows, const Range& columns, Tile& tile) const {
        const std::int64_t count = columns.size();
        const std::int64_t width = sizes_.value_width;
        T* g = tile.gradients.get();
        const T* w = tile.weights.get();
        gemm<T>(rows.size(), count, width,
                {gy_ + (n * sizes_.queries + rows.begin) * width, width, false},
                {v_ + (n / sizes_.group * sizes_.keys + columns.begin) * width, width, true}, g);
        if (call_.dropout_p > 0) {
            const bool* kept = tile.kept.get();
            for (std::int64_t i = 0; i < rows.size() * count; ++i) {
                g[i] = kept[i] ? g[i] * factor_ : T{0};
            }
        }
        const double* dots = dots_.data<double>() + n * sizes_.queries + rows.begin;
        for (std::int64_t i = 0; i < rows.size(); ++i, g += count, w += count) {
            const T dot = static_cast<T>(dots[i]);
            for (std::int64_t j = 0; j < count; ++j) {
                const T pulled = w[j] * (g[j] - dot);
                g[j] = w[j] == 0 ? T{0} : pulled;
            }
        }
    }

    void pull_part(std::int64_t shared, std::int64_t part, std::int64_t parts, T* gq, T* gk,
                   T* gv) const {
        const TiledSizes& s = sizes_;
        const std::int64_t widest = std::max(s.width, s.value_width);
        const std::int64_t longest = std::min(s.tile, std::max(s.queries, s.keys));
        Tile tile(s, call_.dropout_p > 0);
        const Scratch<T> product(longest * widest);
        const Scratch<T> bounded(finite_ ? 0 : longest * widest);
        T* const room = finite_ ? nullptr : bounded.get();
        const std::int64_t most = std::min(s.tile, s.keys);
        const Scratch<double> key_sums(most * s.width);
        const Scratch<double> value_sums(most * s.value_width);
        const std::int64_t first_matrix = shared * s.group;
        if (gq) {
            std::fill_n(gq + first_matrix * s.queries * s.width, s.group * s.queries * s.width,
                        T{0});
        }
        const T factor = static_cast<T>(call_.scale);
        for (std::int64_t t = part * s.key_tiles() / parts; t < (part + 1) * s.key_tiles() / parts;
             ++t) {
            const Range columns = s.key_tile(t);
            const std::int64_t count = columns.size();
            const std::int64_t first_key = shared * s.keys + columns.begin;
            std::fill_n(key_sums.get(), count * s.width, 0.0);
            std::fill_n(value_sums.get(), count * s.value_width, 0.0);
            for (std::int64_t i = 0; i < s.group * s.query_tiles(); ++i) {
                const std::int64_t n = first_matrix + i / s.query_tiles();
                const Range rows = s.query_tile(i % s.query_tiles());
                if (!scores_.meets(rows, columns)) continue;
                const std::int64_t first_query = n * s.queries + rows.begin;
                weigh(n, rows, columns, tile);
                if (gq || gk) {
                    pull_scores(n, rows, columns, tile);
                    T* const g = tile.gradients.get();
                    for (std::int64_t j = 0; j < rows.size() * count; ++j) g[j] *= factor;
                    if (gk) {
                        take_weighted<T>(count, s.width, rows.size(), {g, count, true},
                                         q_ + first_query * s.width, room, product.get());
                        accumulate(key_sums.get(), product.get(), count * s.width);
                    }
                    if (gq) {
                        take_weighted<T>(rows.size(), s.width, count, {g, count, false},
                                         k_ + first_key * s.width, room, product.get());
                        T* const to = gq + first_query * s.width;
                        for (std::int64_t j = 0; j < rows.size() * s.width; ++j) {
                            to[j] += product.get()[j];
                        }
                    }
                }
                if (!gv) continue;
                T* const w = tile.weights.get();
                if (call_.dropout_p > 0) {
                    const bool* kept = tile.kept.get();
                    for (std::int64_t j = 0; j < rows.size() * count; ++j) {
                        w[j] = kept[j] ? w[j] * factor_ : T{0};
                    }
                }
                take_weighted<T>(count, s.value_width, rows.size(), {w, count, true},
                                 gy_ + first_query * s.value_width, room, product.get());
                accumulate(value_sums.get(), product.get(), count * s.value_width);
            }
            const auto write = [&](T* to, const Scratch<double>& sums, std::int64_t width) {
                if (!to) return;
                for (std::int64_t j = 0; j < count * width; ++j) {
                    to[first_key * width + j] = static_cast<T>(sums.get()[j]);
                }
            };
            write(gk, key_sums, s.width);
            write(gv, value_sums, s.value_width);
        }
    }

    /// What arrives at one tile of the matrix of x at `origin`: from all matrices that read it,
    /// and, where x is broadcast along rows or columns (-1), from all tiles there.
    void pull_unit(const Spread& x, std::int64_t origin, std::int64_t row_tile,
                   std::int64_t column_tile, T* out) const {
        const TiledSizes& s = sizes_;
        const auto some = [](std::int64_t at, std::int64_t count) {
            return at < 0 ? Range{0, count} : Range{at, at + 1};
        };
        const Range row_tiles = some(row_tile, s.query_tiles());
        const Range column_tiles = some(column_tile, s.key_tiles());
        const std::int64_t own_rows = row_tile < 0 ? 1 : s.query_tile(row_tile).size();
        const std::int64_t own_columns = column_tile < 0 ? 1 : s.key_tile(column_tile).size();
        Tile tile(s, call_.dropout_p > 0);
        const Scratch<double> sums(own_rows * own_columns);
        std::fill_n(sums.get(), own_rows * own_columns, 0.0);
        for (std::int64_t n = 0; n < s.matrices; ++n) {
            if (x.begin(n) != origin) continue;
            for (std::int64_t r = row_tiles.begin; r < row_tiles.end; ++r) {
                for (std::int64_t c = column_tiles.begin; c < column_tiles.end; ++c) {
                    const Range rows = s.query_tile(r);
                    const Range columns = s.key_tile(c);
                    if (!scores_.meets(rows, columns)) continue;
                    weigh(n, rows, columns, tile);
                    pull_scores(n, rows, columns, tile);
                    const T* g = tile.gradients.get();
                    for (std::int64_t i = 0; i < rows.size(); ++i) {
                        double* to = sums.get() + (row_tile < 0 ? 0 : i * own_columns);
                        for (std::int64_t j = 0; j < columns.size(); ++j) {
                            to[column_tile < 0 ? 0 : j] += static_cast<double>(*g++);
                        }
                    }
                }
            }
        }
        const std::int64_t step = x.column() != 0 ? s.keys : 1;
        T* to = out + origin + (row_tile < 0 ? 0 : s.query_tile(row_tile).begin * step) +
                (column_tile < 0 ? 0 : s.key_tile(column_tile).begin);
        for (std::int64_t i = 0; i < own_rows; ++i) {
            for (std::int64_t j = 0; j < own_columns; ++j) {
                to[i * step + j] = static_cast<T>(sums.get()[i * own_columns + j]);
            }
        }
    }

    const TiledCall& call_;
    TiledSizes sizes_;
    TileScores<T> scores_;
    const T* q_;
    const T* k_;
    const T* v_;
    const T* gy_;
    const double* rows_;
    bool finite_;
    T factor_;
    Tensor dots_;
};

}  // namespace

TiledGradients attend_in_tiles_vjp(const Tensor& q, const Tensor& k, const Tensor& v,
                                   const TiledCall& call, const TiledResult& result,
                                   const Tensor& gy, const TiledWanted& wanted) {
    const auto room = [](bool is_wanted, const Tensor& x) {
        return is_wanted ? Tensor::empty(x.shape(), x.dtype()) : Tensor();
    };
    TiledGradients out{room(wanted.q, q), room(wanted.k, k), room(wanted.v, v),
                       room(wanted.mask, call.mask), room(wanted.bias, call.bias)};
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        const TiledPull<typename decltype(type)::type> pull(q, k, v, call, result, gy);
        if (wanted.q || wanted.k || wanted.v) pull.pull(out);
        if (wanted.mask) pull.pull_added(pull.scores().mask(), out.mask);
        if (wanted.bias) pull.pull_added(pull.scores().bias(), out.bias);
    });
    return out;
}

}  // namespace glassgrad::detail
