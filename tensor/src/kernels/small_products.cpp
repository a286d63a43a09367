// Matrix products too small to be packed: both operands are read where they lie. Columns are taken
// in groups of a vector, of two to four, and at last alone: an operand so small was often written
// just before, and a load waits that takes in more than one store. An element is summed up as in
// products.cpp.

#include "vectors.hpp"

#include <algorithm>
#include <bit>

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

/// W columns side by side; groups of three fill a vector of four.
template <int W, class T>
struct GroupOf {
    static constexpr int places = static_cast<int>(std::bit_ceil(unsigned{W}));
    static constexpr int bytes = std::max(16, static_cast<int>(sizeof(T)) * places);
    using type [[gnu::vector_size(bytes)]] = T;
    using unaligned [[gnu::vector_size(bytes), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
    using two [[gnu::vector_size(2 * sizeof(T)), gnu::aligned(alignof(T)), gnu::may_alias]] = T;
};
template <class T>
struct GroupOf<1, T> {
    using type = T;
};
template <int W, class T>
using Group = typename GroupOf<W, T>::type;

/// y becomes W numbers `along` apart, or side by side.
template <int W, bool Strided, class T>
GLASSGRAD_INLINE void take(const T* x, std::int64_t along, Group<W, T>& y) {
    if constexpr (W == 1) {
        y = *x;
    } else if constexpr (W >= 4 && !Strided) {
        y = *reinterpret_cast<const typename GroupOf<W, T>::unaligned*>(x);
    } else if constexpr (W == 4) {
        y = Group<W, T>{x[0], x[along], x[2 * along], x[3 * along]};
    } else if constexpr (W == 3) {
        y = Group<W, T>{x[0], x[along], x[2 * along], 0};
    } else {
        y = Group<W, T>{x[0], x[along]};
    }
}

template <int W, class T>
GLASSGRAD_INLINE void put(T* x, const Group<W, T>& v) {
    if constexpr (W == 1) {
        *x = v;
    } else if constexpr (W >= 4) {
        *reinterpret_cast<typename GroupOf<W, T>::unaligned*>(x) = v;
    } else {
        *reinterpret_cast<typename GroupOf<W, T>::two*>(x) = __builtin_shufflevector(v, v, 0, 1);
        if constexpr (W == 3) x[2] = __builtin_shufflevector(v, v, 2, 3)[0];
    }
}

/// sum = x y + sum
template <int W, class T>
GLASSGRAD_INLINE void add_product(T x, const Group<W, T>& y, Group<W, T>& sum) {
    if constexpr (W == 1) {
        sum = mul_add(x, y, sum);
    } else {
#ifdef __FMA__
        constexpr bool is_float = sizeof(T) == sizeof(float);
        constexpr int bytes = GroupOf<W, T>::bytes;
        if constexpr (bytes == vector_bytes) {
            sum = fused(splat(x), y, sum);
        } else if constexpr (bytes == 32 && is_float) {
            sum = _mm256_fmadd_ps(_mm256_set1_ps(x), y, sum);
        } else if constexpr (bytes == 32) {
            sum = _mm256_fmadd_pd(_mm256_set1_pd(x), y, sum);
        } else if constexpr (is_float) {
            sum = _mm_fmadd_ps(_mm_set1_ps(x), y, sum);
        } else {
            sum = _mm_fmadd_pd(_mm_set1_pd(x), y, sum);
        }
#else
        sum = x * y + sum;
#endif
    }
}

/// R rows of a group of columns. Steps are passed one by one: what is stored as numbers and copied
/// as a struct makes the processor wait.
template <int R, int W, bool Strided, class T>
GLASSGRAD_INLINE void block(std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_along,
                            const T* b, std::int64_t b_row, std::int64_t b_along, T* out,
                            std::int64_t stride, bool add, const T* bias) {
    Group<W, T> sums[R];
    each<R>([&](auto r) { sums[r] = Group<W, T>{}; });
    for (; k > 0; --k, a += a_along, b += b_row) {
        Group<W, T> y;
        take<W, Strided>(b, b_along, y);
        each<R>([&](auto r) { add_product<W>(a[r * a_row], y, sums[r]); });
    }
    each<R>([&](auto r) {
        Group<W, T> sum = sums[r];
        T* const row = out + r * stride;
        Group<W, T> other;
        if (add) {
            take<W, false>(row, 1, other);
            sum = other + sum;
        }
        if (bias) {
            take<W, false>(bias, 1, other);
            sum = sum + other;
        }
        put<W>(row, sum);
    });
}

/// All rows of a group of columns.
template <int W, bool Strided, class T>
[[gnu::noinline]] void columns(std::int64_t m, std::int64_t k, const T* a, std::int64_t a_row,
                               std::int64_t a_along, const T* b, std::int64_t b_row,
                               std::int64_t b_along, T* out, std::int64_t stride, bool add,
                               const T* bias) {
    constexpr int most = W > 4 ? 8 : 4;
    const auto rows = [&](auto count) {
        constexpr int n = count();
        if (!add && !bias) {
            block<n, W, Strided, T>(k, a, a_row, a_along, b, b_row, b_along, out, stride, false,
                                    nullptr);
        } else {
            block<n, W, Strided, T>(k, a, a_row, a_along, b, b_row, b_along, out, stride, add,
                                    bias);
        }
    };
    for (; m >= most; m -= most, a += most * a_row, out += most * stride) {
        rows(std::integral_constant<int, most>());
    }
    each<most - 1>([&](auto less) {
        if (m == less + 1) rows(std::integral_constant<int, less + 1>());
    });
}

template <bool Strided, class T>
GLASSGRAD_INLINE void in_groups(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                                std::int64_t a_row, std::int64_t a_along, const T* b,
                                std::int64_t b_row, std::int64_t b_along, const Target<T>& c) {
    T* out = c.data;
    const T* bias = c.bias;
    const auto group = [&](auto width) {
        constexpr int w = width();
        columns<w, Strided, T>(m, k, a, a_row, a_along, b, b_row, b_along, out, c.stride, c.add,
                               bias);
        b += w * b_along;
        out += w;
        if (bias) bias += w;
    };
    if constexpr (!Strided) {
        constexpr int whole = lanes<T>;
        if constexpr (whole > 4) {
            for (; n >= whole; n -= whole) group(std::integral_constant<int, whole>());
        }
        if constexpr (whole > 8) {
            if (n >= 8) {
                group(std::integral_constant<int, 8>());
                n -= 8;
            }
        }
    }
    for (; n >= 4; n -= 4) group(std::integral_constant<int, 4>());
    if (n == 3) {
        group(std::integral_constant<int, 3>());
    } else if (n == 2) {
        group(std::integral_constant<int, 2>());
    } else if (n == 1) {
        group(std::integral_constant<int, 1>());
    }
}

/// `out` becomes the (k, n) matrix whose columns are the lines of x.
template <class T>
void turn_lines(std::int64_t n, std::int64_t k, const T* x, std::int64_t line, T* out) {
    std::int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const T* lines = x + j * line;
        std::int64_t p = 0;
        for (; p + 4 <= k; p += 4) turn(lines + p, line, out + p * n + j, n);
        for (; p < k; ++p) {
            for (int q = 0; q < 4; ++q) out[p * n + j + q] = lines[q * line + p];
        }
    }
    for (; j < n; ++j) {
        for (std::int64_t p = 0; p < k; ++p) out[p * n + j] = x[j * line + p];
    }
}

template <class T>
[[gnu::noinline]] void multiply_turned(std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
                                       std::int64_t a_row, std::int64_t a_along,
                                       const Operand<T>& b, const Target<T>& c) {
    T turned[small_room];
    turn_lines(n, k, b.data, b.stride, turned);
    in_groups<false, T>(m, n, k, a, a_row, a_along, turned, n, 1, c);
}

template <class T>
void multiply_small(std::int64_t m, std::int64_t n, std::int64_t k, const Operand<T>& a,
                    const Operand<T>& b, const Target<T>& c) {
    const std::int64_t a_row = a.transposed ? 1 : a.stride;
    const std::int64_t a_along = a.transposed ? a.stride : 1;
    if (k == 0) {  // the operands may be null, which mustn't be moved
        in_groups<true, T>(m, n, k, a.data, 0, 0, b.data, 0, 0, c);
    } else if (!b.transposed) {
        in_groups<false, T>(m, n, k, a.data, a_row, a_along, b.data, b.stride, 1, c);
    } else if (m <= 2 || n < 4 || k < 4) {
        in_groups<true, T>(m, n, k, a.data, a_row, a_along, b.data, 1, b.stride, c);
    } else {
        multiply_turned(m, n, k, a.data, a_row, a_along, b, c);
    }
}

}  // namespace

void add_small_products(KernelTable& table) {
    table.of_float.products.multiply_small = multiply_small<float>;
    table.of_double.products.multiply_small = multiply_small<double>;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
