// One query's attention to keys and values that lie in rows.

#include "isa.hpp"

#include "fast_exp.hpp"

#include <limits>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

/// Numbers side by side in sums of products: one vector's worth.
template <class T>
constexpr std::int64_t lanes = 32 / static_cast<std::int64_t>(sizeof(T));

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
    T sums[lanes<T>] = {};
    std::int64_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) {
        for (std::int64_t lane = 0; lane < lanes<T>; ++lane) {
            sums[lane] = mul_add(a[i + lane], b[i + lane], sums[lane]);
        }
    }
    for (std::int64_t lane = 0; i < n; ++i, ++lane) sums[lane] = mul_add(a[i], b[i], sums[lane]);
    for (std::int64_t half = lanes<T> / 2; half > 0; half /= 2) {
        for (std::int64_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
}

template <class T>
void attend_row(std::int64_t count, std::int64_t width, T scale, const T* q, const T* keys,
                const T* values, T* weights, T* out) {
    T top = -std::numeric_limits<T>::infinity();
    for (std::int64_t j = 0; j < count; ++j) {
        weights[j] = dot(width, q, keys + j * width) * scale;
        top = weights[j] > top ? weights[j] : top;
    }
    // Scores that are all -inf have weights of 0; a NaN among them reaches all.
    if (top == -std::numeric_limits<T>::infinity()) top = 0;
    for (std::int64_t j = 0; j < count; ++j) weights[j] = fast_exp(weights[j] - top);
    T sum = 0;
    for (std::int64_t j = 0; j < count; ++j) sum += weights[j];
    const T share = sum == 0 ? T{0} : 1 / sum;
    for (std::int64_t d = 0; d < width; ++d) out[d] = 0;
    for (std::int64_t j = 0; j < count; ++j) {
        const T weight = weights[j] * share;
        if (weight == 0) continue;
        const T* const row = values + j * width;
        for (std::int64_t d = 0; d < width; ++d) out[d] = mul_add(weight, row[d], out[d]);
    }
}

template <class T>
void add(Kernels<T>& kernels) {
    kernels.attend_row = attend_row<T>;
}

}  // namespace

void add_attend_row(KernelTable& table) {
    add(table.of_float);
    add(table.of_double);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
