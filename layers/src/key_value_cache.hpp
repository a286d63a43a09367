#pragma once

#include <glassgrad/layers/multi_head_attention.hpp>

#include <string_view>

namespace glassgrad::detail {

/// Throws ShapeError unless the cache holds keys and values of that shape.
void require_held(const KeyValueCache& cache, const Shape& expected, std::string_view what);

}  // namespace glassgrad::detail
