#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {

KernelTable kernels() {
    KernelTable table{};
    add_activations(table);
    add_arithmetic(table);
    add_attention(table);
    add_exponentials(table);
    add_norms(table);
    add_softmax(table);
    add_squares(table);
    add_fill(table);
    add_sum_rows(table);
    add_updates(table);
    add_products(table);
    add_small_products(table);
    add_attend_row(table);
    return table;
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
