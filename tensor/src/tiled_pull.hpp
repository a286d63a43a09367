#pragma once
// What the backward passes of tiled attention share: weights and their gradients are made again in
// tiles, whose rows are queries and whose columns are a panel of keys.

#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "tiled_scores.hpp"

#include <glassgrad/tensor/detail/finite.hpp>

#include <algorithm>
#include <cstdint>

namespace glassgrad::detail::tiled {

/// So many queries at once: what is of a panel of keys stays in the first cache.
inline constexpr std::int64_t queries_at_once = 60;
/// So many keys share what is packed of the queries.
inline constexpr std::int64_t keys_at_once = 256;

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
        p.products.multiply(count, p.panel, width, p.products.packed_rows(queries.q_rows.get()),
                            p.products.panel_rows * width,
                            keys.k_columns.get() + i * p.panel * width, 0, p.panel,
                            {w, p.panel, false, nullptr});
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
        p.products.multiply(count, p.panel, width, p.products.packed_rows(queries.gy_rows.get()),
                            p.products.panel_rows * width,
                            keys.v_columns.get() + i * p.panel * width, 0, p.panel,
                            {g, p.panel, false, nullptr});
        drop(queries, p.panel_of(keys.range, i), g);
        p.attention.pull(count, factor, queries.dots.get(), weights.get(), g);
    }

    const Pull<T>& p;
    Scratch<T> weights;
    Scratch<T> gradients;
    Scratch<bool> kept;
};

/// The gradient of a mask or bias.
template <class T>
void added_grad(const Pull<T>& p, const Spread& x, Tensor& gradient);

}  // namespace glassgrad::detail::tiled
