#pragma once
// Inner loops over contiguous numbers. The sources of this folder are compiled once for each set
// of instructions; the best that the processor has is chosen at first use, so that an installed
// library runs on any processor of its family. Kernels check nothing, allocate nothing, know no
// threads and throw nothing: who calls has cut the work into pieces by shape alone.

#include "product_kernels.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace glassgrad::detail {

/// y[i] = f(x[i]) of each element, for a function of that name.
template <class T>
struct Maps {
    using Map = void (*)(std::int64_t n, const T* x, T* y);
    using MapWith = void (*)(std::int64_t n, T number, const T* x, T* y);

    Map exp, expm1, log, log1p, sqrt, rsqrt, reciprocal, erf;
    Map tanh, sigmoid, softplus, relu, gelu, gelu_tanh, silu;
    MapWith leaky_relu, elu;
};

/// gx[i] = gy[i] times the slope of a function of that name at x[i]; tanh, sigmoid and relu get
/// their result y instead of x.
template <class T>
struct Slopes {
    using Slope = void (*)(std::int64_t n, const T* x, const T* gy, T* gx);

    Slope tanh, sigmoid, softplus, relu, gelu, gelu_tanh, silu;
};

/// Loops for elements of type T (float, double). A result may lie where an operand of the same
/// size lies; other overlaps are not allowed.
template <class T>
struct Kernels {
    Maps<T> map;
    Slopes<T> slope;
    /// The sum of x[i]², in f64 and in an order that n alone fixes.
    double (*sum_of_squares)(std::int64_t n, const T* x);
    ProductKernels<T> products;
};

/// The loops of one set of instructions.
struct KernelTable {
    Kernels<float> of_float;
    Kernels<double> of_double;
};

struct InstructionSet {
    std::string_view name;
    KernelTable (*kernels)();
};
/// Those that this processor has, best last; the first is the compiler's baseline.
std::span<const InstructionSet> instruction_sets();

extern std::atomic<const KernelTable*> chosen_kernels;
/// As `instruction_set` says; throws as that.
const KernelTable& choose_kernels();

template <class T>
const Kernels<T>& kernels() {
    const KernelTable* table = chosen_kernels.load(std::memory_order_acquire);
    if (!table) table = &choose_kernels();
    if constexpr (sizeof(T) == sizeof(float)) {
        return table->of_float;
    } else {
        return table->of_double;
    }
}

}  // namespace glassgrad::detail
