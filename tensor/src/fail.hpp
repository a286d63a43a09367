#pragma once
// Texts of errors inside tensor/, put together with fmt; shapes and types print as users see them.

#include <glassgrad/tensor/dtype.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/shape.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

template <>
struct fmt::formatter<glassgrad::Shape> : fmt::formatter<std::string> {
    template <class Context>
    auto format(const glassgrad::Shape& shape, Context& context) const {
        return fmt::formatter<std::string>::format(glassgrad::to_string(shape), context);
    }
};
template <>
struct fmt::formatter<glassgrad::DType> : fmt::formatter<std::string_view> {
    template <class Context>
    auto format(glassgrad::DType dtype, Context& context) const {
        return fmt::formatter<std::string_view>::format(glassgrad::name(dtype), context);
    }
};

namespace glassgrad::detail {

/// An error text with its likely fix: `fail<ShapeError>(hint("transpose b"), "matmul: …", …)`.
struct Hint {
    std::string text;
};
template <class... Args>
Hint hint(fmt::format_string<Args...> text, Args&&... args) {
    return {fmt::format(text, std::forward<Args>(args)...)};
}

template <class E, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...));
}
template <class E, class... Args>
[[noreturn]] void fail(const Hint& hint, fmt::format_string<Args...> text, Args&&... args) {
    throw E(fmt::format(text, std::forward<Args>(args)...), hint.text);
}

/// For what looks at shape or type before it reads the elements.
inline void require_defined(std::string_view op, const Tensor& x) {
    if (!x.defined()) {
        fail<ValueError>("{}: a tensor is undefined (default-constructed or moved from)", op);
    }
}

}  // namespace glassgrad::detail
