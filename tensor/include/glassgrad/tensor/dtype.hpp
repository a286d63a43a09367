#pragma once
// Element types, chosen at run time. There is no promotion: mixing two of them is an error.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace glassgrad {

enum class DType : std::uint8_t { f32, f64, i64, boolean };

inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType i64 = DType::i64;
inline constexpr DType boolean = DType::boolean;

/// `f32`, `f64`, `i64` or `boolean`.
std::string_view name(DType dtype) noexcept;

/// Bytes of one element.
constexpr std::size_t item_size(DType dtype) noexcept {
    return dtype == DType::f32 ? 4 : dtype == DType::boolean ? 1 : 8;
}

constexpr bool is_floating(DType dtype) noexcept {
    return dtype == DType::f32 || dtype == DType::f64;
}

/// The DType of a C++ type: float, double, std::int64_t or bool.
template <class T>
constexpr DType dtype_of() noexcept {
    if constexpr (std::is_same_v<T, float>) {
        return DType::f32;
    } else if constexpr (std::is_same_v<T, double>) {
        return DType::f64;
    } else if constexpr (std::is_same_v<T, bool>) {
        return DType::boolean;
    } else {
        static_assert(std::is_same_v<T, std::int64_t>,
                      "element types are float, double, std::int64_t and bool");
        return DType::i64;
    }
}

}  // namespace glassgrad
