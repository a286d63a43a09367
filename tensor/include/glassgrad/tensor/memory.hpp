#pragma once
// The pool behind tensors and graph nodes: 64-byte aligned blocks in size classes, kept by each
// thread for reuse. Under the address sanitizer every block goes to the system at once.

#include <cstddef>
#include <cstdint>

namespace glassgrad {

struct MemoryStats {
    std::int64_t live_bytes = 0;    ///< in use now, in size classes, by tensors and graph nodes
    std::int64_t peak_bytes = 0;    ///< most that was live; exact while one thread allocates,
                                    ///< otherwise the sum of the threads' own peaks
    std::int64_t cached_bytes = 0;  ///< free blocks kept for reuse
    std::int64_t live_blocks = 0;   ///< blocks in use now
    std::int64_t requests = 0;      ///< blocks asked for since the start
    std::int64_t allocations = 0;   ///< of these, taken anew from the system
};

/// Sums over all threads of the program.
MemoryStats memory_stats();

/// Sets the peak to what is live now.
void reset_peak_memory();

/// Gives this thread's free blocks back to the system.
void release_cached_memory();

namespace detail {

/// At least `bytes` bytes, 64-byte aligned. Throws MemoryError.
void* pool_allocate(std::size_t bytes);
/// Takes back what `pool_allocate(bytes)` gave, from any thread.
void pool_free(void* memory, std::size_t bytes) noexcept;

}  // namespace detail
}  // namespace glassgrad
