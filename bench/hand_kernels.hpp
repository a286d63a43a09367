#pragma once
// Loops written for one work on one machine: what kernels of the library are held against.

#include <cstdint>

namespace bench {

/// Elements of a row, where rows matter.
inline constexpr std::int64_t row_length = 1024;

/// What a loop reads; arrays that it doesn't read are null. `w`, `mean` and `square` are written.
struct Arrays {
    const float* x = nullptr;
    const float* gy = nullptr;
    const std::int64_t* target = nullptr;  ///< one a row
    float factor = 1;                      ///< of the mean of a loss
    float* w = nullptr;
    float* mean = nullptr;
    float* square = nullptr;
};

/// Elements begin to begin + count, whole rows, into the outputs (the first goes to out[0][0]).
/// The result is a sum over them, where there is one.
using HandLoop = double (*)(const Arrays& in, float* const* out, std::int64_t begin,
                            std::int64_t count);

struct HandKernel {
    HandLoop loop;
    int outputs;
};

HandKernel hand_kernel(const char* name);

/// Where the outputs are written: by plain stores, or by a block in the cache and from there by
/// stores that leave the cache alone.
enum class Stores { plain, streaming };

/// All of n elements on so many threads.
double run_by_hand(const HandKernel& kernel, const Arrays& in, float* const* out, std::int64_t n,
                   int threads, Stores stores);

}  // namespace bench
