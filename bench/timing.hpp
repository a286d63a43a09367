#pragma once
// What the programs here have in common: the clock, medians, the process's peak of memory, and the
// limit of arithmetic, measured.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace bench {

inline double seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

inline double least(const std::vector<double>& values) {
    return *std::min_element(values.begin(), values.end());
}

/// The most that the process ever had in memory, in bytes.
inline double resident() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// FLOP/s of multiplications and additions in f32 that depend on nothing but the processor, on so
/// many threads at once: the best of the instruction sets that it has, and of several trials.
double fma_peak(int threads);

}  // namespace bench
