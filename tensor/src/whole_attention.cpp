// Scores of a panel of queries, which lie side by side, with all keys at once: softmax runs down
// columns, and products read weights along both axes, and the other operands where they are.

#include "whole_attention.hpp"

#include "bounded_values.hpp"
#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "scratch.hpp"
#include "tiled_scores.hpp"

#include <optional>

namespace glassgrad::detail {
namespace {

/// More keys are cut: a panel of their scores would leave the caches.
constexpr std::int64_t most_keys = 1024;
/// So many keys of few heads, which would leave threads idle.
constexpr std::int64_t most_keys_of_few = 256;
constexpr std::int64_t few_heads = 8;
/// Weights of so many numbers are kept in any case, more if q, k, v and the result are as many.
constexpr std::int64_t kept_anyway = 1 << 20;

template <class T>
class WholeRows {
  public:
    WholeRows(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call)
        : kernels_(kernels<T>()),
          products_(kernels_.products),
          attention_(kernels_.attention),
          panel_(products_.panel_columns),
          call_(call),
          sizes_(q, k, v, call, panel_, std::max<std::int64_t>(1, k.numel())),
          scores_(scores_shape(heads_shape(q.shape(), call.heads),
                               heads_shape(k.shape(), call.kv_heads)),
                  call, sizes_),
          q_(q.data<T>()),
          k_(k.data<T>()),
          v_(v.data<T>()) {}

    std::int64_t weights_count() const {
        return sizes_.matrices * sizes_.query_tiles() * sizes_.keys * panel_;
    }

    void attend(TiledResult& result, T* kept) const {
        T* const y = result.output.mutable_data<T>();
        auto* const rows = result.rows.mutable_data<double>();
        sizes_.for_tasks(sizes_.matrices, [&](std::int64_t n) {
            const std::int64_t shared = n / sizes_.group;
            fetch(n, shared);
            const BoundedValues<T> values(kernels_, sizes_.keys, sizes_.value_width,
                                          v_ + sizes_.v_at.at(shared, 0), sizes_.v_at.row);
            const Room room(*this, {.weights = !kept, .gradients = false});
            for (std::int64_t i = 0; i < sizes_.query_tiles(); ++i) {
                const Range queries = sizes_.query_tile(i);
                T* const w = kept ? kept + panel_at(n, i) : room.weights.get();
                const Range keys = weigh(n, queries, room, w, rows);
                const T* const taken = dropped(n, queries, keys, room, w);
                along_queries(queries, taken, values, y + sizes_.y_at.at(n, queries.begin),
                              sizes_.y_at.row);
            }
        });
    }

    void pull(const T* kept, const T* gy, T* gq, T* gk, T* gv) const {
        sizes_.for_tasks(sizes_.matrices / sizes_.group, [&](std::int64_t shared) {
            if (gk) clear(gk + sizes_.k_at.at(shared, 0), sizes_.width, sizes_.k_at.row);
            if (gv) clear(gv + sizes_.v_at.at(shared, 0), sizes_.value_width, sizes_.v_at.row);
            const std::int64_t first = shared * sizes_.group;
            for (std::int64_t n = first; n < first + sizes_.group; ++n) {
                pull_matrix(n, shared, kept, gy, gq, gk, gv);
            }
        });
    }

  private:
    /// Memory of one task; matrices of it have a row for each key and a panel of queries in each.
    struct Room {
        struct For {
            bool weights;
            bool gradients;
        };
        Room(const WholeRows& all, const For& use)
            : turned(std::max(all.sizes_.width, all.sizes_.value_width) * all.panel_),
              weights(use.weights ? all.sizes_.keys * all.panel_ : 0),
              gradients(use.gradients ? all.sizes_.keys * all.panel_ : 0),
              dropped(all.call_.dropout_p > 0 ? all.sizes_.keys * all.panel_ : 0),
              kept(all.call_.dropout_p > 0 ? all.sizes_.keys * all.panel_ : 0) {}
        Scratch<T> turned, weights, gradients, dropped;
        Scratch<bool> kept;
    };

