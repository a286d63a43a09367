#include <glassgrad/tensor/detail/cached_attention.hpp>

#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cstring>

namespace glassgrad {
namespace {

/// Copies `tokens` rows of each head.
void copy_tokens(const Tensor& from, std::int64_t from_begin, Tensor& to, std::int64_t to_begin,
                 std::int64_t tokens) {
    detail::with_type(to.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Shape& shape = to.shape();
        const std::int64_t width = shape[3];
        const T* in = from.data<T>() + from_begin * width;
        T* out = to.mutable_data<T>() + to_begin * width;
        const auto bytes = static_cast<std::size_t>(tokens * width) * sizeof(T);
        if (bytes == 0) return;
        for (std::int64_t i = 0; i < shape[0] * shape[1]; ++i) {
            std::memcpy(out, in, bytes);
            in += from.shape()[2] * width;
            out += shape[2] * width;
        }
    });
}

}  // namespace

void detail::put_tokens(Tensor& room, const Tensor& x, std::int64_t begin) {
    copy_tokens(x, 0, room, begin, x.shape()[2]);
}

Tensor detail::with_room(const Tensor& room, std::int64_t length, std::int64_t places) {
    Shape shape = room.shape();
    shape[2] = places;
    Tensor larger = Tensor::empty(shape, room.dtype());
    copy_tokens(room, 0, larger, 0, length);
    return larger;
}

Tensor detail::cached_attention(const Tensor& q, const Tensor& keys, const Tensor& values,
                                std::int64_t length, double scale) {
    return with_float("cached_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const Shape& shape = q.shape();
        const std::int64_t heads = shape[1];
        const std::int64_t queries = shape[2];
        const std::int64_t width = shape[3];
        const std::int64_t kv_heads = keys.shape()[1];
        const std::int64_t room = keys.shape()[2] * width;
        const std::int64_t group = heads / kv_heads;
        Tensor result = Tensor::empty(shape, q.dtype());
        const T* const pq = q.data<T>();
        const T* const pk = keys.data<T>();
        const T* const pv = values.data<T>();
        T* const out = result.mutable_data<T>();
        const auto attend = kernels<T>().attend_row;
        const auto rows = [&](std::int64_t begin, std::int64_t end) {
            const Tensor weights = Tensor::empty({length}, q.dtype());
            T* const room_for_weights = const_cast<T*>(weights.data<T>());
            for (std::int64_t r = begin; r < end; ++r) {
                const std::int64_t head = r / queries;
                const std::int64_t kv = head / heads * kv_heads + head % heads / group;
                attend(length - queries + r % queries + 1, width, static_cast<T>(scale),
                       pq + r * width, pk + kv * room, pv + kv * room, room_for_weights,
                       out + r * width);
            }
        };
        const std::int64_t count = shape[0] * heads * queries;
        const std::int64_t work = std::max<std::int64_t>(1, length * width);
        if (count * work < parallel_threshold * 4) {
            rows(0, count);
        } else {
            for_chunks(count, std::max<std::int64_t>(1, parallel_threshold * 2 / work), rows);
        }
        return result;
    });
}

}  // namespace glassgrad
