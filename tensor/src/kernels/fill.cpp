// One number throughout.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

template <class T>
void fill(N n, T value, T* y) {
    for (N i = 0; i < n; ++i) y[i] = value;
}

}  // namespace

void add_fill(KernelTable& table) {
    table.of_float.map.fill = fill<float>;
    table.of_double.map.fill = fill<double>;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
