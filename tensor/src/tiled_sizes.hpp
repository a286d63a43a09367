#pragma once
// The sizes of tiled attention, and where its matrices lie.

#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include "parallel.hpp"

#include <algorithm>
#include <cstdint>

namespace glassgrad::detail {

inline std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
    return a / b + (a % b != 0 ? 1 : 0);
}
inline std::int64_t rounded_up(std::int64_t a, std::int64_t unit) {
    return quotient_up(a, unit) * unit;
}

/// Some rows or columns of the scores.
struct Range {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t size() const noexcept { return end - begin; }
};

/// Where the matrices (tokens, width) of a tensor lie: heads are an axis of their own, or side by
/// side in each token.
struct Matrices {
    std::int64_t heads = 1;
    std::int64_t from_batch = 0;
    std::int64_t from_head = 0;
    std::int64_t row = 0;  ///< from token to token

    Matrices() = default;
    /// `shape` is (..., heads, tokens, width), however they lie.
    Matrices(const Shape& shape, bool side_by_side)
        : heads(shape.rank() > 2 ? shape[shape.rank() - 3] : 1) {
        const std::int64_t tokens = shape[shape.rank() - 2];
        const std::int64_t width = shape.back();
        from_batch = heads * tokens * width;
        from_head = side_by_side ? width : tokens * width;
        row = side_by_side ? heads * width : width;
    }
    std::int64_t at(std::int64_t n, std::int64_t token) const noexcept {
        return n / heads * from_batch + n % heads * from_head + token * row;
    }
};

struct TiledSizes {
    std::int64_t matrices = 1;  ///< (query, key) matrices: all leading axes of q
    std::int64_t heads;
    std::int64_t group;  ///< so many matrices that lie together share keys and values
    std::int64_t queries;
    std::int64_t keys;
    std::int64_t width;        ///< of q and k
    std::int64_t value_width;  ///< of v
    std::int64_t query_tile_size;
    std::int64_t key_tile_size;
    Matrices q_at;  ///< and the result, if its heads are as wide
    Matrices k_at;
    Matrices v_at;
    Matrices y_at;

    /// `wanted` unless the call says otherwise: queries and keys of a tile.
    TiledSizes(const Tensor& q_given, const Tensor& k_given, const Tensor& v_given,
               const TiledCall& call, std::int64_t wanted_queries, std::int64_t wanted_keys) {
        const Shape q = heads_shape(q_given.shape(), call.heads);
        const Shape k = heads_shape(k_given.shape(), call.kv_heads);
        const Shape v = heads_shape(v_given.shape(), call.kv_heads);
        Shape y = q;
        y[y.rank() - 1] = v.back();
        const bool side_by_side = call.heads > 0;
        q_at = Matrices(q, side_by_side);
        k_at = Matrices(k, side_by_side);
        v_at = Matrices(v, side_by_side);
        y_at = Matrices(y, side_by_side);
        heads = q_at.heads;
        group = std::max<std::int64_t>(1, heads / std::max<std::int64_t>(1, k_at.heads));
        queries = q[q.rank() - 2];
        keys = k[k.rank() - 2];
        width = q.back();
        value_width = v.back();
        query_tile_size = call.tile > 0 ? call.tile : wanted_queries;
        key_tile_size = call.tile > 0 ? call.tile : wanted_keys;
        for (int i = 0; i < q.rank() - 2; ++i) matrices *= q[i];
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
    std::int64_t query_tiles() const noexcept { return quotient_up(queries, query_tile_size); }
    std::int64_t key_tiles() const noexcept { return quotient_up(keys, key_tile_size); }
    /// Into how many parts the backward pass cuts the keys, so that few heads still keep several
    /// threads busy.
    std::int64_t key_parts() const noexcept {
        constexpr std::int64_t enough = 8;
        const std::int64_t shared = std::max<std::int64_t>(1, matrices / group);
        return std::clamp<std::int64_t>(enough / shared, 1, std::max<std::int64_t>(1, key_tiles()));
    }
    Range query_tile(std::int64_t i) const noexcept { return range(i, queries, query_tile_size); }
    Range key_tile(std::int64_t i) const noexcept { return range(i, keys, key_tile_size); }

  private:
    static Range range(std::int64_t i, std::int64_t n, std::int64_t size) noexcept {
        return {i * size, std::min(n, (i + 1) * size)};
    }
};

}  // namespace glassgrad::detail
