#pragma once
// GPT-2 writes bytes as visible characters: those that are visible in Latin-1 stand for themselves,
// the others for U+0100 and on. Source: OpenAI's encoder.py.

#include <optional>
#include <string>
#include <string_view>

namespace glassgrad::detail {

std::string to_byte_characters(std::string_view bytes);
/// None when a character stands for no byte; `bad` is then its place.
std::optional<std::string> from_byte_characters(std::string_view text, std::size_t& bad);

}  // namespace glassgrad::detail
