// The gradient of a mask or bias that is added in tiled attention: it may be broadcast, so the pass
// is ordered by its elements.

#include "tiled_pull.hpp"

namespace glassgrad::detail::tiled {
namespace {

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

}  // namespace

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

template void added_grad(const Pull<float>&, const Spread&, Tensor&);
template void added_grad(const Pull<double>&, const Spread&, Tensor&);

}  // namespace glassgrad::detail::tiled
