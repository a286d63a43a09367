#pragma once
// The parts of a safetensors file that is about to be written, for formats that build upon it.

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad::detail {

struct SafetensorsLayout {
    std::string head;                ///< length of the header, and the header
    std::vector<std::size_t> order;  ///< in which the tensors' bytes follow
};

/// Throws ValueError as `save_safetensors`.
SafetensorsLayout lay_out_safetensors(
    std::span<const std::pair<std::string, Tensor>> tensors,
    std::span<const std::pair<std::string, std::string>> metadata);

void write_safetensors(OutputFile& file, const SafetensorsLayout& layout,
                       std::span<const std::pair<std::string, Tensor>> tensors);

/// The name that the format has for `dtype`.
std::string_view safetensors_type_name(DType dtype) noexcept;

}  // namespace glassgrad::detail
