// Figures about the elements of a tensor: counts and moments, and a digest of all bytes.

#include <glassgrad/tensor/detail/text.hpp>
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

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87;
constexpr std::uint64_t prime2 = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t prime3 = 0x165667B19E3779F9;
constexpr std::uint64_t prime4 = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t prime5 = 0x27D4EB2F165667C5;

template <class Word>
std::uint64_t load(const std::byte* p) noexcept {
    Word word = 0;
    std::memcpy(&word, p, sizeof(word));
    return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) noexcept {
    return std::rotl(lane + word * prime2, 31) * prime1;
}

/// XXH64 with seed 0 (Collet, xxHash specification 0.1.1).
std::uint64_t xxh64(const std::byte* p, std::size_t size) noexcept {
    const std::byte* const end = p + size;
    std::uint64_t hash = prime5;
    if (size >= 32) {
        std::uint64_t lanes[4] = {prime1 + prime2, prime2, 0, 0 - prime1};
        for (; end - p >= 32; p += 32) {
            for (int i = 0; i < 4; ++i) {
                lanes[i] = round(lanes[i], load<std::uint64_t>(p + 8 * i));
            }
        }
        hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
               std::rotl(lanes[3], 18);
        for (const std::uint64_t lane : lanes) hash = (hash ^ round(0, lane)) * prime1 + prime4;
    }
    hash += size;
    for (; end - p >= 8; p += 8) {
        hash = std::rotl(hash ^ round(0, load<std::uint64_t>(p)), 27) * prime1 + prime4;
    }
    if (end - p >= 4) {
        hash = std::rotl(hash ^ load<std::uint32_t>(p) * prime1, 23) * prime2 + prime3;
        p += 4;
    }
    for (; p != end; ++p) {
        hash = std::rotl(hash ^ static_cast<std::uint64_t>(*p) * prime5, 11) * prime1;
    }
    hash = (hash ^ hash >> 33) * prime2;
    hash = (hash ^ hash >> 29) * prime3;
    return hash ^ hash >> 32;
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
    const std::uint64_t hash = xxh64(x.bytes(), count * item_size(x.dtype()));
    std::string text = "xxh64:";
    for (int byte = 7; byte >= 0; --byte) {
        const char c = static_cast<char>(hash >> (8 * byte) & 255U);
        text += detail::to_hex({&c, 1});
    }
    return text;
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