    /// Asks for the rows of a head at once: where heads lie side by side, only a line or two of
    /// each row are its own, and the processor doesn't guess which come next. Compilers drop calls
    /// of a function that does nothing else, so it must not be called.
    [[gnu::always_inline]] static void fetch(const T* x, std::int64_t tokens, std::int64_t width,
                                             std::int64_t row) {
        constexpr std::int64_t most = 1 << 15;
        constexpr std::int64_t line = 64 / sizeof(T);
        if (row == width || tokens * width > most) return;
        for (std::int64_t i = 0; i < tokens; ++i, x += row) {
            for (std::int64_t j = 0; j < width; j += line) __builtin_prefetch(x + j, 0, 2);
        }
    }
    [[gnu::always_inline]] void fetch(std::int64_t n, std::int64_t shared) const {
        fetch(q_ + sizes_.q_at.at(n, 0), sizes_.queries, sizes_.width, sizes_.q_at.row);
        fetch(k_ + sizes_.k_at.at(shared, 0), sizes_.keys, sizes_.width, sizes_.k_at.row);
        fetch(v_ + sizes_.v_at.at(shared, 0), sizes_.keys, sizes_.value_width, sizes_.v_at.row);
    }
    std::int64_t panel_at(std::int64_t n, std::int64_t i) const {
        return (n * sizes_.query_tiles() + i) * sizes_.keys * panel_;
    }
    void clear(T* x, std::int64_t width, std::int64_t row) const {
        for (std::int64_t i = 0; i < sizes_.keys; ++i) std::fill_n(x + i * row, width, T{0});
    }

