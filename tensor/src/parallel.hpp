#pragma once
// Loops over fixed chunks. The chunks depend on the amount of work alone, so a result that is
// right for one thread has the same bits for any number.

#include <glassgrad/tensor/threads.hpp>

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <exception>

namespace glassgrad::detail {

/// Below this many elements a fork costs more than the loop.
inline constexpr std::int64_t parallel_threshold = 16384;

/// Calls f(begin, end) for the chunks of [0, count). f must not throw for wrong input (checked
/// before); what it throws all the same reaches the caller once.
template <class F>
void for_chunks(std::int64_t count, std::int64_t chunk, const F& f) {
    const std::int64_t chunks = count / chunk + (count % chunk != 0 ? 1 : 0);
    const auto run = [&](std::int64_t i) { f(i * chunk, std::min(count, (i + 1) * chunk)); };
    const int threads = static_cast<int>(std::min<std::int64_t>(num_threads(), chunks));
    if (threads <= 1 || omp_in_parallel()) {
        for (std::int64_t i = 0; i < chunks; ++i) run(i);
        return;
    }
    std::exception_ptr error;
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (std::int64_t i = 0; i < chunks; ++i) {
        try {
            run(i);
        } catch (...) {
#pragma omp critical(glassgrad_error)
            error = std::current_exception();
        }
    }
    if (error) std::rethrow_exception(error);
}

/// f(begin, end) over elements; small counts run at once.
template <class F>
void for_elements(std::int64_t count, const F& f) {
    if (count < parallel_threshold) {
        f(std::int64_t{0}, count);
    } else {
        for_chunks(count, parallel_threshold, f);
    }
}

/// f(begin, end) for `count` rows of `length` elements each, if there are any; few elements run at
/// once.
template <class F>
void for_row_blocks(std::int64_t count, std::int64_t length, const F& f) {
    if (length == 0 || count == 0) return;
    if (count * length < parallel_threshold) {
        f(std::int64_t{0}, count);
    } else {
        for_chunks(count, std::max<std::int64_t>(1, parallel_threshold / length), f);
    }
}

/// f(r) for each of these rows.
template <class F>
void for_rows(std::int64_t count, std::int64_t length, const F& f) {
    for_row_blocks(count, length, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) f(r);
    });
}

}  // namespace glassgrad::detail
