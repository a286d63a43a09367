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

/// Loops for elements of type T (float, double). A result may lie where an operand of the same
/// size lies; other overlaps are not allowed.
template <class T>
struct Kernels {
    /// y[i] = exp(x[i])
    void (*exp)(std::int64_t n, const T* x, T* y);
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
