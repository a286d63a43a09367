// The backward pass of tiled attention: weights and their gradients are made again in tiles. One
// pass over the keys serves q, k and v; a mask or bias, which may be broadcast, takes its gradient
// in a pass of its own, ordered by its elements.

#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "parallel.hpp"
#include "tiled_scores.hpp"

namespace glassgrad::detail {
namespace {

template <class T>
void accumulate(double* sums, const T* x, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) sums[i] += static_cast<double>(x[i]);
}

/// What all parts of the pass read.
template <class T>
struct Pull {
    Pull(const Tensor& q_, const Tensor& k_, const Tensor& v_, const TiledCall& call_,
         const TiledResult& result, const Tensor& gy_)
        : call(call_),
          sizes(q_, k_, v_, call_.tile),
          scores(q_, k_, call_, sizes),
          q(q_.data<T>()),
          k(k_.data<T>()),
          v(v_.data<T>()),
          gy(gy_.data<T>()),
          rows(result.rows.data<double>()),
          finite(all_finite(q_) && all_finite(k_) && all_finite(gy_)),
          drops(call_.dropout_p > 0) {}

    const TiledCall& call;
    TiledSizes sizes;
    TileScores<T> scores;
    const T* q;
    const T* k;
    const T* v;
    const T* gy;
    const double* rows;
    Tensor dots = {};  ///< f64, for each row: sum_j w_j gw_j, which is sum_d y_d gy_d
    bool finite;       ///< no weight of 0 meets infinity or NaN
    bool drops;
};

/// Room for one tile, and what is computed there.
template <class T>
struct Tile {
    explicit Tile(const Pull<T>& p)
        : weights(area(p.sizes)), gradients(area(p.sizes)), kept(p.drops ? area(p.sizes) : 0) {}
    static std::int64_t area(const TiledSizes& s) {
        return std::min(s.tile, s.queries) * std::min(s.tile, s.keys);
    }
    Scratch<T> weights;
    Scratch<T> gradients;
    Scratch<bool> kept;
};

template <class T>
Tensor row_dots(const TiledSizes& s, const T* y, const T* gy) {
    Tensor result = zeros({s.matrices * s.queries}, f64);
    auto* out = result.mutable_data<double>();
    const std::int64_t width = s.value_width;
    for_rows(result.numel(), width, [&](std::int64_t r) {
        for (std::int64_t d = r * width; d < (r + 1) * width; ++d) {
            out[r] += static_cast<double>(y[d]) * static_cast<double>(gy[d]);
        }
    });
    return result;
}

/// Softmax's weights, 0 where hidden, and what dropout keeps of them.
template <class T>
void weigh(const Pull<T>& p, std::int64_t n, const Range& rows, const Range& columns,
           Tile<T>& tile) {
    constexpr T hidden = TileScores<T>::hidden;
    const std::int64_t count = columns.size();
    T* w = tile.weights.get();
    p.scores.fill(n, rows, columns, w);
    const double* row = p.rows + 2 * (n * p.sizes.queries + rows.begin);
    for (std::int64_t i = 0; i < rows.size(); ++i, w += count) {
        const T top = static_cast<T>(row[2 * i]);
        // Infinite in a row that sees nothing, whose scores are all hidden.
        const T inverse = static_cast<T>(1 / row[2 * i + 1]);
        for (std::int64_t j = 0; j < count; ++j) {
            const T weight = fast_exp(w[j] - top) * inverse;
            w[j] = w[j] == hidden ? T{0} : weight;
        }
    }
    if (p.drops) p.scores.draw_kept(n, rows, columns, tile.kept.get());
}

/// x where dropout keeps, else 0.
template <class T>
void drop(const Pull<T>& p, const Tile<T>& tile, std::int64_t count, T* x) {
    if (!p.drops) return;
    const T factor = static_cast<T>(kept_factor(p.call.dropout_p));
    const bool* kept = tile.kept.get();
    for (std::int64_t i = 0; i < count; ++i) x[i] = kept[i] ? x[i] * factor : T{0};
}

/// The gradients of the scores with all that is added; 0 where the weight is.
template <class T>
void scores_grad(const Pull<T>& p, std::int64_t n, const Range& rows, const Range& columns,
                 Tile<T>& tile) {
    const TiledSizes& s = p.sizes;
    const std::int64_t count = columns.size();
    const std::int64_t width = s.value_width;
    const std::int64_t first_query = n * s.queries + rows.begin;
    const std::int64_t first_key = n / s.group * s.keys + columns.begin;
    T* g = tile.gradients.get();
    const T* w = tile.weights.get();
    gemm<T>(rows.size(), count, width, {p.gy + first_query * width, width, false},
            {p.v + first_key * width, width, true}, {g, count});
    drop(p, tile, rows.size() * count, g);
    const double* dots = p.dots.template data<double>() + first_query;
    for (std::int64_t i = 0; i < rows.size(); ++i, g += count, w += count) {
        const T dot = static_cast<T>(dots[i]);
        for (std::int64_t j = 0; j < count; ++j) {
            const T pulled = w[j] * (g[j] - dot);
            g[j] = w[j] == 0 ? T{0} : pulled;
        }
    }
}

/// Where gradients go; null for those that nobody wants.
template <class T>
struct Targets {
    T* q;
    T* k;
    T* v;
};

/// Adds what one tile gives to the rows of q, and to the sums for the keys and values.
template <class T>
void tile_grad(const Pull<T>& p, std::int64_t n, const Range& rows, const Range& columns,
               const Targets<T>& to, Tile<T>& tile, T* product, T* bounded, double* key_sums,
               double* value_sums) {
    const TiledSizes& s = p.sizes;
    const std::int64_t count = columns.size();
    const std::int64_t first_query = n * s.queries + rows.begin;
    const std::int64_t first_key = n / s.group * s.keys + columns.begin;
    weigh(p, n, rows, columns, tile);
    if (to.q || to.k) {
        scores_grad(p, n, rows, columns, tile);
        T* const g = tile.gradients.get();
        const T factor = static_cast<T>(p.call.scale);
        for (std::int64_t j = 0; j < rows.size() * count; ++j) g[j] *= factor;
        if (to.k) {
            take_weighted<T>(count, s.width, rows.size(), {g, count, true},
                             p.q + first_query * s.width, bounded, product);
            accumulate(key_sums, product, count * s.width);
        }
        if (to.q) {
            take_weighted<T>(rows.size(), s.width, count, {g, count, false},
                             p.k + first_key * s.width, bounded, product);
            T* const sums = to.q + first_query * s.width;
            for (std::int64_t j = 0; j < rows.size() * s.width; ++j) sums[j] += product[j];
        }
    }
    if (!to.v) return;
    drop(p, tile, rows.size() * count, tile.weights.get());
    take_weighted<T>(count, s.value_width, rows.size(), {tile.weights.get(), count, true},
                     p.gy + first_query * s.value_width, bounded, product);
    accumulate(value_sums, product, count * s.value_width);
}

/// The keys of tiles [first, last) of one head of k and v, with all heads of q that share it.
template <class T>
void part_grad(const Pull<T>& p, std::int64_t shared, const Range& key_tiles,
               const Targets<T>& to) {
    const TiledSizes& s = p.sizes;
    const std::int64_t widest = std::max(s.width, s.value_width);
    const std::int64_t longest = std::min(s.tile, std::max(s.queries, s.keys));
    const std::int64_t most = std::min(s.tile, s.keys);
    Tile<T> tile(p);
    const Scratch<T> product(longest * widest);
    const Scratch<T> bounded(p.finite ? 0 : longest * widest);
    const Scratch<double> key_sums(most * s.width);
    const Scratch<double> value_sums(most * s.value_width);
    const std::int64_t matrix = shared * s.group;
    if (to.q) {
        std::fill_n(to.q + matrix * s.queries * s.width, s.group * s.queries * s.width, T{0});
    }
    for (std::int64_t t = key_tiles.begin; t < key_tiles.end; ++t) {
        const Range columns = s.key_tile(t);
        std::fill_n(key_sums.get(), columns.size() * s.width, 0.0);
        std::fill_n(value_sums.get(), columns.size() * s.value_width, 0.0);
        for (std::int64_t i = 0; i < s.group * s.query_tiles(); ++i) {
            const Range rows = s.query_tile(i % s.query_tiles());
            if (!p.scores.meets(rows, columns)) continue;
            tile_grad(p, matrix + i / s.query_tiles(), rows, columns, to, tile, product.get(),
                      p.finite ? nullptr : bounded.get(), key_sums.get(), value_sums.get());
        }
        const auto write = [&](T* out, const Scratch<double>& sums, std::int64_t width) {
            if (!out) return;
            out += (shared * s.keys + columns.begin) * width;
            for (std::int64_t j = 0; j < columns.size() * width; ++j) {
                out[j] = static_cast<T>(sums.get()[j]);
            }
        };
        write(to.k, key_sums, s.width);
        write(to.v, value_sums, s.value_width);
    }
}

/// Gradients of q, k and v, of which the undefined ones are left out.
template <class T>
void inputs_grad(const Pull<T>& p, TiledGradients& out) {
    const TiledSizes& s = p.sizes;
    const std::int64_t shared = s.matrices / s.group;
    const std::int64_t parts = s.key_parts();
    const auto memory = [](Tensor& x) { return x.defined() ? x.mutable_data<T>() : nullptr; };
    // Each part of the keys adds up gradients of q of its own.
    const std::int64_t size = out.q.defined() ? out.q.numel() : 0;
    Tensor partial;
    if (out.q.defined() && parts > 1) partial = Tensor::empty({parts, size}, out.q.dtype());
    const Targets<T> to{memory(parts > 1 ? partial : out.q), memory(out.k), memory(out.v)};
    s.for_tasks(shared * parts, [&](std::int64_t task) {
        const std::int64_t part = task % parts;
        const Range tiles{part * s.key_tiles() / parts, (part + 1) * s.key_tiles() / parts};
        part_grad<T>(p, task / parts, tiles, {to.q ? to.q + part * size : to.q, to.k, to.v});
    });
    if (partial.defined()) out.q = sum(partial, {.axes = {0}}).with_shape(out.q.shape());
}

/// What arrives at one tile of the matrix of x at `origin`: from all matrices that read it,
/// and, where x is broadcast along rows or columns (-1), from all tiles there.
template <class T>
void unit_grad(const Pull<T>& p, const Spread& x, std::int64_t origin, std::int64_t row_tile,
               std::int64_t column_tile, T* out) {
    const TiledSizes& s = p.sizes;
    const auto some = [](std::int64_t at, std::int64_t count) {
        return at < 0 ? Range{0, count} : Range{at, at + 1};
    };
    const Range row_tiles = some(row_tile, s.query_tiles());
    const Range column_tiles = some(column_tile, s.key_tiles());
    const std::int64_t own_rows = row_tile < 0 ? 1 : s.query_tile(row_tile).size();
    const std::int64_t own_columns = column_tile < 0 ? 1 : s.key_tile(column_tile).size();
    Tile<T> tile(p);
    const Scratch<double> sums(own_rows * own_columns);
    std::fill_n(sums.get(), own_rows * own_columns, 0.0);
    for (std::int64_t n = 0; n < s.matrices; ++n) {
        if (x.begin(n) != origin) continue;
        for (std::int64_t r = row_tiles.begin; r < row_tiles.end; ++r) {
            for (std::int64_t c = column_tiles.begin; c < column_tiles.end; ++c) {
                const Range rows = s.query_tile(r);
                const Range columns = s.key_tile(c);
                if (!p.scores.meets(rows, columns)) continue;
                weigh(p, n, rows, columns, tile);
                scores_grad(p, n, rows, columns, tile);
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

/// The gradient of a mask or bias.
template <class T>
void added_grad(const Pull<T>& p, const Spread& x, Tensor& gradient) {
    const TiledSizes& s = p.sizes;
    const bool by_row = x.row() != 0;
    const bool by_column = x.column() != 0;
    const std::int64_t row_units = by_row ? s.query_tiles() : 1;
    const std::int64_t column_units = by_column ? s.key_tiles() : 1;
    const std::int64_t matrix = (by_row ? s.queries : 1) * (by_column ? s.keys : 1);
    const std::int64_t own = matrix > 0 ? gradient.numel() / matrix : 0;
    T* const out = gradient.mutable_data<T>();
    s.for_tasks(own * row_units * column_units, [&](std::int64_t unit) {
        unit_grad<T>(p, x, unit / (row_units * column_units) * matrix,
                     by_row ? unit / column_units % row_units : -1,
                     by_column ? unit % column_units : -1, out);
    });
}

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
        using T = typename decltype(type)::type;
        Pull<T> pull(q, k, v, call, result, gy);
        pull.dots = row_dots<T>(pull.sizes, result.output.data<T>(), pull.gy);
        if (wanted.q || wanted.k || wanted.v) inputs_grad(pull, out);
        if (wanted.mask) added_grad(pull, pull.scores.mask(), out.mask);
        if (wanted.bias) added_grad(pull, pull.scores.bias(), out.bias);
    });
    return out;
}

}  // namespace glassgrad::detail
