// Elements picked and put by index. All indices are checked before anything is written.

#include <glassgrad/tensor/detail/place.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "along.hpp"
#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"
#include "strided.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace glassgrad {

using detail::Along;
using detail::fail;
using detail::hint;
using detail::Hint;
using detail::Strides;
using detail::with_number;
using detail::with_type;

namespace {

/// What additions to one place are gathered in.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t, double>;

void require_i64(std::string_view op, std::string_view name, const Tensor& indices) {
    detail::require_defined(op, indices);
    if (indices.dtype() == i64) return;
    fail<TypeError>(indices.dtype() == boolean ? hint("where picks by a mask")
                                               : hint("convert with astype(i64)"),
                    "{}: {} must be i64, got {} {}", op, name, indices.dtype(), indices.shape());
}

/// Throws IndexError unless every index lies in [0, size of the axis).
void check_indices(std::string_view op, const Tensor& indices, const Shape& shape, int axis) {
    const bool table = op == "embedding";
    const std::int64_t size = shape[axis];
    const auto limit = static_cast<std::uint64_t>(size);
    const auto values = indices.values<std::int64_t>();
    const auto wrong = std::find_if(values.begin(), values.end(), [limit](std::int64_t i) {
        return static_cast<std::uint64_t>(i) >= limit;  // negative ones are large
    });
    if (wrong == values.end()) return;
    const std::string place = to_string(detail::place(wrong - values.begin(), indices.shape()));
    const std::string_view name = table ? "id" : "index";
    const std::string where =
        table ? fmt::format("{} rows", size) : fmt::format("axis {} of shape {}", axis, shape);
    if (size == 0) {
        fail<IndexError>("{}: {} {} at {}: there is nothing to pick ({})", op, name, *wrong, place,
                         where);
    }
    const Hint fix = *wrong < 0 ? hint("negative ones do not count from the end")
                     : table    ? hint("do the ids belong to this vocabulary?")
                                : Hint{};
    fail<IndexError>(fix, "{}: {} {} at {} is outside 0..{} ({})", op, name, *wrong, place,
                     size - 1, where);
}

void require_same_type(std::string_view op, const Tensor& x, const Tensor& src) {
    if (x.dtype() == src.dtype()) return;
    fail<TypeError>(hint("convert one with astype"), "{}: x is {} {}, src is {} {}", op, x.dtype(),
                    x.shape(), src.dtype(), src.shape());
}

/// Rows of `inner` elements that are worth a chunk of their own.
std::int64_t rows_a_chunk(const Along& along) {
    return std::max<std::int64_t>(
        1, detail::parallel_threshold / std::max<std::int64_t>(1, along.inner));
}

/// Parts of x along `axis`, in place of which the result has the axes of `indices`.
Tensor pick(std::string_view op, const Tensor& x, int axis, const Tensor& indices) {
    check_indices(op, indices, x.shape(), axis);
    if (x.rank() - 1 + indices.rank() > max_rank) {
        fail<ShapeError>("{}: {} at {} indices would have {} axes, at most {} are possible", op,
                         x.shape(), indices.shape(), x.rank() - 1 + indices.rank(), max_rank);
    }
    Shape shape;
    for (int i = 0; i < axis; ++i) shape.push_back(x.shape()[i]);
    for (const std::int64_t size : indices.shape()) shape.push_back(size);
    for (int i = axis + 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
    checked_numel(op, shape, x.dtype());
    Tensor result = Tensor::empty(shape, x.dtype());
    if (result.numel() == 0) return result;
    const Along along(x.shape(), axis);
    const std::int64_t count = indices.numel();
    const auto* at = indices.data<std::int64_t>();
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        T* out = result.mutable_data<T>();
        detail::for_chunks(
            along.outer * count, rows_a_chunk(along), [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row) {
                    const std::int64_t from = row / count * along.size + at[row % count];
                    std::copy_n(in + from * along.inner, along.inner, out + row * along.inner);
                }
            });
    });
    return result;
}