    /// out (keys, panel) = rows of k or v times the queries' rows of q or gy; parts that order
    /// hides stay undefined.
    void multiply(const Range& queries, const Range& keys, std::int64_t width, const T* of_keys,
                  std::int64_t keys_row, const T* of_queries, std::int64_t queries_row, T* turned,
                  T* out) const {
        products_.pack_columns(queries.size(), width, of_queries, queries_row, 1, turned);
        // Late keys are hidden from the first half of the queries.
        const std::int64_t half = panel_ / 2;
        const Range early{queries.begin, std::min(queries.end, queries.begin + half)};
        const std::int64_t split = std::clamp(scores_.keys_of(early).end, keys.begin, keys.end);
        const auto part = [&](const Range& some, std::int64_t from) {
            attention_.multiply(some.size(), panel_ - from, width,
                                {of_keys + some.begin * keys_row, keys_row, 1}, turned + from,
                                panel_, {out + some.begin * panel_ + from, panel_, false, nullptr});
        };
        part({keys.begin, split}, 0);
        part({split, keys.end}, half);
    }
    /// Softmax's weights of some queries, and the keys that they see.
    Range weigh(std::int64_t n, const Range& queries, const Room& room, T* w, double* rows) const {
        const Range keys = scores_.keys_of(queries);
        T* const seen = w + keys.begin * panel_;
        const T factor = score(n, queries, keys, room, w);
        T top[most_panel];
        T total[most_panel];
        if (!attention_.share(keys.size(), factor, seen, top, total)) {
            mark_nan(n, queries, keys, room, total, w);
        }
        if (!rows) return keys;
        double* const kept = rows + 2 * (n * sizes_.queries + queries.begin);
        for (std::int64_t j = 0; j < queries.size(); ++j) {
            kept[2 * j] = static_cast<double>(top[j]);
            kept[2 * j + 1] = static_cast<double>(total[j]);
        }
        return keys;
    }
    /// Scores, -inf where hidden, and what they still have to be multiplied by.
    T score(std::int64_t n, const Range& queries, const Range& keys, const Room& room, T* w) const {
        const std::int64_t shared = n / sizes_.group;
        multiply(queries, keys, sizes_.width, k_ + sizes_.k_at.at(shared, 0), sizes_.k_at.row,
                 q_ + sizes_.q_at.at(n, queries.begin), sizes_.q_at.row, room.turned.get(), w);
        T* const seen = w + keys.begin * panel_;
        T factor = static_cast<T>(call_.scale);
        // -inf stays what it is only when it is multiplied by a positive number.
        if (scores_.adds() || !(factor > 0)) {
            for (std::int64_t i = 0; i < keys.size() * panel_; ++i) seen[i] *= factor;
            factor = 1;
        }
        if (scores_.adds()) scores_.add_turned(n, queries, keys, seen, panel_);
        if (!scores_.covers(queries, keys)) {
            const Range band = scores_.band(queries, keys, panel_);
            attention_.hide(keys.size(), band.begin, band.end, seen);
        }
        return factor;
    }
    /// Makes all weights NaN in rows whose sum is, but for keys that are hidden: weights of 0 don't
    /// tell them from small ones.
    void mark_nan(std::int64_t n, const Range& queries, const Range& keys, const Room& room,
                  const T* total, T* w) const {
        const Scratch<T> again(sizes_.keys * panel_);
        score(n, queries, keys, room, again.get());
        for (std::int64_t i = keys.begin * panel_; i < keys.end * panel_; ++i) {
            const T sum = total[i % panel_];
            if (std::isnan(sum)) w[i] = again.get()[i] == TileScores<T>::hidden ? T{0} : sum;
        }
    }
    /// What dropout leaves of x, into `out`; draws are those of the named form.
    void drop(const Range& keys, std::int64_t queries, const bool* kept, const T* x, T* out) const {
        const T factor = static_cast<T>(kept_factor(call_.dropout_p));
        const std::int64_t count = keys.size();
        for (std::int64_t p = 0; p < count; ++p) {
            const std::int64_t row = (keys.begin + p) * panel_;
            for (std::int64_t i = 0; i < queries; ++i) {
                out[row + i] = kept[i * count + p] ? x[row + i] * factor : T{0};
            }
        }
    }
    const T* dropped(std::int64_t n, const Range& queries, const Range& keys, const Room& room,
                     const T* w) const {
        if (!(call_.dropout_p > 0)) return w;
        scores_.draw_kept(n, queries, keys, room.kept.get());
        drop(keys, queries.size(), room.kept.get(), w, room.dropped.get());
        return room.dropped.get();
    }
    /// Weights of queries, times the values of the keys that they see.
    void along_queries(const Range& queries, const T* w, const BoundedValues<T>& values, T* out,
                       std::int64_t row) const {
        const std::int64_t unit = products_.panel_rows;
        for (std::int64_t i = queries.begin; i < queries.end; i += unit) {
            const Range some{i, std::min(queries.end, i + unit)};
            const Range keys = scores_.keys_of(some);
            const std::int64_t first = i - queries.begin;
            values.weigh(some.size(), {w + keys.begin * panel_ + first, 1, panel_}, keys,
                         out + first * row, row, false);
        }
    }
    /// Adds weights of keys, times the values of the queries that see them.
    void along_keys(const Range& queries, const Range& keys, const T* w,
                    const BoundedValues<T>& values, T* out, std::int64_t row) const {
        const std::int64_t unit = products_.panel_rows;
        for (std::int64_t j = keys.begin; j < keys.end; j += unit) {
            const Range some{j, std::min(keys.end, j + unit)};
            const Range allowed = scores_.queries_of(some);
            const std::int64_t begin = std::max(queries.begin, allowed.begin);
            const std::int64_t end = std::min(queries.end, allowed.end);
            if (begin >= end) continue;
            values.weigh(some.size(), {w + j * panel_ + begin - queries.begin, panel_, 1},
                         {begin, end}, out + j * row, row, true);
        }
    }

