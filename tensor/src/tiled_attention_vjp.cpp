// The backward pass of tiled attention: weights and their gradients are made again in tiles, whose
// rows are queries and whose columns are a panel of keys. One pass over the keys serves q, k and v;
// a mask or bias, which may be broadcast, takes its gradient in a pass of its own, ordered by its
// elements.

#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "tiled_scores.hpp"
#include "whole_attention.hpp"

#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/ops.hpp>

namespace glassgrad::detail {
namespace {

/// So many queries at once: what is of a panel of keys stays in the first cache.
constexpr std::int64_t queries_at_once = 60;
/// So many keys share what is packed of the queries.
constexpr std::int64_t keys_at_once = 256;

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }
std::int64_t rounded_up(std::int64_t a, std::int64_t unit) { return quotient_up(a, unit) * unit; }

/// What all parts of the pass read.
template <class T>
struct Pull {
    Pull(const Tensor& q_, const Tensor& k_, const Tensor& v_, const TiledCall& call_,
         const TiledResult& result, const Tensor& gy_)
        : call(call_),
          sizes(q_, k_, v_, call_, queries_at_once, keys_at_once),
          scores(scores_shape(heads_shape(q_.shape(), call_.heads),
                              heads_shape(k_.shape(), call_.kv_heads)),
                 call_, sizes),
          products(kernels<T>().products),
          attention(kernels<T>().attention),
          panel(products.panel_columns),
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
    const ProductKernels<T>& products;
    const AttentionKernels<T>& attention;
    std::int64_t panel;
    const T* q;
    const T* k;
    const T* v;
    const T* gy;
    const double* rows;
    Tensor dots = {};  ///< f64, for each row: sum_j w_j gw_j, which is sum_d y_d gy_d
    bool finite;       ///< no weight of 0 meets infinity or NaN
    bool drops;

    std::int64_t most_queries() const { return std::min(sizes.query_tile_size, sizes.queries); }
    std::int64_t most_keys() const { return std::min(sizes.key_tile_size, sizes.keys); }
    std::int64_t key_panels(const Range& keys) const { return quotient_up(keys.size(), panel); }
    Range panel_of(const Range& keys, std::int64_t i) const {
        const std::int64_t begin = keys.begin + i * panel;
        return {begin, std::min(keys.end, begin + panel)};
    }
};

template <class T>
Tensor row_dots(const Pull<T>& p, const T* y) {
    const TiledSizes& s = p.sizes;
    Tensor result = Tensor::empty({s.matrices * s.queries}, f64);
    auto* out = result.mutable_data<double>();
    for_rows(result.numel(), std::max<std::int64_t>(1, s.value_width), [&](std::int64_t r) {
        const std::int64_t at = s.y_at.at(r / s.queries, r % s.queries);
        out[r] = p.attention.dot(s.value_width, y + at, p.gy + at);
    });
    return result;
}

/// A block of queries as the products read it.
template <class T>
struct Queries {
    explicit Queries(const Pull<T>& p_)
        : p(p_),
          room(rounded_up(p.most_queries(), p.products.panel_rows)),
          q_rows(room * p.sizes.width),
          gy_rows(room * p.sizes.value_width),
          q_turned(rounded_up(p.sizes.width, p.products.panel_rows) * room),
          gy_turned(rounded_up(p.sizes.value_width, p.products.panel_rows) * room),
          top(room),
          inverse(room),
          dots(room) {}

    void pack(std::int64_t matrix, const Range& some) {
        const TiledSizes& s = p.sizes;
        n = matrix;
        range = some;
        const std::int64_t count = some.size();
        const T* from = p.q + s.q_at.at(n, some.begin);
        p.products.pack_rows(count, s.width, from, s.q_at.row, 1, q_rows.get());
        p.products.pack_rows(s.width, count, from, 1, s.q_at.row, q_turned.get());
        from = p.gy + s.y_at.at(n, some.begin);
        p.products.pack_rows(count, s.value_width, from, s.y_at.row, 1, gy_rows.get());
        p.products.pack_rows(s.value_width, count, from, 1, s.y_at.row, gy_turned.get());
        if (!p.finite) {
            bound(q_turned.get(), rounded_up(s.width, p.products.panel_rows) * count);
            bound(gy_turned.get(), rounded_up(s.value_width, p.products.panel_rows) * count);
        }
        const std::int64_t first = n * s.queries + some.begin;
        const double* row = p.rows + 2 * first;
        const double* dot = p.dots.template data<double>() + first;
        for (std::int64_t i = 0; i < count; ++i) {
            top.get()[i] = static_cast<T>(row[2 * i]);
            // Infinite in a row that sees nothing, whose scores are all hidden.
            inverse.get()[i] = static_cast<T>(1 / row[2 * i + 1]);
            dots.get()[i] = static_cast<T>(dot[i]);
        }
    }

