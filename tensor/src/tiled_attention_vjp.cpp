// The backward pass of tiled attention: one pass over the keys serves q, k and v.

#include "dispatch.hpp"
#include "tiled_pull.hpp"
#include "whole_attention.hpp"

#include <glassgrad/tensor/ops.hpp>

namespace glassgrad::detail {

using tiled::Keys;
using tiled::Pull;
using tiled::Queries;
using tiled::Tile;

namespace {

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
            p_.products.multiply(count, s.width, keys.size(),
                                 p_.products.packed_rows(rows_.get() + offset * rows),
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
        if (wanted.mask) tiled::added_grad(pull, pull.scores.mask(), out.mask);
        if (wanted.bias) tiled::added_grad(pull, pull.scores.bias(), out.bias);
    });
    return out;
}

}  // namespace glassgrad::detail
