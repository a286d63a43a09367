#pragma once
// The equation of an einsum once its shapes are known: an ellipsis has become letters, and what is
// left out after `->` is filled in.

#include <glassgrad/tensor/shape.hpp>

#include <string>
#include <string_view>

namespace glassgrad::detail {

/// One letter an axis. In an operand, `once` stands for a batch axis of size 1 beside another size:
/// it takes part in nothing, and goes by reshape.
struct EinsumEquation {
    static constexpr char once = '1';

    std::string a;
    std::string b;  ///< empty, too, where there is one operand
    std::string result;

    /// Throws ValueError on an equation that cannot be read, ShapeError when a shape does not fit
    /// it. `b` is null for one operand.
    EinsumEquation(std::string_view equation, const Shape& a, const Shape* b);
};

}  // namespace glassgrad::detail