/// The places in `indices` of each of `size` targets: those of target t are order[starts[t]] up
/// to order[starts[t + 1]], in their own order.
struct Groups {
    std::vector<std::int64_t> starts;
    std::vector<std::int64_t> order;

    Groups(std::span<const std::int64_t> indices, std::int64_t size)
        : starts(static_cast<std::size_t>(size) + 1), order(indices.size()) {
        for (const std::int64_t t : indices) ++starts[static_cast<std::size_t>(t) + 1];
        std::partial_sum(starts.begin(), starts.end(), starts.begin());
        std::vector<std::int64_t> next(starts.begin(), starts.end() - 1);
        for (std::size_t i = 0; i < indices.size(); ++i) {
            const std::int64_t slot = next[static_cast<std::size_t>(indices[i])]++;
            order[static_cast<std::size_t>(slot)] = static_cast<std::int64_t>(i);
        }
    }
    std::span<const std::int64_t> of(std::int64_t target) const {
        const auto t = static_cast<std::size_t>(target);
        return {order.data() + starts[t], order.data() + starts[t + 1]};
    }
};

/// row[j] += the rows of src (`step` long) at `places`, rounded once.
template <class T>
void add_rows(T* row, std::int64_t step, const T* src, std::span<const std::int64_t> places) {
    constexpr std::int64_t block = 128;
    Sum<T> sums[block];
    for (std::int64_t begin = 0; begin < step; begin += block) {
        const std::int64_t n = std::min(block, step - begin);
        for (std::int64_t j = 0; j < n; ++j) sums[j] = static_cast<Sum<T>>(row[begin + j]);
        for (const std::int64_t place : places) {
            const T* from = src + place * step + begin;
            for (std::int64_t j = 0; j < n; ++j) sums[j] += static_cast<Sum<T>>(from[j]);
        }
        for (std::int64_t j = 0; j < n; ++j) row[begin + j] = static_cast<T>(sums[j]);
    }
}

/// Checks what gather and scatter_add share; returns the axis.
int check_gather(std::string_view op, const Tensor& x, std::int64_t axis, const Tensor& index) {
    detail::require_defined(op, x);
    require_i64(op, "index", index);
    const int at = normalize_axis(op, axis, x.shape());
    if (index.rank() != x.rank()) {
        fail<ShapeError>(hint("one index an element: reshape or expand the index"),
                         "{}: x {} and index {} differ in their number of axes", op, x.shape(),
                         index.shape());
    }
    for (int i = 0; i < x.rank(); ++i) {
        if (i != at && index.shape()[i] > x.shape()[i]) {
            fail<ShapeError>("{}: index {} is larger than x {} at axis {}: only axis {} may be", op,
                             index.shape(), x.shape(), i, at);
        }
    }
    check_indices(op, index, x.shape(), at);
    return at;
}

/// f(offset in x, n, step, first element of the index) for each run of the index.
template <class Run>
void along_index(const Tensor& x, int axis, const Tensor& index, const Run& run) {
    Strides strides = detail::contiguous_strides(x.shape());
    const std::int64_t stride = strides[static_cast<std::size_t>(axis)];
    strides[static_cast<std::size_t>(axis)] = 0;
    const auto* at = index.data<std::int64_t>();
    const detail::StridedWalk<1> walk(index.shape(), {strides});
    walk([&](std::int64_t first, const auto& offsets, std::int64_t n, const auto& steps) {
        for (std::int64_t i = 0; i < n; ++i) {
            run(offsets[0] + i * steps[0] + at[first + i] * stride, first + i);
        }
    });
}

}  // namespace

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
    detail::require_defined("select", x);
    const int at = normalize_axis("select", axis, x.shape());
    const std::int64_t size = x.shape()[at];
    if (index < -size || index >= size) {
        fail<IndexError>(size == 0 ? Hint{} : hint("indices go from {} to {}", -size, size - 1),
                         "select: index {} is outside axis {} of shape {}", index, at, x.shape());
    }
    const std::int64_t start = index < 0 ? index + size : index;
    Shape shape = x.shape();
    shape.erase(at);
    return slice(x, at, {.start = start, .stop = start + 1}).with_shape(shape);
}

