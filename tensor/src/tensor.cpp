#include <glassgrad/tensor/memory.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include "dispatch.hpp"
#include "fail.hpp"

#include <cmath>
#include <cstring>
#include <new>

namespace glassgrad {

using detail::fail;
using detail::hint;

namespace {

/// A block for `bytes` of elements; `shape` gives what the error names.
template <class F>
detail::Buffer* new_buffer(std::size_t bytes, DType dtype, const F& shape) {
    bytes += sizeof(detail::Buffer);
    try {
        auto* buffer = new (detail::pool_allocate(bytes)) detail::Buffer;
        buffer->block_bytes = bytes;
        return buffer;
    } catch (const MemoryError&) {
        fail<MemoryError>("tensor: no memory for {} of {}, {} bytes", shape(), dtype, bytes);
    }
}

}  // namespace

void detail::dispose(Buffer* buffer) noexcept {
    const std::size_t bytes = buffer->block_bytes;
    buffer->~Buffer();
    pool_free(buffer, bytes);
}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
    const std::size_t bytes = checked_bytes("tensor", shape, dtype);
    Tensor result;
    result.buffer_ =
        detail::Counted<detail::Buffer>::adopt(new_buffer(bytes, dtype, [&] { return shape; }));
    result.dtype_ = dtype;
    result.shape_ = shape;
    return result;
}

Tensor Tensor::empty_matrix(std::int64_t rows, std::int64_t columns, DType dtype) {
    constexpr std::uint64_t small = 1 << 14;
    const bool fits =
        static_cast<std::uint64_t>(rows) < small && static_cast<std::uint64_t>(columns) < small;
    const std::size_t bytes = fits ? static_cast<std::size_t>(rows * columns) * item_size(dtype)
                                   : checked_bytes("tensor", {rows, columns}, dtype);
    Tensor result;
    result.buffer_ = detail::Counted<detail::Buffer>::adopt(new_buffer(bytes, dtype, [&] {
        return Shape{rows, columns};
    }));
    result.dtype_ = dtype;
    // The sizes are written where they stay: a shape that is put together and then copied as a
    // whole makes the processor wait for its parts.
    result.shape_.set(rows, columns);
    return result;
}

void Tensor::throw_wrong_access(DType dtype) const {
    if (!buffer_) {
        fail<ValueError>("tensor: undefined (default-constructed or moved from)");
    }
    fail<TypeError>(hint("read it as {}, or convert with astype({})", dtype_, dtype),
                    "tensor: a {} tensor of shape {} holds no {} elements", dtype_, shape_, dtype);
}

Tensor Tensor::clone() const {
    require(dtype_);
    Tensor copy = empty(shape_, dtype_);
    std::memcpy(copy.buffer_->data(), buffer_->data(),
                static_cast<std::size_t>(numel()) * item_size(dtype_));
    return copy;
}

void Tensor::unshare() { *this = clone(); }

std::int64_t Tensor::single() const {
    if (numel() != 1) {
        fail<ValueError>(hint("name an element with at({{…}})"),
                         "item: shape {} has {} elements, not one", shape_, numel());
    }
    return 0;
}

std::int64_t Tensor::offset(std::initializer_list<std::int64_t> index) const {
    if (static_cast<int>(index.size()) != rank()) {
        fail<IndexError>("at: {} indices given for shape {}, which has {} axes", index.size(),
                         shape_, rank());
    }
    std::int64_t offset = 0;
    int axis = 0;
    for (const std::int64_t i : index) {
        const std::int64_t size = shape_[axis];
        if (i < -size || i >= size) {
            fail<IndexError>("at: index {} is outside axis {} of shape {}", i, axis, shape_);
        }
        offset = offset * size + (i < 0 ? i + size : i);
        ++axis;
    }
    return offset;
}

double Tensor::item() const {
    require(dtype_);
    const std::int64_t i = single();
    return detail::with_type(dtype_, [&](auto type) {
        return static_cast<double>(data<typename decltype(type)::type>()[i]);
    });
}

double Tensor::at(std::initializer_list<std::int64_t> index) const {
    require(dtype_);
    const std::int64_t i = offset(index);
    return detail::with_type(dtype_, [&](auto type) {
        return static_cast<double>(data<typename decltype(type)::type>()[i]);
    });
}

void Tensor::set(std::initializer_list<std::int64_t> index, double value) {
    require(dtype_);
    const std::int64_t i = offset(index);
    detail::with_type(dtype_, [&](auto type) {
        using T = typename decltype(type)::type;
        mutable_data<T>()[i] = detail::exact_cast<T>("set", value);
    });
}

Tensor Tensor::astype(DType dtype) const {
    require(dtype_);
    if (dtype == dtype_) return *this;
    Tensor result = empty(shape_, dtype);
    const std::int64_t n = numel();
    detail::with_type(dtype_, [&](auto from) {
        const auto* in = data<typename decltype(from)::type>();
        detail::with_type(dtype, [&](auto to) {
            using T = typename decltype(to)::type;
            T* out = result.mutable_data<T>();
            for (std::int64_t i = 0; i < n; ++i) out[i] = detail::checked_cast<T>("astype", in[i]);
        });
    });
    return result;
}

}  // namespace glassgrad
