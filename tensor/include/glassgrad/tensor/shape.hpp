#pragma once
// Sizes of a tensor, rank 0 to 8, without heap memory; axes; checked arithmetic on sizes.

#include <glassgrad/tensor/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace glassgrad {

inline constexpr int max_rank = 8;

/// Sizes, outermost first. Printed as a tuple: `()`, `(3,)`, `(2, 3)`.
class Shape {
  public:
    constexpr Shape() noexcept = default;
    /// Throws ShapeError when there are more than 8 sizes. A size of -1 is kept for `reshape`.
    Shape(std::initializer_list<std::int64_t> sizes)
        : Shape(std::span<const std::int64_t>(sizes.begin(), sizes.size())) {}
    explicit Shape(std::span<const std::int64_t> sizes);

    int rank() const noexcept { return static_cast<int>(rank_); }
    std::int64_t operator[](int axis) const noexcept { return sizes_[axis]; }
    std::int64_t& operator[](int axis) noexcept { return sizes_[axis]; }
    const std::int64_t* begin() const noexcept { return sizes_; }
    const std::int64_t* end() const noexcept { return sizes_ + rank_; }
    std::int64_t back() const noexcept { return sizes_[rank_ - 1]; }

    /// Product of the sizes; 1 for rank 0. The shape of a tensor never overflows.
    std::int64_t numel() const noexcept {
        std::int64_t n = 1;
        for (int i = 0; i < rank_; ++i) n *= sizes_[i];
        return n;
    }

    /// Throws ShapeError at rank 8.
    void push_back(std::int64_t size);
    void insert(int axis, std::int64_t size);
    void erase(int axis) noexcept;

    friend bool operator==(const Shape& a, const Shape& b) noexcept {
        if (a.rank_ != b.rank_) return false;
        for (int i = 0; i < a.rank_; ++i) {
            if (a.sizes_[i] != b.sizes_[i]) return false;
        }
        return true;
    }

  private:
    friend class Tensor;
    void set(std::int64_t rows, std::int64_t columns) noexcept {
        sizes_[0] = rows;
        sizes_[1] = columns;
        rank_ = 2;
    }

    std::int64_t sizes_[max_rank] = {};
    std::int64_t rank_ = 0;  ///< as wide as a size: copies of a fresh shape then need no wait
};

std::string to_string(const Shape& shape);

/// A set of axes; negative ones count from the end. The default means all axes.
class Axes {
  public:
    constexpr Axes() noexcept = default;
    Axes(std::int64_t axis) : Axes({axis}) {}
    Axes(std::initializer_list<std::int64_t> axes)
        : Axes(std::span<const std::int64_t>(axes.begin(), axes.size())) {}
    explicit Axes(std::span<const std::int64_t> axes);

    bool all() const noexcept { return all_; }
    std::span<const std::int64_t> values() const noexcept {
        return {values_, static_cast<std::size_t>(count_)};
    }

  private:
    std::int64_t values_[max_rank] = {};
    int count_ = 0;
    bool all_ = true;
};

/// `axis` brought into [0, rank). Throws IndexError that names `op`, the axis and the shape.
int normalize_axis(std::string_view op, std::int64_t axis, const Shape& shape);

/// Bit k is set when axis k is meant. Throws IndexError on an axis outside or named twice.
std::uint32_t normalize_axes(std::string_view op, const Axes& axes, const Shape& shape);

/// NumPy's rule: align at the right; sizes agree or one of them is 1. Throws ShapeError.
Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b);

/// Elements of `shape`, checked: no negative size, and count times item size below 2^62 bytes.
/// The one place that every reader and every allocation asks. Throws ShapeError naming `op`.
std::int64_t checked_numel(std::string_view op, const Shape& shape, DType dtype);

/// As `checked_numel`, in bytes.
std::size_t checked_bytes(std::string_view op, const Shape& shape, DType dtype);

}  // namespace glassgrad
