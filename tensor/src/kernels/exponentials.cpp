// exp and what is made of it.

#include "isa.hpp"

#include "fast_exp.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

template <class T>
void exp_each(std::int64_t n, const T* x, T* y) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = fast_exp(x[i]);
}

template <class T>
void add(Kernels<T>& kernels) {
    kernels.exp = exp_each<T>;
}

}  // namespace

void add_exponentials(KernelTable& table) {
    add(table.of_float);
    add(table.of_double);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
