// The forward pass of tiled attention. Scores are computed with their queries side by side, a panel
// at a time: softmax then runs down columns, and its weights lie as the next product reads them.

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "tiled_scores.hpp"
#include "whole_attention.hpp"

#include <glassgrad/tensor/ops.hpp>

namespace glassgrad::detail {
namespace {

/// So many keys at once: scores of a panel stay in the first cache.
constexpr std::int64_t keys_at_once = 120;
/// So many queries share what is packed of the keys.
constexpr std::int64_t queries_at_once = 512;

template <class T>
struct Attend {
    Attend(const Tensor& q_, const Tensor& k_, const Tensor& v_, const TiledCall& call_,
           TiledResult& result)
        : call(call_),
          sizes(q_, k_, v_, call_, queries_at_once, keys_at_once),
          scores(scores_shape(heads_shape(q_.shape(), call_.heads),
                              heads_shape(k_.shape(), call_.kv_heads)),
                 call, sizes),
          q(q_.data<T>()),
          k(k_.data<T>()),
          v(v_.data<T>()),
          y(result.output.mutable_data<T>()),
          rows(result.rows.mutable_data<double>()),
          products(kernels<T>().products),
          attention(kernels<T>().attention),
          panel(products.panel_columns) {}

    const TiledCall& call;
    TiledSizes sizes;
    TileScores<T> scores;
    const T* q;
    const T* k;
    const T* v;
    T* y;
    double* rows;
    const ProductKernels<T>& products;
    const AttentionKernels<T>& attention;
    std::int64_t panel;

    void run() const {
        sizes.for_tasks(sizes.matrices * sizes.query_tiles(), [&](std::int64_t task) {
            attend(task / sizes.query_tiles(), sizes.query_tile(task % sizes.query_tiles()));
        });
    }

  private:
    /// Memory of one task; what is of a query lies in panels.
    struct Room {
        Room(const Attend& all, std::int64_t queries)
            : queries_packed(queries * all.sizes.width),
              sums(queries * all.sizes.value_width),
              top(queries),
              by(all.panel),
              total(queries),
              keys(rounded_up(all.most_keys(), all.products.panel_rows) * all.sizes.width),
              values(rounded_up(all.sizes.value_width, all.products.panel_rows) * all.most_keys()),
              weights(all.most_keys() * all.panel),
              kept(all.call.dropout_p > 0 ? all.most_keys() * all.panel : 0) {
            std::fill_n(sums.get(), queries * all.sizes.value_width, T{0});
            std::fill_n(top.get(), queries, TileScores<T>::hidden);
            std::fill_n(total.get(), queries, 0.0);
        }
        Scratch<T> queries_packed, sums, top, by;
        Scratch<double> total;
        Scratch<T> keys, values, weights;
        Scratch<bool> kept;
        bool finite = true;  // the values at hand
    };
    std::int64_t most_keys() const { return std::min(sizes.key_tile_size, sizes.keys); }

