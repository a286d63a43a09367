#pragma once
// What reductions share. The reduced axes are brought to the end (a copy only when they are not
// there yet or can't be added up row by row), so that each result comes from one run in a fixed
// order.

#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace glassgrad::detail {

/// How a reduction sees x: `rows` results, each over `length` elements that lie together.
struct Plan {
    Tensor x;
    Shape result_shape;
    std::int64_t rows = 1;
    std::int64_t length = 1;
};

inline Plan plan(std::string_view op, const Tensor& x, const Axes& axes, bool keepdims) {
    require_defined(op, x);
    const std::uint32_t mask = normalize_axes(op, axes, x.shape());
    Plan plan;
    std::int64_t order[max_rank];
    int kept = 0;
    bool at_end = true;
    for (int i = 0; i < x.rank(); ++i) {
        if (mask >> i & 1u) {
            plan.length *= x.shape()[i];
            if (keepdims) plan.result_shape.push_back(1);
        } else {
            at_end = at_end && kept == i;
            plan.rows *= x.shape()[i];
            plan.result_shape.push_back(x.shape()[i]);
            order[kept++] = i;
        }
    }
    if (at_end) {
        plan.x = x;
        return plan;
    }
    int count = kept;
    for (int i = 0; i < x.rank(); ++i) {
        if (mask >> i & 1u) order[count++] = i;
    }
    plan.x = permute(x, std::span<const std::int64_t>(order, static_cast<std::size_t>(count)));
    return plan;
}

inline Shape reduced_shape(std::string_view op, const Tensor& x, const Axes& axes, bool keepdims) {
    const std::uint32_t mask = normalize_axes(op, axes, x.shape());
    Shape shape;
    for (int i = 0; i < x.rank(); ++i) {
        const bool reduced = (mask >> i & 1u) != 0;
        if (!reduced || keepdims) shape.push_back(reduced ? 1 : x.shape()[i]);
    }
    return shape;
}

inline void require_elements(std::string_view op, const Plan& plan, const Tensor& x) {
    if (plan.length == 0 && plan.rows > 0) {
        fail<ValueError>("{}: nothing to reduce: shape {} has no elements along the axes asked", op,
                         x.shape());
    }
}

/// The sum of a run: eight partial sums over blocks, blocks joined pairwise, f32 in f64.
template <class T>
auto sum_run(const T* x, std::int64_t n) {
    using Sum = std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t, double>;
    constexpr std::int64_t block = 256;
    const auto sum_block = [](const T* p, std::int64_t count) {
        Sum lanes[8] = {};
        std::int64_t i = 0;
        for (; i + 8 <= count; i += 8) {
            for (int k = 0; k < 8; ++k) lanes[k] += static_cast<Sum>(p[i + k]);
        }
        for (int k = 0; i < count; ++i, ++k) lanes[k] += static_cast<Sum>(p[i]);
        return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
               ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    };
    if (n <= block) return sum_block(x, n);
    // A binary counter of partial sums: the tree depends on n alone.
    Sum tree[64];
    std::uint64_t filled = 0;
    for (std::int64_t begin = 0; begin < n; begin += block, ++filled) {
        Sum carry = sum_block(x + begin, std::min(block, n - begin));
        int level = 0;
        for (; filled >> level & 1u; ++level) carry = tree[level] + carry;
        tree[level] = carry;
    }
    Sum total{};
    for (int level = 0; filled >> level; ++level) {
        if (filled >> level & 1u) total = tree[level] + total;
    }
    return total;
}

/// What `join` makes, in order, of f(x, count) of the pieces of a run, which its length alone
/// fixes.
template <class Part, class T, class F, class Join>
Part in_pieces(const T* x, std::int64_t n, const F& f, const Join& join) {
    constexpr std::int64_t piece = std::int64_t{1} << 16;
    if (n <= piece) return f(x, n);
    std::vector<Part> parts(static_cast<std::size_t>((n - 1) / piece + 1));
    for_chunks(n, piece, [&](std::int64_t begin, std::int64_t end) {
        parts[static_cast<std::size_t>(begin / piece)] = f(x + begin, end - begin);
    });
    Part all = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) all = join(all, parts[i]);
    return all;
}

/// Term(x[0]) + ... in f64, a block at a time.
template <class T, class F>
double sum_of_terms(const T* x, std::int64_t n, const F& term) {
    const auto sum = [&](const T* from, std::int64_t count) {
        constexpr std::int64_t block = 256;
        double terms[block];
        double total = 0;
        for (std::int64_t begin = 0; begin < count; begin += block) {
            const std::int64_t size = std::min(block, count - begin);
            for (std::int64_t i = 0; i < size; ++i) terms[i] = term(from[begin + i]);
            total += sum_run(terms, size);
        }
        return total;
    };
    return in_pieces<double>(x, n, sum, std::plus<>());
}

/// One result a row: out[r] = f(row, length).
template <class T, class R, class F>
Tensor reduce_rows(const Plan& plan, DType dtype, const F& f) {
    Tensor result = Tensor::empty(plan.result_shape, dtype);
    const T* in = plan.x.data<T>();
    R* out = result.mutable_data<R>();
    const std::int64_t rows_a_chunk =
        std::max<std::int64_t>(1, parallel_threshold / std::max<std::int64_t>(1, plan.length));
    for_chunks(plan.rows, rows_a_chunk, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) out[r] = f(in + r * plan.length, plan.length);
    });
    return result;
}

}  // namespace glassgrad::detail
