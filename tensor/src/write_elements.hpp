#pragma once
// How results are written element by element.

#include "parallel.hpp"

#include <cstdint>

namespace glassgrad::detail {

/// write(begin, n, to) writes n elements of a result from `begin` on; called for all `count`.
template <class T, class F>
void write_elements(std::int64_t count, T* out, const F& write) {
    for_elements(count, [&](std::int64_t begin, std::int64_t end) {
        write(begin, end - begin, out + begin);
    });
}

}  // namespace glassgrad::detail