    const Pull<T>& p;
    std::int64_t room;
    Scratch<T> q_rows, gy_rows, q_turned, gy_turned, top, inverse, dots;
    std::int64_t n = 0;
    Range range{0, 0};
};

/// A block of keys as the products read it.
template <class T>
struct Keys {
    explicit Keys(const Pull<T>& p_)
        : p(p_),
          room(rounded_up(p.most_keys(), p.panel)),
          k_columns(room * p.sizes.width),
          v_columns(room * p.sizes.value_width),
          k_turned(rounded_up(p.sizes.width, p.panel) * room) {}

    void pack(std::int64_t shared, const Range& some) {
        const TiledSizes& s = p.sizes;
        range = some;
        const T* from = p.k + s.k_at.at(shared, some.begin);
        p.products.pack_columns(some.size(), s.width, from, s.k_at.row, 1, k_columns.get());
        p.products.pack_columns(s.width, some.size(), from, 1, s.k_at.row, k_turned.get());
        if (!p.finite) bound(k_turned.get(), rounded_up(s.width, p.panel) * some.size());
        p.products.pack_columns(some.size(), s.value_width, p.v + s.v_at.at(shared, some.begin),
                                s.v_at.row, 1, v_columns.get());
    }

    const Pull<T>& p;
    std::int64_t room;
    Scratch<T> k_columns, v_columns, k_turned;
    Range range{0, 0};
};

/// Room for one tile (queries, panel of keys), and what is computed there.
template <class T>
struct Tile {
    explicit Tile(const Pull<T>& p_)
        : p(p_), weights(area()), gradients(area()), kept(p.drops ? area() : 0) {}

    std::int64_t area() const { return p.most_queries() * p.panel; }

    /// Softmax's weights, 0 where hidden, and what dropout keeps of them.
    void weigh(const Queries<T>& queries, const Keys<T>& keys, std::int64_t i) {
        const Range columns = p.panel_of(keys.range, i);
        const std::int64_t count = queries.range.size();
        const std::int64_t width = p.sizes.width;
        T* const w = weights.get();
        p.products.multiply(
            count, p.panel, width, queries.q_rows.get(), p.products.panel_rows * width,
            keys.k_columns.get() + i * p.panel * width, 0, p.panel, {w, p.panel, false, nullptr});
        T factor = static_cast<T>(p.call.scale);
        if (p.scores.adds() || !(factor > 0)) {
            for (std::int64_t j = 0; j < count * p.panel; ++j) w[j] *= factor;
            factor = 1;
        }
        if (p.scores.adds()) p.scores.add_all(queries.n, queries.range, columns, w, p.panel);
        if (!p.scores.covers(queries.range, columns)) {
            p.scores.hide_by_order(queries.range, columns, w, p.panel);
        }
        p.attention.weigh_again(count, factor, queries.top.get(), queries.inverse.get(), w);
        if (!p.drops) return;
        p.scores.draw_kept(queries.n, queries.range, columns, kept.get());
    }
    /// x where dropout keeps, else 0.
    void drop(const Queries<T>& queries, const Range& columns, T* x) const {
        if (!p.drops) return;
        const T factor = static_cast<T>(kept_factor(p.call.dropout_p));
        const bool* from = kept.get();
        for (std::int64_t i = 0; i < queries.range.size(); ++i, x += p.panel) {
            for (std::int64_t j = 0; j < columns.size(); ++j) x[j] = *from++ ? x[j] * factor : T{0};
        }
    }
    /// The gradients of the scores with all that is added, times `factor`; 0 where the weight is.
    void pull(const Queries<T>& queries, const Keys<T>& keys, std::int64_t i, T factor) {
        const std::int64_t count = queries.range.size();
        const std::int64_t width = p.sizes.value_width;
        T* const g = gradients.get();
        p.products.multiply(
            count, p.panel, width, queries.gy_rows.get(), p.products.panel_rows * width,
            keys.v_columns.get() + i * p.panel * width, 0, p.panel, {g, p.panel, false, nullptr});
        drop(queries, p.panel_of(keys.range, i), g);
        p.attention.pull(count, factor, queries.dots.get(), weights.get(), g);
    }

