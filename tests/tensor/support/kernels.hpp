#pragma once
// What the tests of kernels share: sizes, numbers, distances.

#include "kernels/kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace kernel_tests {

using namespace glassgrad::detail;

/// Around the widths of vectors and of unrolled loops.
inline constexpr std::int64_t sizes[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 1000};

template <class T>
const Kernels<T>& of(const KernelTable& table) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return table.of_float;
    } else {
        return table.of_double;
    }
}

/// What references are computed in.
template <class T>
using Wide = std::conditional_t<sizeof(T) == sizeof(float), double, long double>;

/// Equal to the bit, or both NaN.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](T x, T y) {
        return (x == y && std::signbit(x) == std::signbit(y)) || (std::isnan(x) && std::isnan(y));
    });
}

/// Distance from a reference in units in its last place; infinite where only one is NaN or
/// infinite.
template <class T>
double ulps(T got, T wanted) {
    if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
    if (!std::isfinite(got) || !std::isfinite(wanted)) {
        return std::numeric_limits<double>::infinity();
    }
    const T size = std::abs(wanted);
    const double unit =
        static_cast<double>(std::nextafter(size, std::numeric_limits<T>::infinity())) -
        static_cast<double>(size);
    return std::abs(static_cast<double>(got) - static_cast<double>(wanted)) / unit;
}

/// Numbers in [low, high], then what is special about T.
template <class T>
std::vector<T> numbers(std::int64_t n, double low, double high) {
    using Limits = std::numeric_limits<T>;
    const T special[] = {0,
                         -T{0},
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         T{1},
                         T{-1}};
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& each : x) each = static_cast<T>(uniform(random));
    for (std::size_t i = 0; i < std::size(special) && i * 2 + 1 < x.size(); ++i) {
        x[i * 2 + 1] = special[i];
    }
    return x;
}

}  // namespace kernel_tests
