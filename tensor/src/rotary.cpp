#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "fail.hpp"
#include "parallel.hpp"

namespace glassgrad {

using detail::fail;
using detail::hint;

namespace {

void check(const Tensor& x, const Tensor& cos, const Tensor& sin) {
    for (const Tensor* each : {&x, &cos, &sin}) {
        detail::require_defined("rotary", *each);
        detail::with_float("rotary", each->dtype(), [](auto) {});
        if (each->dtype() != x.dtype()) {
            fail<TypeError>(hint("make the table in the type of x"),
                            "rotary: x is {}, cos {} and sin {}", x.dtype(), cos.dtype(),
                            sin.dtype());
        }
    }
    if (x.rank() == 0 || x.shape().back() % 2 != 0) {
        fail<ShapeError>("rotary: the last axis of {} has no pairs: it must be even", x.shape());
    }
    Shape half = x.shape();
    half[half.rank() - 1] /= 2;
    if (sin.shape() != cos.shape() || broadcast_shapes("rotary", cos.shape(), half) != half ||
        cos.shape().back() != half.back()) {
        fail<ShapeError>("rotary: cos {} and sin {} do not broadcast to {}, the pairs of x {}",
                         cos.shape(), sin.shape(), half, x.shape());
    }
}

/// Where row r of x finds its row of the table, which may have fewer axes and axes of size 1.
class TableRows {
  public:
    TableRows(const Shape& x, const Shape& table) : x_(x) {
        std::int64_t stride = 1;
        for (int axis = x.rank() - 2, own = table.rank() - 2; own >= 0; --axis, --own) {
            if (table[own] != 1) strides_[axis] = stride;
            stride *= table[own];
        }
    }
    std::int64_t of(std::int64_t r) const {
        std::int64_t row = 0;
        for (int axis = x_.rank() - 2; axis >= 0; --axis) {
            row += r % x_[axis] * strides_[axis];
            r /= x_[axis];
        }
        return row;
    }

  private:
    Shape x_;
    std::int64_t strides_[max_rank] = {};
};

}  // namespace

Tensor rotary(const Tensor& x, const Tensor& cos, const Tensor& sin, RotaryPairing pairing) {
    check(x, cos, sin);
    return detail::with_float("rotary", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        const std::int64_t width = x.shape().back();
        if (x.numel() == 0) return result;
        const std::int64_t pairs = width / 2;
        const bool halves = pairing == RotaryPairing::halves;
        const std::int64_t step = halves ? 1 : 2;
        const std::int64_t partner = halves ? pairs : 1;
        const TableRows rows(x.shape(), cos.shape());
        const T* in = x.data<T>();
        const T* c = cos.data<T>();
        const T* s = sin.data<T>();
        T* out = result.mutable_data<T>();
        detail::for_rows(x.numel() / width, width, [&](std::int64_t r) {
            const T* a = in + r * width;
            T* y = out + r * width;
            const std::int64_t table = rows.of(r) * pairs;
            for (std::int64_t i = 0; i < pairs; ++i, a += step, y += step) {
                y[0] = a[0] * c[table + i] - a[partner] * s[table + i];
                y[partner] = a[partner] * c[table + i] + a[0] * s[table + i];
            }
        });
        return result;
    });
}

}  // namespace glassgrad