    const Pull<T>& p;
    Scratch<T> weights;
    Scratch<T> gradients;
    Scratch<bool> kept;
};

/// Where gradients go; null for those that nobody wants.
template <class T>
struct Targets {
    T* q;
    T* k;
    T* v;
};

/// The keys of some tiles of one head of k and v, with all heads of q that share it.
template <class T>
class PartGrad {
  public:
    PartGrad(const Pull<T>& p, std::int64_t shared, const Targets<T>& to)
        : p_(p),
          shared_(shared),
          to_(to),
          queries_(p),
          keys_(p),
          tile_(p),
          key_sums_(keys_.room * p.sizes.width),
          value_sums_(keys_.room * p.sizes.value_width),
          rows_(to.q ? queries_.room * keys_.room : 0) {}

    void run(const Range& key_tiles) {
        const TiledSizes& s = p_.sizes;
        const std::int64_t first = shared_ * s.group;
        if (to_.q) {
            for (std::int64_t n = first; n < first + s.group; ++n) {
                for (std::int64_t i = 0; i < s.queries; ++i) {
                    std::fill_n(to_.q + s.q_at.at(n, i), s.width, T{0});
                }
            }
        }
        for (std::int64_t t = key_tiles.begin; t < key_tiles.end; ++t) {
            const Range keys = s.key_tile(t);
            keys_.pack(shared_, keys);
            std::fill_n(key_sums_.get(), keys_.room * s.width, T{0});
            std::fill_n(value_sums_.get(), keys_.room * s.value_width, T{0});
            for (std::int64_t i = 0; i < s.group * s.query_tiles(); ++i) {
                const Range some = s.query_tile(i % s.query_tiles());
                if (!p_.scores.meets(some, keys)) continue;
                queries_.pack(first + i / s.query_tiles(), some);
                take();
            }
            for (std::int64_t i = 0; i < p_.key_panels(keys); ++i) {
                const Range columns = p_.panel_of(keys, i);
                const auto write = [&](T* out, const Scratch<T>& sums, std::int64_t width,
                                       const Matrices& at) {
                    if (!out) return;
                    p_.products.unpack_columns(columns.size(), width,
                                               sums.get() + i * p_.panel * width,
                                               out + at.at(shared_, columns.begin), at.row);
                };
                write(to_.k, key_sums_, s.width, s.k_at);
                write(to_.v, value_sums_, s.value_width, s.v_at);
            }
        }
    }

