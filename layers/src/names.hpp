#pragma once
// Choices that configurations write as words.

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>

namespace glassgrad::detail {

template <class E>
struct Named {
    E value;
    std::string_view name;
};

template <class E, std::size_t N>
std::string_view name_of(const Named<E> (&table)[N], E value) {
    for (const Named<E>& each : table) {
        if (each.value == value) return each.name;
    }
    throw ValueError("name: not one of the values there are");
}

/// Throws ValueError that lists the names there are.
template <class E, std::size_t N>
E value_named(const Named<E> (&table)[N], std::string_view name, std::string_view what) {
    std::string known;
    for (const Named<E>& each : table) {
        if (each.name == name) return each.value;
        known += (known.empty() ? "" : ", ") + std::string(each.name);
    }
    throw ValueError(fmt::format("{}: there is no '{}'", what, name), "there are: " + known);
}

}  // namespace glassgrad::detail
