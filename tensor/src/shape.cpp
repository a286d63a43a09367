#include <glassgrad/tensor/shape.hpp>

#include "fail.hpp"

namespace glassgrad {

using detail::fail;
using detail::hint;

namespace {

constexpr std::int64_t max_bytes = std::int64_t{1} << 62;

[[noreturn]] void fail_rank(std::size_t rank) {
    fail<ShapeError>("shape: rank {} is above the limit of {}", rank, max_rank);
}

std::int64_t large_numel(std::string_view op, const Shape& shape, DType dtype) {
    // Sizes beside a zero count too, as in NumPy: strides and partial products must not overflow.
    std::int64_t count = 1;
    bool empty = false;
    bool overflow = false;
    for (const std::int64_t size : shape) {
        if (size < 0) {
            fail<ShapeError>("{}: size {} in shape {} is negative", op, size, shape);
        }
        empty = empty || size == 0;
        overflow = __builtin_mul_overflow(count, size == 0 ? 1 : size, &count) || overflow;
    }
    if (overflow || count > max_bytes / static_cast<std::int64_t>(item_size(dtype))) {
        fail<ShapeError>("{}: shape {} of {} is too large: its bytes exceed 2^62", op, shape,
                         dtype);
    }
    return empty ? 0 : count;
}

}  // namespace

std::string_view name(DType dtype) noexcept {
    switch (dtype) {
        case DType::f32: return "f32";
        case DType::f64: return "f64";
        case DType::i64: return "i64";
        case DType::boolean: return "boolean";
    }
    return "unknown";
}

Shape::Shape(std::span<const std::int64_t> sizes) {
    if (sizes.size() > max_rank) fail_rank(sizes.size());
    for (const std::int64_t size : sizes) sizes_[rank_++] = size;
}

void Shape::push_back(std::int64_t size) { insert(rank(), size); }

void Shape::insert(int axis, std::int64_t size) {
    if (rank_ == max_rank) fail_rank(max_rank + 1);
    for (int i = rank(); i > axis; --i) sizes_[i] = sizes_[i - 1];
    sizes_[axis] = size;
    ++rank_;
}

void Shape::erase(int axis) noexcept {
    for (int i = axis; i + 1 < rank_; ++i) sizes_[i] = sizes_[i + 1];
    sizes_[--rank_] = 0;
}

std::string to_string(const Shape& shape) {
    std::string text = "(";
    for (int i = 0; i < shape.rank(); ++i) {
        if (i > 0) text += ", ";
        text += std::to_string(shape[i]);
    }
    return text + (shape.rank() == 1 ? ",)" : ")");
}

Axes::Axes(std::span<const std::int64_t> axes) : all_(false) {
    if (axes.size() > max_rank) {
        fail<IndexError>("axes: {} axes given, a tensor has at most {}", axes.size(), max_rank);
    }
    for (const std::int64_t axis : axes) values_[count_++] = axis;
}

int normalize_axis(std::string_view op, std::int64_t axis, const Shape& shape) {
    const int rank = shape.rank();
    if (axis < -rank || axis >= rank) {
        if (rank == 0) {
            fail<IndexError>("{}: axis {} does not exist in shape (), which has no axes", op, axis);
        }
        fail<IndexError>(hint("axes go from {} to {}", -rank, rank - 1),
                         "{}: axis {} is outside shape {}", op, axis, shape);
    }
    return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::uint32_t normalize_axes(std::string_view op, const Axes& axes, const Shape& shape) {
    if (axes.all()) return (1u << shape.rank()) - 1;
    std::uint32_t mask = 0;
    for (const std::int64_t axis : axes.values()) {
        const std::uint32_t bit = 1u << normalize_axis(op, axis, shape);
        if (mask & bit) {
            fail<IndexError>("{}: axis {} of shape {} is named twice", op, axis, shape);
        }
        mask |= bit;
    }
    return mask;
}

Shape broadcast_shapes(std::string_view op, const Shape& a, const Shape& b) {
    const Shape& longer = a.rank() >= b.rank() ? a : b;
    const Shape& shorter = a.rank() >= b.rank() ? b : a;
    Shape result = longer;
    const int offset = longer.rank() - shorter.rank();
    for (int i = 0; i < shorter.rank(); ++i) {
        std::int64_t& size = result[i + offset];
        if (size == shorter[i] || shorter[i] == 1) continue;
        if (size != 1) {
            fail<ShapeError>(hint("sizes must agree or be 1, counted from the right"),
                             "{}: cannot broadcast {} with {}: sizes {} and {} differ at axis {}",
                             op, a, b, a[a.rank() - longer.rank() + i + offset],
                             b[b.rank() - longer.rank() + i + offset], i + offset - longer.rank());
        }
        size = shorter[i];
    }
    return result;
}

std::int64_t checked_numel(std::string_view op, const Shape& shape, DType dtype) {
    // Sizes this small have a product below 2^56, and no negative one is among them.
    std::uint64_t bits = 0;
    std::uint64_t product = 1;
    for (const std::int64_t size : shape) {
        bits |= static_cast<std::uint64_t>(size);
        product *= static_cast<std::uint64_t>(size);
    }
    if (bits < (shape.rank() <= 4 ? 1u << 14 : 1u << 7)) return static_cast<std::int64_t>(product);
    return large_numel(op, shape, dtype);
}

std::size_t checked_bytes(std::string_view op, const Shape& shape, DType dtype) {
    return static_cast<std::size_t>(checked_numel(op, shape, dtype)) * item_size(dtype);
}

}  // namespace glassgrad
