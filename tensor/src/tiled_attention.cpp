// The forward pass of tiled attention. Sums over keys run in f64.

#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "tiled_scores.hpp"

namespace glassgrad::detail {
namespace {

constexpr std::int64_t lanes = 8;

/// The largest of `n` numbers and `first`; NaN counts nothing.
template <class T>
T largest(const T* x, std::int64_t n, T first) {
    T best[lanes];
    std::fill_n(best, lanes, first);
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (std::int64_t j = 0; j < lanes; ++j) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
    }
    for (; i < n; ++i) best[0] = x[i] > best[0] ? x[i] : best[0];
    return *std::max_element(best, best + lanes);
}

template <class T>
double sum_of(const T* x, std::int64_t n) {
    double sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (std::int64_t j = 0; j < lanes; ++j) sums[j] += static_cast<double>(x[i + j]);
    }
    for (; i < n; ++i) sums[0] += static_cast<double>(x[i]);
    double sum = 0;
    for (const double each : sums) sum += each;
    return sum;
}

/// The rows of one query tile: softmax over the keys seen so far, not yet divided by the sum.
template <class T>
class RunningRows {
  public:
    RunningRows(std::int64_t rows, std::int64_t width)
        : rows_(rows), width_(width), sums_(rows * (width + 1)), largest_(rows) {
        std::fill_n(sums_.get(), rows * (width + 1), 0.0);
        std::fill_n(largest_.get(), rows, -std::numeric_limits<T>::infinity());
    }

    /// Scores of the next keys become weights, relative to the largest so far.
    void weigh(T* scores, std::int64_t count) {
        for (std::int64_t i = 0; i < rows_; ++i, scores += count) {
            const T before = largest_.get()[i];
            const T top = largest(scores, count, before);
            if (top == -std::numeric_limits<T>::infinity() && !holds_nan(scores, count)) {
                std::fill_n(scores, count, T{0});
                continue;
            }
            // All that is not NaN is hidden when the largest is -inf: exp(-inf - 0) is 0.
            const T origin = top == -std::numeric_limits<T>::infinity() ? T{0} : top;
            for (std::int64_t j = 0; j < count; ++j) scores[j] = fast_exp(scores[j] - origin);
            if (top != before) rescale(i, fast_exp(before - top));
            largest_.get()[i] = top;
            sum(i) += sum_of(scores, count);
        }
    }
    void add(const T* products) {
        for (std::int64_t i = 0; i < rows_; ++i) {
            double* out = sums_.get() + i * (width_ + 1);
            for (std::int64_t d = 0; d < width_; ++d) {
                out[d] += static_cast<double>(products[i * width_ + d]);
            }
        }
    }
    /// The result, times `factor`, and what is kept of each row.
    void write(double factor, T* y, double* kept) const {
        for (std::int64_t i = 0; i < rows_; ++i) {
            const double* row = sums_.get() + i * (width_ + 1);
            const double total = row[width_];
            kept[2 * i] = static_cast<double>(largest_.get()[i]);
            kept[2 * i + 1] = total;
            const bool blind = total == 0 || factor == 0;
            for (std::int64_t d = 0; d < width_; ++d) {
                y[i * width_ + d] = blind ? T{0} : static_cast<T>(row[d] * factor / total);
            }
        }
    }

  private:
    static bool holds_nan(const T* x, std::int64_t n) {
        return std::any_of(x, x + n, [](T each) { return each != each; });
    }
    double& sum(std::int64_t i) { return sums_.get()[i * (width_ + 1) + width_]; }
    void rescale(std::int64_t i, T by) {
        double* row = sums_.get() + i * (width_ + 1);
        if (std::isnan(row[width_])) return;
        // A weight that has become 0 takes nothing, even from an infinite value.
        for (std::int64_t d = 0; d <= width_; ++d) row[d] = by == 0 ? 0 : row[d] * double{by};
    }

    std::int64_t rows_;
    std::int64_t width_;
    Scratch<double> sums_;  // of weighted values, and of the weights
    Scratch<T> largest_;
};

