#pragma once
// Walks a row-major result together with operands that have strides of their own (0 where they
// are broadcast). Axes that every operand runs through alike are merged first, so that the inner
// run is as long as it can be.

#include <glassgrad/tensor/shape.hpp>

#include "parallel.hpp"

#include <array>
#include <cstdint>

namespace glassgrad::detail {

using Strides = std::array<std::int64_t, max_rank>;

/// Row-major strides in elements.
inline Strides contiguous_strides(const Shape& shape) noexcept {
    Strides strides{};
    std::int64_t step = 1;
    for (int i = shape.rank() - 1; i >= 0; --i) {
        strides[static_cast<std::size_t>(i)] = step;
        step *= shape[i];
    }
    return strides;
}

/// Strides of a dense `shape` seen as `target`, to which it broadcasts.
inline Strides broadcast_strides(const Shape& shape, const Shape& target) noexcept {
    Strides strides{};
    std::int64_t step = 1;
    const int offset = target.rank() - shape.rank();
    for (int i = shape.rank() - 1; i >= 0; --i) {
        strides[static_cast<std::size_t>(i + offset)] = shape[i] == 1 ? 0 : step;
        step *= shape[i];
    }
    return strides;
}

/// A walk over `shape` with N operands: run(out_offset, operand_offsets, length, inner_strides)
/// is called for each innermost run, in row-major order.
template <std::size_t N>
class StridedWalk {
  public:
    StridedWalk(const Shape& shape, const std::array<Strides, N>& strides) {
        for (int i = 0; i < shape.rank(); ++i) {
            const auto axis = static_cast<std::size_t>(i);
            if (shape[i] == 1) continue;
            if (rank_ > 0 && merges(shape[i], strides, axis)) {
                sizes_[rank_ - 1] *= shape[i];
                for (std::size_t k = 0; k < N; ++k) strides_[k][rank_ - 1] = strides[k][axis];
                continue;
            }
            sizes_[rank_] = shape[i];
            for (std::size_t k = 0; k < N; ++k) strides_[k][rank_] = strides[k][axis];
            ++rank_;
        }
        if (rank_ == 0) {
            sizes_[0] = 1;
            rank_ = 1;
        }
    }

    template <class Run>
    void operator()(const Run& run) const {
        part(0, runs(), run);
    }

    /// How many innermost runs there are, and how long each is.
    std::int64_t runs() const noexcept {
        std::int64_t count = 1;
        for (std::size_t i = 0; i + 1 < rank_; ++i) count *= sizes_[i];
        return length() == 0 ? 0 : count;
    }
    std::int64_t length() const noexcept { return sizes_[rank_ - 1]; }

    /// The same for the runs [begin, end) only.
    template <class Run>
    void part(std::int64_t begin, std::int64_t end, const Run& run) const {
        if (begin >= end) return;
        std::array<std::int64_t, max_rank> index{};
        std::array<std::int64_t, N> offsets{};
        std::array<std::int64_t, N> inner{};
        const std::size_t last = rank_ - 1;
        for (std::size_t k = 0; k < N; ++k) inner[k] = strides_[k][last];
        std::int64_t left = begin;
        for (std::size_t axis = last; left > 0 && axis-- > 0;) {
            index[axis] = left % sizes_[axis];
            left /= sizes_[axis];
            for (std::size_t k = 0; k < N; ++k) offsets[k] += index[axis] * strides_[k][axis];
        }
        for (std::int64_t at = begin;;) {
            run(at * sizes_[last], offsets, sizes_[last], inner);
            if (++at == end) return;
            for (std::size_t axis = last; axis-- > 0;) {
                for (std::size_t k = 0; k < N; ++k) offsets[k] += strides_[k][axis];
                if (++index[axis] < sizes_[axis]) break;
                for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides_[k][axis] * sizes_[axis];
                index[axis] = 0;
            }
        }
    }

  private:
    bool merges(std::int64_t size, const std::array<Strides, N>& strides,
                std::size_t axis) const noexcept {
        for (std::size_t k = 0; k < N; ++k) {
            if (strides_[k][rank_ - 1] != strides[k][axis] * size) return false;
        }
        return true;
    }

    std::array<std::int64_t, max_rank> sizes_{};
    std::array<Strides, N> strides_{};
    std::size_t rank_ = 0;
};

/// walk(run), in chunks of runs, or of the elements of a long one.
template <std::size_t N, class Run>
void in_chunks(const StridedWalk<N>& walk, const Run& run) {
    const std::int64_t runs = walk.runs();
    const std::int64_t length = walk.length();
    if (runs == 1) {
        walk([&](std::int64_t at, const auto& offsets, std::int64_t n, const auto& steps) {
            for_elements(n, [&](std::int64_t begin, std::int64_t end) {
                auto moved = offsets;
                for (std::size_t k = 0; k < N; ++k) moved[k] += begin * steps[k];
                run(at + begin, moved, end - begin, steps);
            });
        });
    } else {
        for_row_blocks(runs, length,
                       [&](std::int64_t begin, std::int64_t end) { walk.part(begin, end, run); });
    }
}

}  // namespace glassgrad::detail
