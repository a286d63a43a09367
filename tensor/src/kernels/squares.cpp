// Sums of squares.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

constexpr int lanes = 16;

template <class T>
double sum_of_squares(std::int64_t n, const T* x) {
    double sums[lanes] = {};
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        for (int lane = 0; lane < lanes; ++lane) {
            const auto value = static_cast<double>(x[i + lane]);
            sums[lane] = mul_add(value, value, sums[lane]);
        }
    }
    for (int lane = 0; i < n; ++i, ++lane) {
        const auto value = static_cast<double>(x[i]);
        sums[lane] = mul_add(value, value, sums[lane]);
    }
    for (int half = lanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
}

template <class T>
void add(Kernels<T>& kernels) {
    kernels.sum_of_squares = sum_of_squares<T>;
}

}  // namespace

void add_squares(KernelTable& table) {
    add(table.of_float);
    add(table.of_double);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
