#pragma once
// Tensor: a dense, row-major array with value semantics. A handle is cheap to copy; whoever
// writes to a buffer that others hold gets a copy of its own first, so values never alias.

#include <glassgrad/tensor/detail/counted.hpp>
#include <glassgrad/tensor/dtype.hpp>
#include <glassgrad/tensor/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {

namespace detail {

/// A pooled block: this header, then the elements.
struct alignas(64) Buffer {
    Counter references{1};
    std::size_t block_bytes = 0;

    std::byte* data() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};
void dispose(Buffer* buffer) noexcept;

struct Elements;

/// Throws ShapeError unless `shape` holds `count` elements.
void check_count(std::string_view op, const Shape& shape, std::size_t count);

}  // namespace detail

class Tensor {
  public:
    /// Undefined: `defined()` is false, and reading its elements throws ValueError.
    Tensor() noexcept = default;

    /// Elements are not initialised. Throws ShapeError (sizes) or MemoryError.
    static Tensor empty(const Shape& shape, DType dtype = f32);
    /// As `empty`, of shape (rows, columns).
    static Tensor empty_matrix(std::int64_t rows, std::int64_t columns, DType dtype = f32);

    bool defined() const noexcept { return static_cast<bool>(buffer_); }
    const Shape& shape() const noexcept { return shape_; }
    DType dtype() const noexcept { return dtype_; }
    int rank() const noexcept { return shape_.rank(); }
    std::int64_t numel() const noexcept { return shape_.numel(); }
    /// Size along `axis`, which may be negative. Throws IndexError.
    std::int64_t size(std::int64_t axis) const {
        return shape_[normalize_axis("size", axis, shape_)];
    }

    /// Elements in row-major order. Throws TypeError unless T is the element type.
    template <class T>
    const T* data() const {
        require(dtype_of<T>());
        return reinterpret_cast<const T*>(buffer_->data());
    }
    /// As `data`, for writing: copies the buffer first if others hold it.
    template <class T>
    T* mutable_data() {
        require(dtype_of<T>());
        if (buffer_->references.load() != 1) unshare();
        return reinterpret_cast<T*>(buffer_->data());
    }
    template <class T>
    std::span<const T> values() const {
        return {data<T>(), static_cast<std::size_t>(numel())};
    }
    /// The bytes of all elements, whatever their type.
    const std::byte* bytes() const {
        require(dtype_);
        return buffer_->data();
    }

    /// The only element, as a number; throws ValueError unless there is exactly one.
    double item() const;
    /// The element at `index`, one number an axis, negative ones from the end. Throws IndexError.
    double at(std::initializer_list<std::int64_t> index) const;
    /// As `at` and `item` in the element type itself (i64 beyond 2^53 stays exact).
    template <class T>
    T item() const {
        return data<T>()[single()];
    }
    template <class T>
    T at(std::initializer_list<std::int64_t> index) const {
        return data<T>()[offset(index)];
    }
    /// Writes one element; throws IndexError, or ValueError when the type cannot hold `value`.
    void set(std::initializer_list<std::int64_t> index, double value);

    /// The same values in another type. Float to i64 cuts towards zero and throws ValueError on
    /// NaN, infinity and values outside; any non-zero number is true.
    Tensor astype(DType dtype) const;
    /// A copy with a buffer of its own.
    Tensor clone() const;
    bool shares_buffer_with(const Tensor& other) const noexcept {
        return buffer_ && buffer_.get() == other.buffer_.get();
    }
    /// True when no other handle holds the buffer.
    bool is_unique() const noexcept { return buffer_ && buffer_->references.load() == 1; }

    /// The same buffer seen with another shape of as many elements (checked by the caller).
    Tensor with_shape(const Shape& shape) const {
        Tensor result = *this;
        result.shape_ = shape;
        return result;
    }

  private:
    friend struct detail::Elements;

    void require(DType dtype) const {
        if (!buffer_ || dtype_ != dtype) throw_wrong_access(dtype);
    }
    [[noreturn]] void throw_wrong_access(DType dtype) const;
    void unshare();
    std::int64_t single() const;
    std::int64_t offset(std::initializer_list<std::int64_t> index) const;

    Shape shape_;
    DType dtype_ = f32;
    detail::Counted<detail::Buffer> buffer_;
};

namespace detail {

/// For the engine, which keeps a place for each gradient: a tensor that has its shape and type
/// while its elements come and go, so that eight bytes move instead of a handle.
struct Elements {
    /// A place for elements of a tensor like `x`: undefined until `take`.
    static Tensor place_for(const Tensor& x) noexcept {
        Tensor place;
        place.shape_ = x.shape_;
        place.dtype_ = x.dtype_;
        return place;
    }
    /// Moves the elements of `from`, which has the shape and type of `place`.
    static void take(Tensor& place, Tensor&& from) noexcept {
        place.buffer_ = std::move(from.buffer_);
    }
    static void drop(Tensor& place) noexcept { place.buffer_ = {}; }
};

}  // namespace detail

/// Nested lists of numbers for `tensor`: `{{1, 2}, {3, 4}}`.
class NestedList {
  public:
    template <class T>
    requires std::is_arithmetic_v<T> NestedList(T value)
        : number_(static_cast<double>(value)),
          integer_(static_cast<std::int64_t>(std::is_floating_point_v<T> ? 0 : value)),
          is_number_(true),
          is_integer_(!std::is_floating_point_v<T>) {}
    NestedList(std::initializer_list<NestedList> items) : items_(items) {}

    bool is_number() const noexcept { return is_number_; }
    bool is_integer() const noexcept { return is_integer_; }
    double number() const noexcept { return number_; }
    std::int64_t integer() const noexcept { return integer_; }
    const std::vector<NestedList>& items() const noexcept { return items_; }

  private:
    std::vector<NestedList> items_;
    double number_ = 0;
    std::int64_t integer_ = 0;
    bool is_number_ = false;
    bool is_integer_ = false;
};

/// A tensor of the numbers given, `tensor({{1, 2}, {3, 4}}, f64)`. Throws ShapeError when rows
/// are ragged.
Tensor tensor(const NestedList& values, DType dtype = f32);
/// Row-major values; throws ShapeError unless there are as many as `shape` says.
Tensor from_values(std::span<const double> values, const Shape& shape, DType dtype = f32);
/// As `from_values`, in the type of the values.
template <class T>
Tensor from_span(std::span<const T> values, const Shape& shape) {
    detail::check_count("from_span", shape, values.size());
    Tensor result = Tensor::empty(shape, dtype_of<T>());
    T* out = result.mutable_data<T>();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return result;
}

Tensor zeros(const Shape& shape, DType dtype = f32);
Tensor ones(const Shape& shape, DType dtype = f32);
Tensor full(const Shape& shape, double value, DType dtype = f32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// start, start + step, … below stop (above it for a negative step), as NumPy counts them.
Tensor arange(double start, double stop, double step = 1, DType dtype = i64);
Tensor arange(std::int64_t stop);
/// `count` values from start to stop, both included.
Tensor linspace(double start, double stop, std::int64_t count, DType dtype = f32);
/// The (n, n) identity.
Tensor eye(std::int64_t n, DType dtype = f32);

struct PrintOptions {
    int precision = 4;              ///< most digits after the point
    std::int64_t threshold = 1000;  ///< more elements than this are summarised
    std::int64_t edge_items = 3;    ///< items kept at each end of a summarised axis
    int line_width = 75;
};
/// NumPy's layout: aligned columns, `...` for what a summary leaves out.
std::string to_string(const Tensor& x, const PrintOptions& options = {});
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace glassgrad
