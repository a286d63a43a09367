#pragma once
// Attention of texts whose scores needn't be cut along the keys: tiled attention has this form
// where keys are few. Operands are read where they lie, and weights may be kept for the derivative.

#include <glassgrad/tensor/detail/tiled_attention.hpp>

namespace glassgrad::detail {

/// Whether a call takes this form: by its sizes alone.
bool takes_whole_rows(const Tensor& k, const TiledCall& call);

/// As `attend_in_tiles`, into an output and rows that are there. Weights, if they are kept, are
/// (matrices, panels of queries, keys, panel), the queries of a panel side by side, and undefined
/// numbers where order or window hide all of a panel.
void attend_whole_rows(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
                       TiledResult& result);

/// Writes the gradients of q, k and v that are defined.
void whole_rows_vjp(const Tensor& q, const Tensor& k, const Tensor& v, const TiledCall& call,
                    const TiledResult& result, const Tensor& gy, TiledGradients& out);

}  // namespace glassgrad::detail
