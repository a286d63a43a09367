// Thread-local free lists by size class. Blocks may be freed by another thread than the one that
// took them; they then serve that thread. After a thread's lists are gone (its exit, or static
// destructors of the program), blocks go straight to the system.

#include <glassgrad/tensor/memory.hpp>

#include "fail.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <vector>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define GLASSGRAD_POOL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GLASSGRAD_POOL 0
#endif
#endif
#ifndef GLASSGRAD_POOL
#define GLASSGRAD_POOL 1
#endif

namespace glassgrad {
namespace {

constexpr std::size_t alignment = 64;
constexpr std::size_t header = 64;  // of a tensor's block: elements are mostly powers of two
constexpr std::size_t smallest = 64;
constexpr int octave_steps = 4;  // above `fine`, classes are a quarter octave apart
constexpr std::size_t fine = std::size_t{1} << 20;
constexpr int small_classes = 15;  // 64 B … 1 MiB by powers of two, each beyond a header
constexpr int classes = small_classes + octave_steps * 44;
constexpr std::size_t huge_page = std::size_t{1} << 21;
constexpr std::size_t max_cached = std::size_t{2} << 30;  // bytes kept free by one thread

struct SizeClass {
    int index;
    std::size_t block;  ///< bytes of a block
};

/// The class that holds `bytes`.
inline SizeClass class_of(std::size_t all) noexcept {
    const std::size_t bytes = all > header ? all - header : 1;
    if (bytes <= fine) {
        const int index = static_cast<int>(std::bit_width((bytes - 1) | (smallest - 1))) - 6;
        return {index, header + (smallest << index)};
    }
    const int log = static_cast<int>(std::bit_width(bytes - 1));  // 2^(log-1) < bytes <= 2^log
    const std::size_t quarter = std::size_t{1} << (log - 3);
    const std::size_t base = std::size_t{1} << (log - 1);
    const std::size_t step = (bytes - base + quarter - 1) / quarter;  // 1 … 4
    return {small_classes + (log - 21) * octave_steps + static_cast<int>(step) - 1,
            header + base + step * quarter};
}

/// Bytes of a block of class `index`.
std::size_t block_of(int index) noexcept {
    if (index < small_classes) return header + (smallest << index);
    const int above = index - small_classes;
    const std::size_t base = fine << (above / octave_steps);
    return header + base + base / octave_steps * static_cast<std::size_t>(above % octave_steps + 1);
}

/// Counters written by one thread and read by any.
struct Count {
    std::atomic<std::int64_t> value{0};
    std::int64_t get() const noexcept { return value.load(std::memory_order_relaxed); }
    void set(std::int64_t v) noexcept { value.store(v, std::memory_order_relaxed); }
    void add(std::int64_t v) noexcept { set(get() + v); }
};
struct Counters {
    Count live, peak;          // bytes
    Count owned;               // bytes taken from the system and not given back
    Count requests, releases;  // blocks
    Count allocations;

