#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

KernelTable kernels() {
    KernelTable table{};
    add_activations(table);
    add_exponentials(table);
    add_squares(table);
    add_products(table);
    return table;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
