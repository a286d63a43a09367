#include <glassgrad/autograd/op_row.hpp>

#include "ops/family.hpp"

namespace glassgrad {

std::vector<const OpRow*> op_table() {
    std::vector<const OpRow*> table;
    for (const std::span<const OpRow> family : {detail::arithmetic_rows(),
                                                detail::attention_rows(),
                                                detail::tiled_attention_rows(),
                                                detail::projected_attention_rows(),
                                                detail::elementwise_rows(),
                                                detail::activation_rows(),
                                                detail::choose_rows(),
                                                detail::layer_norm_rows(),
                                                detail::loss_rows(),
                                                detail::cross_entropy_rows(),
                                                detail::product_rows(),
                                                detail::einsum_rows(),
                                                detail::reduce_rows(),
                                                detail::extreme_rows(),
                                                detail::shape_rows(),
                                                detail::axes_rows(),
                                                detail::rearrange_rows(),
                                                detail::rotary_rows(),
                                                detail::index_rows(),
                                                detail::normalize_rows()}) {
        for (const OpRow& row : family) table.push_back(&row);
    }
    return table;
}

}  // namespace glassgrad