Tensor index(const Tensor& x, const Tensor& indices) {
    detail::require_defined("index", x);
    require_i64("index", "indices", indices);
    return pick("index", x, normalize_axis("index", 0, x.shape()), indices);
}

Tensor index_select(const Tensor& x, std::int64_t axis, const Tensor& indices) {
    detail::require_defined("index_select", x);
    require_i64("index_select", "indices", indices);
    const int at = normalize_axis("index_select", axis, x.shape());
    if (indices.rank() != 1) {
        fail<ShapeError>(hint("index takes indices of any shape, along the first axis"),
                         "index_select: indices must be a vector, got {}", indices.shape());
    }
    return pick("index_select", x, at, indices);
}

Tensor index_add(Tensor x, std::int64_t axis, const Tensor& indices, const Tensor& src) {
    detail::require_defined("index_add", x);
    detail::require_defined("index_add", src);
    require_i64("index_add", "indices", indices);
    require_same_type("index_add", x, src);
    const int at = normalize_axis("index_add", axis, x.shape());
    if (indices.rank() != 1) {
        fail<ShapeError>("index_add: indices must be a vector, got {}", indices.shape());
    }
    Shape shape = x.shape();
    shape[at] = indices.numel();
    if (src.shape() != shape) {
        fail<ShapeError>("index_add: {} indices along axis {} of {} need src {}, got {}",
                         indices.numel(), at, x.shape(), shape, src.shape());
    }
    check_indices("index_add", indices, x.shape(), at);
    const Along along(x.shape(), at);
    const std::int64_t count = indices.numel();
    with_number("index_add", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if (src.numel() == 0) return;
        const Groups groups(indices.values<std::int64_t>(), along.size);
        const T* in = src.data<T>();
        T* out = x.mutable_data<T>();
        detail::for_chunks(along.outer * along.size, rows_a_chunk(along),
                           [&](std::int64_t begin, std::int64_t end) {
                               for (std::int64_t row = begin; row < end; ++row) {
                                   const auto places = groups.of(row % along.size);
                                   if (places.empty()) continue;
                                   add_rows(out + row * along.inner, along.inner,
                                            in + row / along.size * count * along.inner, places);
                               }
                           });
    });
    return x;
}

Tensor gather(const Tensor& x, std::int64_t axis, const Tensor& index) {
    const int at = check_gather("gather", x, axis, index);
    Tensor result = Tensor::empty(index.shape(), x.dtype());
    with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.data<T>();
        T* out = result.mutable_data<T>();
        along_index(x, at, index, [&](std::int64_t from, std::int64_t to) { out[to] = in[from]; });
    });
    return result;
}

Tensor scatter_add(Tensor x, std::int64_t axis, const Tensor& index, const Tensor& src) {
    detail::require_defined("scatter_add", src);
    const int at = check_gather("scatter_add", x, axis, index);
    require_same_type("scatter_add", x, src);
    if (src.shape() != index.shape()) {
        fail<ShapeError>(hint("slice src to the shape of the index"),
                         "scatter_add: src {} and index {} differ", src.shape(), index.shape());
    }
    // Where a place can be hit more than once, f32 is added up in f64.
    if (x.dtype() == f32 && index.shape()[at] > 1) {
        return scatter_add(x.astype(f64), axis, index, src.astype(f64)).astype(f32);
    }
    with_number("scatter_add", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = src.data<T>();
        T* out = x.mutable_data<T>();
        along_index(x, at, index, [&](std::int64_t to, std::int64_t from) {
            out[to] = static_cast<T>(static_cast<Sum<T>>(out[to]) + static_cast<Sum<T>>(in[from]));
        });
    });
    return x;
}

Tensor embedding(const Tensor& weight, const Tensor& ids) {
    detail::require_defined("embedding", weight);
    require_i64("embedding", "ids", ids);
    if (weight.rank() != 2) {
        fail<ShapeError>("embedding: weight must be (rows, width), got {}", weight.shape());
    }
    return pick("embedding", weight, 0, ids);
}

}  // namespace glassgrad