    void attend(std::int64_t n, const Range& queries) const {
        const std::int64_t panels = quotient_up(queries.size(), panel);
        Room room(*this, panels * panel);
        products.pack_columns(queries.size(), sizes.width, q + sizes.q_at.at(n, queries.begin),
                              sizes.q_at.row, 1, room.queries_packed.get());
        for (std::int64_t t = 0; t < sizes.key_tiles(); ++t) {
            const Range keys = sizes.key_tile(t);
            if (!scores.meets(queries, keys)) continue;
            pack_keys(n / sizes.group, keys, room);
            for (std::int64_t i = 0; i < panels; ++i) {
                const Range mine = panel_of(queries, i);
                const Range some = scores.seen(mine, keys);
                if (some.size() > 0 && scores.meets(mine, some)) {
                    take(n, mine, some, keys.size(), i, room);
                }
            }
        }
        const double factor = call.dropout_p > 0 ? kept_factor(call.dropout_p) : 1.0;
        for (std::int64_t i = 0; i < panels; ++i) {
            write(n, panel_of(queries, i), factor, i, room);
        }
    }
    Range panel_of(const Range& queries, std::int64_t i) const {
        const std::int64_t begin = queries.begin + i * panel;
        return {begin, std::min(queries.end, begin + panel)};
    }
    void pack_keys(std::int64_t n, const Range& keys, Room& room) const {
        products.pack_rows(keys.size(), sizes.width, k + sizes.k_at.at(n, keys.begin),
                           sizes.k_at.row, 1, room.keys.get());
        products.pack_rows(sizes.value_width, keys.size(), v + sizes.v_at.at(n, keys.begin), 1,
                           sizes.v_at.row, room.values.get());
        const std::int64_t count = rounded_up(sizes.value_width, products.panel_rows) * keys.size();
        room.finite = attention.finite(1, count, room.values.get(), count);
        if (!room.finite) bound(room.values.get(), count);
    }
    /// Adds what the queries of panel i get from `keys`, the first of the `packed` ones.
    void take(std::int64_t n, const Range& queries, const Range& keys, std::int64_t packed,
              std::int64_t i, Room& room) const {
        T* const w = room.weights.get();
        const std::int64_t count = keys.size();
        T* const sums = room.sums.get() + i * panel * sizes.value_width;
        products.multiply(count, panel, sizes.width, products.packed_rows(room.keys.get()),
                          products.panel_rows * sizes.width,
                          room.queries_packed.get() + i * panel * sizes.width, 0, panel,
                          {w, panel, false, nullptr});
        T factor = static_cast<T>(call.scale);
        // -inf stays what it is only when it is multiplied by a positive number.
        if (scores.adds() || !(factor > 0)) {
            for (std::int64_t j = 0; j < count * panel; ++j) w[j] *= factor;
            factor = 1;
        }
        if (scores.adds()) scores.add_turned(n, queries, keys, w, panel);
        if (!scores.covers(queries, keys)) {
            const Range band = scores.band(queries, keys, panel);
            attention.hide(count, band.begin, band.end, w);
        }
        const bool changed = attention.weigh(count, factor, w, room.top.get() + i * panel,
                                             room.total.get() + i * panel, room.by.get());
        if (call.dropout_p > 0) drop(n, queries, keys, room);
        if (changed) attention.rescale(sizes.value_width, room.by.get(), sums);
        take_weighted(products, count, sizes.value_width, room.values.get(), packed, room.finite,
                      v + sizes.v_at.at(n / sizes.group, keys.begin), sizes.v_at.row, w, sums);
    }
    void drop(std::int64_t n, const Range& queries, const Range& keys, Room& room) const {
        bool* const kept = room.kept.get();
        T* const w = room.weights.get();
        const std::int64_t count = keys.size();
        scores.draw_kept(n, queries, keys, kept);
        for (std::int64_t p = 0; p < count; ++p) {
            for (std::int64_t i = 0; i < queries.size(); ++i) {
                w[p * panel + i] = kept[i * count + p] ? w[p * panel + i] : T{0};
            }
        }
    }
    /// The result of panel i, times `factor`, and what is kept of its rows.
    void write(std::int64_t n, const Range& queries, double factor, std::int64_t i,
               Room& room) const {
        const double* const total = room.total.get() + i * panel;
        T* const by = room.by.get();
        T* const sums = room.sums.get() + i * panel * sizes.value_width;
        for (std::int64_t j = 0; j < panel; ++j) {
            by[j] = total[j] == 0 || factor == 0 ? T{0} : static_cast<T>(factor / total[j]);
        }
        attention.rescale(sizes.value_width, by, sums);
        products.unpack_columns(queries.size(), sizes.value_width, sums,
                                y + sizes.y_at.at(n, queries.begin), sizes.y_at.row);
        double* const kept = rows + 2 * (n * sizes.queries + queries.begin);
        for (std::int64_t j = 0; j < queries.size(); ++j) {
            kept[2 * j] = static_cast<double>(room.top.get()[i * panel + j]);
            kept[2 * j + 1] = total[j];
        }
    }
};

}  // namespace

Shape heads_shape(const Shape& shape, std::int64_t heads) {
    if (heads == 0) return shape;
    Shape all = shape;
    const int rank = all.rank();
    all[rank - 1] /= heads;
    all.insert(rank - 2, heads);
    return all;
}

Shape scores_shape(const Shape& q, const Shape& k) {
    Shape shape = q;
    shape[shape.rank() - 1] = k[k.rank() - 2];
    return shape;
}

bool tiles_fit(const Shape& q, const Shape& k, const Shape& v) {
    const int rank = q.rank();
    if (k.rank() != rank || v.rank() != rank) return false;
    for (int i = 0; i < rank - 2; ++i) {
        if (k[i] != v[i]) return false;
        if (q[i] == k[i]) continue;
        if (i < rank - 3 || k[i] == 0 || q[i] % k[i] != 0) return false;
    }
    return true;
}

bool takes_tiles(const Tensor& q, const Tensor& k, const Tensor& v, const SdpaOptions& options,
                 bool watched) {
    if (options.form != AttentionForm::automatic) return options.form == AttentionForm::tiled;
    for (const Tensor* x : {&q, &k, &v}) {
        if (!x->defined() || x->rank() < 2) return false;  // refused later, with a sentence
    }
    // A panel holds many queries, of which few would leave it empty.
    constexpr std::int64_t fewest = 8;
    const std::int64_t queries = q.size(-2);
    if (watched || queries < fewest || queries * k.size(-2) < tiled_attention_threshold) {
        return false;
    }
    // Heads side by side always fit, or are refused later.
    return options.heads > 0 || tiles_fit(q.shape(), k.shape(), v.shape());
}

TiledCall tiled_call(const Tensor& q, const Tensor& k, const Tensor& v,
                     const SdpaOptions& options) {
    const HeadCounts heads = check_heads(q, k, v, options);
    const Shape q_shape = heads_shape(q.shape(), heads.q);
    const Shape k_shape = heads_shape(k.shape(), heads.kv);
    const Shape v_shape = heads_shape(v.shape(), heads.kv);
    check_attention({q_shape, k_shape, v_shape, q.dtype()}, options);
    if (!tiles_fit(q_shape, k_shape, v_shape)) {
        fail<ShapeError>(hint("broadcast_to them, or take another form"),
                         "tiled_attention: q {}, k {} and v {} have different leading axes",
                         q.shape(), k.shape(), v.shape());
    }
    const double width = std::max(1.0, static_cast<double>(q_shape.back()));
    TiledCall call{.scale = options.scale ? *options.scale : 1 / std::sqrt(width),
                   .mask = options.mask,
                   .bias = options.bias,
                   .causal = options.causal,
                   .window = options.window,
                   .alibi = options.alibi,
                   .dropout_p = options.dropout_p,
                   .tile = options.tile,
                   .heads = heads.q,
                   .kv_heads = heads.kv};
    if (options.dropout_p > 0) {
        call.rng = *options.rng;
        const auto drawn = static_cast<std::uint64_t>(scores_shape(q_shape, k_shape).numel());
        options.rng->set_position(options.rng->position() + drawn);
    }
    return call;
}

TiledResult attend_in_tiles(const Tensor& q, const Tensor& k, const Tensor& v,
                            const TiledCall& call) {
    Shape shape = q.shape();
    shape[shape.rank() - 1] =
        call.heads > 0 ? v.shape().back() / call.kv_heads * call.heads : v.shape().back();
    Shape rows = heads_shape(q.shape(), call.heads);
    rows[rows.rank() - 1] = 2;
    TiledResult result{Tensor::empty(shape, q.dtype()), Tensor::empty(rows, f64), Tensor()};
    if (takes_whole_rows(k, call)) {
        attend_whole_rows(q, k, v, call, result);
        return result;
    }
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        Attend<typename decltype(type)::type>(q, k, v, call, result).run();
    });
    return result;
}

}  // namespace glassgrad::detail

namespace glassgrad {

Tensor tiled_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                       const SdpaOptions& options) {
    return detail::attend_in_tiles(q, k, v, detail::tiled_call(q, k, v, options)).output;
}

}  // namespace glassgrad