template <class T>
void attend_tiles(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
                  TiledResult& result) {
    const TiledSizes sizes(q, k, v, call.tile);
    const TileScores<T> scores(q, k, call, sizes);
    const bool finite = all_finite(v);
    const T* values = v.data<T>();
    T* y = result.output.mutable_data<T>();
    auto* kept_rows = result.rows.mutable_data<double>();
    const std::int64_t width = sizes.value_width;
    const std::int64_t tile = sizes.tile;
    const auto run = [&](std::int64_t task) {
        const std::int64_t n = task / sizes.query_tiles();
        const Range rows = sizes.query_tile(task % sizes.query_tiles());
        const std::int64_t room = std::min(tile, sizes.keys);
        const Scratch<T> weights(rows.size() * room);
        const Scratch<T> products(rows.size() * width);
        const Scratch<T> bounded(finite ? 0 : room * width);
        const Scratch<bool> kept(call.dropout_p > 0 ? rows.size() * room : 0);
        RunningRows<T> running(rows.size(), width);
        for (std::int64_t t = 0; t < sizes.key_tiles(); ++t) {
            const Range columns = sizes.key_tile(t);
            if (!scores.meets(rows, columns)) continue;
            const std::int64_t count = columns.size();
            T* const w = weights.get();
            scores.fill(n, rows, columns, w);
            running.weigh(w, count);
            if (call.dropout_p > 0) {
                scores.draw_kept(n, rows, columns, kept.get());
                for (std::int64_t i = 0; i < rows.size() * count; ++i) {
                    w[i] = kept.get()[i] ? w[i] : T{0};
                }
            }
            take_weighted<T>(rows.size(), width, count, {w, count, false},
                             values + (n / sizes.group * sizes.keys + columns.begin) * width,
                             finite ? nullptr : bounded.get(), products.get());
            running.add(products.get());
        }
        const std::int64_t first = n * sizes.queries + rows.begin;
        running.write(call.dropout_p > 0 ? kept_factor(call.dropout_p) : 1.0, y + first * width,
                      kept_rows + 2 * first);
    };
    sizes.for_tasks(sizes.matrices * sizes.query_tiles(), run);
}

}  // namespace

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
    return !watched && q.size(-2) * k.size(-2) >= tiled_attention_threshold &&
           tiles_fit(q.shape(), k.shape(), v.shape());
}

TiledCall tiled_call(const Tensor& q, const Tensor& k, const Tensor& v,
                     const SdpaOptions& options) {
    check_attention(q, k, v, options);
    if (!tiles_fit(q.shape(), k.shape(), v.shape())) {
        fail<ShapeError>(hint("broadcast_to them, or take another form"),
                         "tiled_attention: q {}, k {} and v {} have different leading axes",
                         q.shape(), k.shape(), v.shape());
    }
    const double width = std::max(1.0, static_cast<double>(q.shape().back()));
    TiledCall call{.scale = options.scale ? *options.scale : 1 / std::sqrt(width),
                   .mask = options.mask,
                   .bias = options.bias,
                   .causal = options.causal,
                   .window = options.window,
                   .alibi = options.alibi,
                   .dropout_p = options.dropout_p,
                   .tile = options.tile};
    if (options.dropout_p > 0) {
        call.rng = *options.rng;
        const auto drawn = static_cast<std::uint64_t>(scores_shape(q.shape(), k.shape()).numel());
        options.rng->set_position(options.rng->position() + drawn);
    }
    return call;
}

TiledResult attend_in_tiles(const Tensor& q, const Tensor& k, const Tensor& v,
                            const TiledCall& call) {
    Shape shape = q.shape();
    shape[shape.rank() - 1] = v.shape().back();
    Shape rows = q.shape();
    rows[rows.rank() - 1] = 2;
    TiledResult result{Tensor::empty(shape, q.dtype()), Tensor::empty(rows, f64)};
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        attend_tiles<typename decltype(type)::type>(q, k, v, call, result);
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
