#pragma once
// What a source of kernels begins with. GLASSGRAD_ISA names the set of instructions that it is
// compiled for. Everything in such a source lies in the namespace of that name or has no name
// outside, and nothing in it runs before the choice: a function that two sets share, or an
// initialiser, would run with the instructions of a processor that isn't there.

#include "kernels.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

/// What a loop calls for each element has to be part of it, or the loop is no vector code; how much
/// compilers take in by themselves is a matter of taste.
#define GLASSGRAD_INLINE [[gnu::always_inline]] inline

namespace glassgrad::detail::GLASSGRAD_ISA {

/// a b + c, rounded once where the processor can.
template <class T>
GLASSGRAD_INLINE T mul_add(T a, T b, T c) noexcept {
#ifdef __FMA__
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

/// a b - product, exactly, where `product` is a b rounded and nothing is near the ends of T's
/// range.
template <class T>
GLASSGRAD_INLINE T lost_of_product(T a, T b, T product) noexcept {
#ifdef __FMA__
    return std::fma(a, b, -product);
#else
    // The upper halves of the digits, whose products are exact (Dekker 1971).
    using Bits = std::conditional_t<sizeof(T) == sizeof(float), std::uint32_t, std::uint64_t>;
    constexpr Bits upper = ~Bits{0} << ((std::numeric_limits<T>::digits + 1) / 2);
    const T a1 = std::bit_cast<T>(std::bit_cast<Bits>(a) & upper);
    const T b1 = std::bit_cast<T>(std::bit_cast<Bits>(b) & upper);
    const T a2 = a - a1;
    const T b2 = b - b1;
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
#endif
}

// Each fills the entries of its source.
void add_activations(KernelTable& table);
void add_arithmetic(KernelTable& table);
void add_attention(KernelTable& table);
void add_exponentials(KernelTable& table);
void add_norms(KernelTable& table);
void add_softmax(KernelTable& table);
void add_fill(KernelTable& table);
void add_sum_rows(KernelTable& table);
void add_updates(KernelTable& table);
void add_squares(KernelTable& table);
void add_products(KernelTable& table);
void add_small_products(KernelTable& table);
void add_attend_row(KernelTable& table);

KernelTable kernels();

}  // namespace glassgrad::detail::GLASSGRAD_ISA
