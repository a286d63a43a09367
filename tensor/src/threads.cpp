#include <glassgrad/tensor/threads.hpp>

#include "fail.hpp"

#include <omp.h>
#include <pthread.h>

#include <atomic>

namespace glassgrad {

static std::atomic<int>& setting() {
    static std::atomic<int> threads{omp_get_max_threads()};
    // After a fork the child has one thread, and would wait for ever for the others of the team.
    static const int handler =
        ::pthread_atfork(nullptr, nullptr, [] { threads.store(1, std::memory_order_relaxed); });
    (void)handler;
    return threads;
}

int num_threads() noexcept { return setting().load(std::memory_order_relaxed); }

void set_num_threads(int count) {
    if (count < 1) {
        detail::fail<ValueError>("set_num_threads: {} is not a number of threads; at least 1",
                                 count);
    }
    setting().store(count, std::memory_order_relaxed);
}

}  // namespace glassgrad