  private:
    /// Adds what the packed queries and keys give.
    void take() {
        const TiledSizes& s = p_.sizes;
        const Range& queries = queries_.range;
        const std::int64_t count = queries.size();
        const std::int64_t n = queries_.n;
        // The panels that they see lie together.
        std::int64_t begin = keys_.range.end;
        std::int64_t end = keys_.range.begin;
        for (std::int64_t i = 0; i < p_.key_panels(keys_.range); ++i) {
            const Range columns = p_.panel_of(keys_.range, i);
            if (!p_.scores.meets(queries, columns)) continue;
            begin = std::min(begin, columns.begin);
            end = columns.end;
            tile_.weigh(queries_, keys_, i);
            if (to_.q || to_.k) {
                tile_.pull(queries_, keys_, i, static_cast<T>(p_.call.scale));
                const T* g = tile_.gradients.get();
                if (to_.k) {
                    take_weighted(p_.products, count, s.width, queries_.q_turned.get(), count,
                                  p_.finite, p_.q + s.q_at.at(n, queries.begin), s.q_at.row, g,
                                  key_sums_.get() + i * p_.panel * s.width);
                }
                if (to_.q) turn(g, count, columns);
            }
            if (!to_.v) continue;
            tile_.drop(queries_, columns, tile_.weights.get());
            take_weighted(p_.products, count, s.value_width, queries_.gy_turned.get(), count,
                          p_.finite, p_.gy + s.y_at.at(n, queries.begin), s.y_at.row,
                          tile_.weights.get(), value_sums_.get() + i * p_.panel * s.value_width);
        }
        if (to_.q && begin < end) query_grad({begin, end});
    }
    /// Packs gradients of scores as rows, for the product with the keys.
    void turn(const T* g, std::int64_t count, const Range& columns) {
        const std::int64_t rows = p_.products.panel_rows;
        const std::int64_t offset = columns.begin - keys_.range.begin;
        for (std::int64_t i = 0; i < count; i += rows) {
            p_.products.pack_rows(std::min(rows, count - i), columns.size(), g + i * p_.panel,
                                  p_.panel, 1, rows_.get() + i * keys_.room + offset * rows);
        }
    }
    /// Adds gradients of scores times `keys` to the gradients of the packed queries.
    void query_grad(const Range& keys) {
        const TiledSizes& s = p_.sizes;
        const std::int64_t rows = p_.products.panel_rows;
        const std::int64_t count = queries_.range.size();
        const std::int64_t offset = keys.begin - keys_.range.begin;
        T* const out = to_.q + s.q_at.at(queries_.n, queries_.range.begin);
        const auto multiply = [&](const Panels<T>& to) {
            p_.products.multiply(count, s.width, keys.size(), rows_.get() + offset * rows,
                                 rows * keys_.room, keys_.k_turned.get() + offset * p_.panel,
                                 p_.panel * keys_.range.size(), p_.panel, to);
        };
        if (p_.finite) {
            multiply({out, s.q_at.row, true, nullptr});
            return;
        }
        const Scratch<T> sums(count * s.width);
        multiply({sums.get(), s.width, false, nullptr});
        const T* values = p_.k + s.k_at.at(shared_, keys.begin);
        add_unbounded(
            count, s.width, keys.size(),
            [&](std::int64_t i, std::int64_t, std::int64_t j) {
                return rows_.get()[i / rows * rows * keys_.room + (offset + j) * rows + i % rows];
            },
            [&](std::int64_t, std::int64_t d, std::int64_t j) {
                return values[j * s.k_at.row + d];
            },
            sums.get(), s.width);
        for (std::int64_t i = 0; i < count; ++i) {
            for (std::int64_t d = 0; d < s.width; ++d) {
                out[i * s.q_at.row + d] += sums.get()[i * s.width + d];
            }
        }
    }

    const Pull<T>& p_;
    std::int64_t shared_;
    Targets<T> to_;
    Queries<T> queries_;
    Keys<T> keys_;
    Tile<T> tile_;
    Scratch<T> key_sums_;
    Scratch<T> value_sums_;
    Scratch<T> rows_;
};

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
        PartGrad<T>(p, task / parts, {to.q ? to.q + part * size : to.q, to.k, to.v}).run(tiles);
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
    Queries<T> queries(p);
    Keys<T> keys(p);
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
                queries.pack(n, rows);
                keys.pack(n / s.group, columns);
                for (std::int64_t i = 0; i < p.key_panels(columns); ++i) {
                    const Range part = p.panel_of(columns, i);
                    tile.weigh(queries, keys, i);
                    tile.pull(queries, keys, i, T{1});
                    const T* g = tile.gradients.get();
                    const std::int64_t offset = part.begin - columns.begin;
                    for (std::int64_t row = 0; row < rows.size(); ++row, g += p.panel) {
                        double* to = sums.get() + (row_tile < 0 ? 0 : row * own_columns);
                        for (std::int64_t j = 0; j < part.size(); ++j) {
                            to[column_tile < 0 ? 0 : offset + j] += static_cast<double>(g[j]);
                        }
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
    bool inputs = wanted.q || wanted.k || wanted.v;
    if (inputs && takes_whole_rows(k, call)) {
        whole_rows_vjp(q, k, v, call, result, gy, out);
        inputs = false;
    }
    if (!inputs && !wanted.mask && !wanted.bias) return out;
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        Pull<T> pull(q, k, v, call, result, gy);
        pull.dots = row_dots<T>(pull, result.output.data<T>());
        if (inputs) inputs_grad(pull, out);
        if (wanted.mask) added_grad(pull, pull.scores.mask(), out.mask);
        if (wanted.bias) added_grad(pull, pull.scores.bias(), out.bias);
    });
    return out;
}

}  // namespace glassgrad::detail
