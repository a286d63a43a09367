// Softmax in tiles, forward with a running maximum and sum, backward from what is kept of a row.

#include "vectors.hpp"

#include "fast_exp.hpp"

#include <bit>
#include <limits>
#include <type_traits>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <class T>
constexpr T hidden = -std::numeric_limits<T>::infinity();

template <class T>
bool weigh(std::int64_t keys, T factor, T* scores, T* top, double* total, T* by) {
    constexpr int width = panel_columns<T>;
    T best[width];
    T origin[width];
    T sums[width];
    for (int j = 0; j < width; ++j) best[j] = top[j];
    // Two chains each, so that one doesn't wait for the other.
    T other[width];
    for (int j = 0; j < width; ++j) other[j] = hidden<T>;
    std::int64_t p = 0;
    for (; p + 4 <= keys; p += 4) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            const T a = x[j] * factor;
            const T b = x[width + j] * factor;
            const T c = x[2 * width + j] * factor;
            const T d = x[3 * width + j] * factor;
            x[j] = a;
            x[width + j] = b;
            x[2 * width + j] = c;
            x[3 * width + j] = d;
            best[j] = a > best[j] ? a : best[j];
            other[j] = b > other[j] ? b : other[j];
            best[j] = c > best[j] ? c : best[j];
            other[j] = d > other[j] ? d : other[j];
        }
    }
    for (; p < keys; ++p) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            x[j] *= factor;
            best[j] = x[j] > best[j] ? x[j] : best[j];
        }
    }
    for (int j = 0; j < width; ++j) {
        best[j] = other[j] > best[j] ? other[j] : best[j];
        // All that is not NaN is hidden when the largest is -inf: exp(-inf - 0) is 0.
        origin[j] = best[j] == hidden<T> ? T{0} : best[j];
        sums[j] = 0;
    }
    p = 0;
    for (; p + 2 <= keys; p += 2) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            const T a = fast_exp(x[j] - origin[j]);
            const T b = fast_exp(x[width + j] - origin[j]);
            x[j] = a;
            x[width + j] = b;
            sums[j] += a + b;
        }
    }
    for (; p < keys; ++p) {
        T* x = scores + p * width;
        for (int j = 0; j < width; ++j) {
            x[j] = fast_exp(x[j] - origin[j]);
            sums[j] += x[j];
        }
    }
    bool changed = false;
    for (int j = 0; j < width; ++j) {
        // A sum that is NaN stays so, whatever the largest was.
        const T change =
            best[j] == top[j] || total[j] != total[j] ? T{1} : fast_exp(top[j] - best[j]);
        by[j] = change;
        top[j] = best[j];
        total[j] = (change == 0 ? 0.0 : total[j] * static_cast<double>(change)) +
                   static_cast<double>(sums[j]);
        changed |= change != 1;
    }
    return changed;
}

template <class T>
void rescale(std::int64_t rows, const T* by, T* x) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t r = 0; r < rows; ++r, x += width) {
        for (int j = 0; j < width; ++j) {
            const T scaled = x[j] * by[j];
            x[j] = by[j] == 0 ? T{0} : scaled;
        }
    }
}

template <class T>
void weigh_again(std::int64_t queries, T factor, const T* top, const T* inverse, T* scores) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t i = 0; i < queries; ++i, scores += width) {
        const T origin = top[i];
        const T scale = inverse[i];
        for (int j = 0; j < width; ++j) {
            const T score = scores[j] * factor;
            const T weight = fast_exp(score - origin) * scale;
            scores[j] = score == hidden<T> ? T{0} : weight;
        }
    }
}

template <class T>
void pull(std::int64_t queries, T factor, const T* dot, const T* weights, T* gradients) {
    constexpr int width = panel_columns<T>;
    for (std::int64_t i = 0; i < queries; ++i, weights += width, gradients += width) {
        const T own = dot[i];
        for (int j = 0; j < width; ++j) {
            const T pulled = weights[j] * (gradients[j] - own) * factor;
            gradients[j] = weights[j] == 0 ? T{0} : pulled;
        }
    }
}

template <class T>
double dot(std::int64_t n, const T* x, const T* y) {
    constexpr int chains = 16;
    double sums[chains] = {};
    std::int64_t i = 0;
    for (; i + chains <= n; i += chains) {
        for (int j = 0; j < chains; ++j) {
            sums[j] += static_cast<double>(x[i + j]) * static_cast<double>(y[i + j]);
        }
    }
    for (; i < n; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    double sum = 0;
    for (const double each : sums) sum += each;
    return sum;
}

/// One is added to each exponent: only that of a NaN or an infinity, all ones, carries into the
/// sign.
template <class T>
bool finite(std::int64_t n, const T* x) {
    using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
    constexpr Bits one = Bits{1} << (std::numeric_limits<T>::digits - 1);
    constexpr Bits sign = Bits{1} << (sizeof(Bits) * 8 - 1);
    constexpr Bits exponent = sign - one;
    Bits carried = 0;
    for (std::int64_t i = 0; i < n; ++i) carried |= (std::bit_cast<Bits>(x[i]) & exponent) + one;
    return (carried & sign) == 0;
}

template <class T>
void add(AttentionKernels<T>& attention) {
    attention = {weigh<T>, rescale<T>, weigh_again<T>, pull<T>, dot<T>, finite<T>};
}

}  // namespace

void add_attention(KernelTable& table) {
    add(table.of_float.attention);
    add(table.of_double.attention);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
