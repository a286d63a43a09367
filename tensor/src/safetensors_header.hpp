#pragma once
// The header of a safetensors file: which tensor is where. All that can be wrong about a file,
// but for the values of its elements, is found here.

#include <glassgrad/tensor/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad::detail {

/// An element type of the format.
struct SafetensorsType {
    std::string_view name;
    char kind;  ///< f, h (binary16), g (bfloat16), i, u or b
    int item_bytes;
    DType dtype;  ///< what it becomes
};

struct SafetensorsEntry {
    const SafetensorsType* type = nullptr;
    Shape shape;
    std::uint64_t begin = 0;  ///< in the file
    std::uint64_t end = 0;
};

struct SafetensorsHeader {
    std::vector<std::string> names;
    std::vector<SafetensorsEntry> entries;  ///< one a name
    std::vector<std::pair<std::string, std::string>> metadata;
    std::vector<std::uint32_t> by_name;  ///< indices, sorted by name
};

/// `begin` is the file, or as much of it as holds the length of the header and the header. Throws
/// FileError; its text starts with `where`.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> begin, std::uint64_t file_size,
                                          const std::string& where);

}  // namespace glassgrad::detail
