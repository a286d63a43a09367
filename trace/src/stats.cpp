// Figures about the elements of a tensor: counts and moments, and a digest of all bytes.

#include <glassgrad/tensor/detail/hash.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/tensor.hpp>
#include <glassgrad/trace/document.hpp>

#include <bit>
#include <cmath>
#include <cstring>

namespace glassgrad {
namespace {

template <class T>
TraceStats stats_of(std::span<const T> values) {
    TraceStats stats;
    stats.n = static_cast<std::int64_t>(values.size());
    double sum = 0;
    double squares = 0;
    std::int64_t finite = 0;
    for (const T element : values) {
        const double x = element;
        if (std::isnan(x)) {
            ++stats.nan;
        } else if (std::isinf(x)) {
            ++(x > 0 ? stats.pinf : stats.ninf);
        } else {
            if (x == 0) ++stats.zero;
            if (finite == 0 || x < stats.min) stats.min = x;
            if (finite == 0 || x > stats.max) stats.max = x;
            sum += x;
            squares += x * x;
            ++finite;
        }
    }
    if (finite == 0) return stats;
    stats.mean = sum / static_cast<double>(finite);
    stats.l2 = std::sqrt(squares);
    double deviations = 0;
    for (const T element : values) {
        const double x = element;
        if (std::isfinite(x)) deviations += (x - stats.mean) * (x - stats.mean);
    }
    stats.std = std::sqrt(deviations / static_cast<double>(finite));
    return stats;
}

/// `one` in every place of `shape`.
Tensor spread(const Tensor& one, const Shape& shape) {
    Tensor result = Tensor::empty(shape, one.dtype());
    const auto fill = [&]<class T>(T) {
        T* out = result.mutable_data<T>();
        for (std::int64_t i = 0; i < result.numel(); ++i) {
            std::memcpy(out + i, one.bytes(), sizeof(T));  // keeps the bits of a NaN
        }
    };
    switch (one.dtype()) {
        case DType::f32: fill(float{}); break;
        case DType::f64: fill(double{}); break;
        case DType::i64: fill(std::int64_t{}); break;
        case DType::boolean: fill(bool{}); break;
    }
    return result;
}

}  // namespace

TraceStats tensor_stats(const Tensor& x) {
    if (x.dtype() == f32) return stats_of(x.values<float>());
    if (x.dtype() == f64) return stats_of(x.values<double>());
    throw ValueError("tensor_stats: takes f32 or f64, not " + std::string(name(x.dtype())));
}

std::string tensor_digest(const Tensor& x) {
    static_assert(std::endian::native == std::endian::little);
    const auto count = static_cast<std::size_t>(x.numel());
    return "xxh64:" + detail::hash_text(detail::xxh64(x.bytes(), count * item_size(x.dtype())));
}

Tensor elements(const TraceTensor& tensor) {
    switch (tensor.value.kind) {
        case TraceValue::Kind::full: return tensor.value.data;
        case TraceValue::Kind::fill: return spread(tensor.value.data, tensor.shape);
        case TraceValue::Kind::none:
        case TraceValue::Kind::sample:
        case TraceValue::Kind::ref: break;
    }
    throw ValueError("elements: the trace does not hold all of " + tensor.key +
                     (tensor.value.why.empty() ? "" : " (" + tensor.value.why + ")"));
}

}  // namespace glassgrad