    std::int64_t cached() const noexcept { return owned.get() - live.get(); }
    void take(std::int64_t block) noexcept {
        requests.add(1);
        const std::int64_t now = live.get() + block;
        live.set(now);
        if (now > peak.get()) peak.set(now);
    }
    void give(std::int64_t block) noexcept {
        live.add(-block);
        releases.add(1);
    }
};

struct FreeBlock {
    FreeBlock* next;
};
struct ThreadPool {
    FreeBlock* free[classes] = {};
    Counters counters;
};

struct Registry {
    std::mutex mutex;
    std::vector<ThreadPool*> pools;
    // Of threads that ended, and of calls after their end.
    std::atomic<std::int64_t> live{0}, peak{0}, blocks{0}, requests{0}, allocations{0};
};
Registry& registry() {
    static auto* instance = new Registry;  // outlives every static tensor
    return *instance;
}

void* system_allocate(std::size_t block) {
    const bool large = block >= 2 * huge_page;
    const std::size_t step = large ? huge_page : alignment;
    void* memory = std::aligned_alloc(step, (block + step - 1) / step * step);
    if (!memory) {
        detail::fail<MemoryError>("memory: the system has no {} bytes left", block);
    }
#ifdef MADV_HUGEPAGE
    // A wish: where it isn't granted, all is as without.
    if (large) (void)::madvise(memory, block / huge_page * huge_page, MADV_HUGEPAGE);
#endif
    return memory;
}

void release(ThreadPool& pool) noexcept {
    for (int index = 0; index < classes; ++index) {
        FreeBlock*& list = pool.free[index];
        while (list) {
            std::free(std::exchange(list, list->next));
            pool.counters.owned.add(-static_cast<std::int64_t>(block_of(index)));
        }
    }
}

constinit thread_local ThreadPool* pool = nullptr;
constinit thread_local bool pool_ended = false;

/// Ends the thread's pool with the thread.
struct Reaper {
    ~Reaper() {
        if (!pool) return;
        Registry& all = registry();
        const std::lock_guard lock(all.mutex);
        release(*pool);
        all.live += pool->counters.live.get();
        all.peak += pool->counters.live.get();
        all.blocks += pool->counters.requests.get() - pool->counters.releases.get();
        all.requests += pool->counters.requests.get();
        all.allocations += pool->counters.allocations.get();
        std::erase(all.pools, pool);
        delete std::exchange(pool, nullptr);
        pool_ended = true;
    }
};

ThreadPool* start_pool() {
    if (pool_ended) return nullptr;
    static thread_local Reaper reaper;
    (void)reaper;
    auto fresh = std::make_unique<ThreadPool>();
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.pools.push_back(fresh.get());
    pool = fresh.release();
    return pool;
}

/// A block for which there is none on a list.
[[gnu::noinline]] void* allocate_anew(std::size_t block) {
    ThreadPool* const mine = pool ? pool : start_pool();
    if (!mine) {
        Registry& all = registry();
        void* memory = system_allocate(block);
        all.live += static_cast<std::int64_t>(block);
        ++all.blocks, ++all.requests, ++all.allocations;
        return memory;
    }
    Counters& count = mine->counters;
    void* memory = system_allocate(block);
    count.owned.add(static_cast<std::int64_t>(block));
    count.allocations.add(1);
    count.take(static_cast<std::int64_t>(block));
    return memory;
}

/// Gives a block back to the system.
void free_for_good(void* memory, std::size_t block) noexcept {
    const auto size = static_cast<std::int64_t>(block);
    if (pool) {
        pool->counters.give(size);
        pool->counters.owned.add(-size);
    } else {
        // A thread that never allocated, or one that ended: no list to keep the block on.
        Registry& all = registry();
        all.live -= size;
        --all.blocks;
    }
    std::free(memory);
}

/// Whether a block of class `index` may be kept: what is kept already and larger goes first, since
/// the sizes of now are worth more than those of before.
bool make_room(ThreadPool& mine, int index) noexcept {
    const auto full = [&] {
        return mine.counters.cached() > static_cast<std::int64_t>(max_cached);
    };
    for (int larger = classes - 1; larger > index && full(); --larger) {
        FreeBlock*& list = mine.free[larger];
        while (list && full()) {
            std::free(std::exchange(list, list->next));
            mine.counters.owned.add(-static_cast<std::int64_t>(block_of(larger)));
        }
    }
    return !full();
}

/// Puts a block on its list.
inline void keep(ThreadPool& mine, void* memory, int index, std::size_t block) noexcept {
    mine.counters.give(static_cast<std::int64_t>(block));
    auto* entry = static_cast<FreeBlock*>(memory);
    entry->next = mine.free[index];
    mine.free[index] = entry;
}

/// Where the pool is full, or there is none.
[[gnu::noinline]] void free_to_full(void* memory, int index, std::size_t block) noexcept {
    if (pool && GLASSGRAD_POOL && make_room(*pool, index)) {
        keep(*pool, memory, index, block);
    } else {
        free_for_good(memory, block);
    }
}

}  // namespace

namespace detail {

void* pool_allocate(std::size_t bytes) {
    const auto [index, block] = class_of(bytes);
    ThreadPool* const mine = pool;
    FreeBlock* const found = mine ? mine->free[index] : nullptr;
    if (!found) [[unlikely]] {
        return allocate_anew(block);
    }
    mine->free[index] = found->next;
    mine->counters.take(static_cast<std::int64_t>(block));
    return found;
}

void pool_free(void* memory, std::size_t bytes) noexcept {
    const auto [index, block] = class_of(bytes);
    ThreadPool* const mine = pool;
    if (!mine || !GLASSGRAD_POOL || mine->counters.cached() > static_cast<std::int64_t>(max_cached))
        [[unlikely]] {
        free_to_full(memory, index, block);
        return;
    }
    keep(*mine, memory, index, block);
}

}  // namespace detail

MemoryStats memory_stats() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    MemoryStats stats{all.live, all.peak, 0, all.blocks, all.requests, all.allocations};
    for (const ThreadPool* each : all.pools) {
        const Counters& count = each->counters;
        stats.live_bytes += count.live.get();
        stats.peak_bytes += count.peak.get();
        stats.cached_bytes += count.cached();
        stats.live_blocks += count.requests.get() - count.releases.get();
        stats.requests += count.requests.get();
        stats.allocations += count.allocations.get();
    }
    return stats;
}

void reset_peak_memory() {
    Registry& all = registry();
    const std::lock_guard lock(all.mutex);
    all.peak.store(all.live.load());
    for (ThreadPool* each : all.pools) each->counters.peak.set(each->counters.live.get());
}

void release_cached_memory() {
    if (pool) release(*pool);
}

}  // namespace glassgrad
