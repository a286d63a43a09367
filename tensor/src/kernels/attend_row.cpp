// One query's attention to keys and values that lie in rows.

#include "isa.hpp"

#include "fast_exp.hpp"

#include <limits>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

constexpr int vector_bytes = 32;
/// Numbers side by side, and keys at a time.
template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
struct VectorOf {
    using type [[gnu::vector_size(vector_bytes)]] = T;
    using unaligned [[gnu::vector_size(vector_bytes), gnu::aligned(alignof(T)), gnu::may_alias]] =
        T;
};

template <class T>
T dot(std::int64_t n, const T* a, const T* b) {
    T sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum = mul_add(a[i], b[i], sum);
    return sum;
}

/// scores[j] = q k_j
template <class T>
void score(std::int64_t count, std::int64_t width, const T* q, const T* keys, T* scores) {
    using Vector = typename VectorOf<T>::type;
    using Unaligned = typename VectorOf<T>::unaligned;
    std::int64_t j = 0;
    for (; j + lanes<T> <= count; j += lanes<T>, keys += lanes<T> * width) {
        Vector sums[lanes<T>] = {};
        std::int64_t d = 0;
        for (; d + lanes<T> <= width; d += lanes<T>) {
            const Vector part = *reinterpret_cast<const Unaligned*>(q + d);
            for (int key = 0; key < lanes<T>; ++key) {
                sums[key] += part * *reinterpret_cast<const Unaligned*>(keys + key * width + d);
            }
        }
        // Neighbours are added until a sum is one number: those of all keys lie in order then.
        for (int left = lanes<T> / 2; left > 0; left /= 2) {
            for (int i = 0; i < left; ++i) {
                const Vector a = sums[2 * i];
                const Vector b = sums[2 * i + 1];
                if constexpr (lanes<T> == 8) {
                    sums[i] = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14) +
                              __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
                } else {
                    sums[i] = __builtin_shufflevector(a, b, 0, 2, 4, 6) +
                              __builtin_shufflevector(a, b, 1, 3, 5, 7);
                }
            }
        }
        *reinterpret_cast<Unaligned*>(scores + j) = sums[0];
        for (; d < width; ++d) {
            for (int key = 0; key < lanes<T>; ++key) {
                scores[j + key] = mul_add(q[d], keys[key * width + d], scores[j + key]);
            }
        }
    }
    for (; j < count; ++j, keys += width) scores[j] = dot(width, q, keys);
}

/// The largest, at least -inf; NaN counts for nothing.
template <class T>
T largest(std::int64_t count, const T* x) {
    T tops[lanes<T>];
    for (T& top : tops) top = -std::numeric_limits<T>::infinity();
    std::int64_t j = 0;
    for (; j + lanes<T> <= count; j += lanes<T>) {
        for (int i = 0; i < lanes<T>; ++i) tops[i] = x[j + i] > tops[i] ? x[j + i] : tops[i];
    }
    for (int i = 0; j < count; ++j, ++i) tops[i] = x[j] > tops[i] ? x[j] : tops[i];
    T top = tops[0];
    for (const T each : tops) top = each > top ? each : top;
    return top;
}

template <class T>
T sum_of(std::int64_t count, const T* x) {
    T sums[lanes<T>] = {};
    std::int64_t j = 0;
    for (; j + lanes<T> <= count; j += lanes<T>) {
        for (int i = 0; i < lanes<T>; ++i) sums[i] += x[j + i];
    }
    for (int i = 0; j < count; ++j, ++i) sums[i] += x[j];
    T sum = 0;
    for (const T each : sums) sum += each;
    return sum;
}

/// out = the sum of weights[j] v_j, of those whose weight isn't 0.
template <class T>
void mix(std::int64_t count, std::int64_t width, const T* weights, const T* values, T* out) {
    using Vector = typename VectorOf<T>::type;
    using Unaligned = typename VectorOf<T>::unaligned;
    constexpr int chains = 4;  // so that no sum waits for the one before
    std::int64_t d = 0;
    for (; d + lanes<T> <= width; d += lanes<T>) {
        Vector sums[chains] = {};
        const auto add = [&](std::int64_t j, Vector& sum) {
            if (weights[j] == 0) return;
            Vector weight;
            for (int i = 0; i < lanes<T>; ++i) weight[i] = weights[j];
            sum += weight * *reinterpret_cast<const Unaligned*>(values + j * width + d);
        };
        std::int64_t j = 0;
        for (; j + chains <= count; j += chains) {
            for (int chain = 0; chain < chains; ++chain) add(j + chain, sums[chain]);
        }
        for (; j < count; ++j) add(j, sums[0]);
        *reinterpret_cast<Unaligned*>(out + d) = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    }
    for (; d < width; ++d) {
        T sum = 0;
        for (std::int64_t j = 0; j < count; ++j) {
            if (weights[j] != 0) sum = mul_add(weights[j], values[j * width + d], sum);
        }
        out[d] = sum;
    }
}

template <class T>
void attend_row(std::int64_t count, std::int64_t width, T scale, const T* q, const T* keys,
                const T* values, T* weights, T* out) {
    score(count, width, q, keys, weights);
    for (std::int64_t j = 0; j < count; ++j) weights[j] *= scale;
    // Scores that are all -inf have weights of 0; a NaN among them reaches all by the sum.
    const T found = largest(count, weights);
    const T top = found == -std::numeric_limits<T>::infinity() ? T{0} : found;
    for (std::int64_t j = 0; j < count; ++j) weights[j] = fast_exp(weights[j] - top);
    const T sum = sum_of(count, weights);
    const T share = sum == 0 ? T{0} : 1 / sum;
    for (std::int64_t j = 0; j < count; ++j) weights[j] *= share;
    mix(count, width, weights, values, out);
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
