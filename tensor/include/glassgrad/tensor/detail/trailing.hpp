#pragma once
// Axes brought to the end of a shape and back, for functions that work on the last ones.

#include <glassgrad/tensor/shape.hpp>

#include <span>
#include <string_view>

namespace glassgrad::detail {

struct Trailing {
    bool already = true;  ///< the axes are the last ones
    int count = 0;        ///< how many they are
    Shape order;          ///< permutation that brings them to the end, in their order
    Shape inverse;        ///< and the one that brings them back

    Axes last() const;
};

/// Throws IndexError that names `op` when an axis does not exist.
Trailing trailing(std::string_view op, const Shape& shape, const Axes& axes);

/// How many the axes are when they are the last ones, else -1. Throws as `trailing`.
int last_count(std::string_view op, const Shape& shape, const Axes& axes);

inline std::span<const std::int64_t> list(const Shape& shape) {
    return {shape.begin(), shape.end()};
}

}  // namespace glassgrad::detail
