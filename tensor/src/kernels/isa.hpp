#pragma once
// What a source of kernels begins with. GLASSGRAD_ISA names the set of instructions that it is
// compiled for. Everything in such a source lies in the namespace of that name or has no name
// outside, and nothing in it runs before the choice: a function that two sets share, or an
// initialiser, would run with the instructions of a processor that isn't there.

#include "kernels.hpp"

#include <cmath>

namespace glassgrad::detail::GLASSGRAD_ISA {

/// a b + c, rounded once where the processor can.
template <class T>
inline T mul_add(T a, T b, T c) noexcept {
#ifdef __FMA__
    return std::fma(a, b, c);
#else
    return a * b + c;
#endif
}

// Each fills the entries of its source.
void add_exponentials(KernelTable& table);
void add_squares(KernelTable& table);
void add_products(KernelTable& table);

KernelTable kernels();

}  // namespace glassgrad::detail::GLASSGRAD_ISA
