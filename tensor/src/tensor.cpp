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

void detail::dispose(Buffer* buffer) noexcept {
    const std::size_t bytes = buffer->block_bytes;
    buffer->~Buffer();
    pool_free(buffer, bytes);
}

Tensor::Tensor(std::size_t bytes, DType dtype) : dtype_(dtype) {
    auto* buffer = new (detail::pool_allocate(bytes)) detail::Buffer;
    buffer->block_bytes = bytes;
    buffer_ = detail::Counted<detail::Buffer>::adopt(buffer);
}

Tensor Tensor::empty(const Shape& shape, DType dtype) {
    const std::size_t bytes = sizeof(detail::Buffer) + checked_bytes("tensor", shape, dtype);
    try {
        Tensor result(bytes, dtype);
        result.shape_ = shape;
        return result;
    } catch (const MemoryError&) {
        fail<MemoryError>("tensor: no memory for {} of {}, {} bytes", shape, dtype, bytes);
    }
}

Tensor Tensor::empty_matrix(std::int64_t rows, std::int64_t columns, DType dtype) {
    constexpr std::int64_t small = 1 << 10;
    if (rows < 0 || rows > small || columns < 0 || columns > small) {
        return empty({rows, columns}, dtype);
    }
    // The sizes are written where they stay: a shape that is put together and then copied as a
    // whole makes the processor wait for its parts.
    Tensor result(
        sizeof(detail::Buffer) + static_cast<std::size_t>(rows * columns) * item_size(dtype),
        dtype);
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