    void pull_matrix(std::int64_t n, std::int64_t shared, const T* kept, const T* gy, T* gq, T* gk,
                     T* gv) const {
        const TiledSizes& s = sizes_;
        const Room room(*this, {.weights = !kept, .gradients = true});
        const T* const gy_here = gy + s.y_at.at(n, 0);
        fetch(n, shared);
        fetch(gy_here, s.queries, s.value_width, s.y_at.row);
        std::optional<BoundedValues<T>> of_q, of_k, of_gy;
        if (gk) of_q.emplace(kernels_, s.queries, s.width, q_ + s.q_at.at(n, 0), s.q_at.row);
        if (gq) of_k.emplace(kernels_, s.keys, s.width, k_ + s.k_at.at(shared, 0), s.k_at.row);
        if (gv) of_gy.emplace(kernels_, s.queries, s.value_width, gy_here, s.y_at.row);
        T* const g = room.gradients.get();
        for (std::int64_t i = 0; i < s.query_tiles(); ++i) {
            const Range queries = s.query_tile(i);
            const Range keys = scores_.keys_of(queries);
            const T* const w = kept ? kept + panel_at(n, i) : room.weights.get();
            if (!kept) weigh(n, queries, room, room.weights.get(), nullptr);
            const T* const taken = dropped(n, queries, keys, room, w);
            if (gv) {
                along_keys(queries, keys, taken, *of_gy, gv + s.v_at.at(shared, 0), s.v_at.row);
            }
            if (!gq && !gk) continue;
            multiply(queries, keys, s.value_width, v_ + s.v_at.at(shared, 0), s.v_at.row,
                     gy_here + queries.begin * s.y_at.row, s.y_at.row, room.turned.get(), g);
            if (call_.dropout_p > 0) drop(keys, queries.size(), room.kept.get(), g, g);
            const std::int64_t at = keys.begin * panel_;
            attention_.pull_down(keys.size(), static_cast<T>(call_.scale), w + at, g + at);
            if (gq) {
                along_queries(queries, g, *of_k, gq + s.q_at.at(n, queries.begin), s.q_at.row);
            }
            if (gk) along_keys(queries, keys, g, *of_q, gk + s.k_at.at(shared, 0), s.k_at.row);
        }
    }

    static constexpr std::int64_t most_panel = 32;

    const Kernels<T>& kernels_;
    const ProductKernels<T>& products_;
    const AttentionKernels<T>& attention_;
    std::int64_t panel_;
    const TiledCall& call_;
    TiledSizes sizes_;
    TileScores<T> scores_;
    const T* q_;
    const T* k_;
    const T* v_;
};

}  // namespace

bool takes_whole_rows(const Tensor& k, const TiledCall& call) {
    if (call.tile > 0) return false;
    const Shape shape = heads_shape(k.shape(), call.kv_heads);
    std::int64_t heads = 1;
    for (int i = 0; i < shape.rank() - 2; ++i) heads *= shape[i];
    return k.size(-2) <= (heads < few_heads ? most_keys_of_few : most_keys);
}

void attend_whole_rows(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
                       TiledResult& result) {
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const WholeRows<T> rows(q, k, v, call);
        const std::int64_t count = rows.weights_count();
        const std::int64_t others = q.numel() + k.numel() + v.numel() + result.output.numel();
        T* kept = nullptr;
        if (call.keeps && count <= std::max(kept_anyway, others)) {
            result.weights = Tensor::empty({count}, q.dtype());
            kept = result.weights.mutable_data<T>();
        }
        rows.attend(result, kept);
    });
}

void whole_rows_vjp(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
                    const TiledResult& result, const Tensor& gy, TiledGradients& out) {
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto memory = [](Tensor& x) { return x.defined() ? x.mutable_data<T>() : nullptr; };
        const T* const kept = result.weights.defined() ? result.weights.data<T>() : nullptr;
        WholeRows<T>(q, k, v, call)
            .pull(kept, gy.data<T>(), memory(out.q), memory(out.k), memory(out.v));
    });
}

}  // namespace glassgrad::detail
