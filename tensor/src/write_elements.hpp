#pragma once
// How results are written element by element.

#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cstdint>

namespace glassgrad::detail {

/// What is this large, in bytes, and written once leaves the last cache before anybody reads it: it
/// goes to memory directly, which saves reading what is overwritten.
inline constexpr std::int64_t streamed_from = std::int64_t{16} << 20;

/// write(begin, n, to) writes n elements of a result from `begin` on; called for all `count`.
template <class T, class F>
void write_elements(std::int64_t count, T* out, const F& write) {
    if (count < streamed_from / static_cast<std::int64_t>(sizeof(T))) {
        for_elements(count, [&](std::int64_t begin, std::int64_t end) {
            write(begin, end - begin, out + begin);
        });
        return;
    }
    const auto stream = kernels<T>().map.stream;
    for_elements(count, [&](std::int64_t begin, std::int64_t end) {
        constexpr std::int64_t piece = 2048;
        alignas(64) T near[piece];
        for (std::int64_t at = begin; at < end; at += piece) {
            const std::int64_t n = std::min(piece, end - at);
            write(at, n, near);
            stream(n, near, out + at);
        }
    });
}

}  // namespace glassgrad::detail
