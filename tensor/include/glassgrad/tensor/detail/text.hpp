#pragma once
// Numbers, UTF-8, base64 and hexadecimal as text, all without a locale.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad::detail {

/// Integers beyond this are written as texts, since readers that know only doubles lose them.
inline constexpr std::int64_t max_exact_integer = (std::int64_t{1} << 53) - 1;

/// Appends the shortest JSON number that gives back `x` exactly, always with a point or an
/// exponent. A float survives a reader that parses doubles. Not for NaN and infinities.
void append_number(std::string& out, float x);
void append_number(std::string& out, double x);
void append_number(std::string& out, std::int64_t x);
void append_number(std::string& out, std::uint64_t x);

enum class NumberFault { none, not_a_number, too_large, too_small };
/// The nearest value of a JSON number. `too_small`: not zero, but rounds to it.
NumberFault parse_number(std::string_view text, float& x);
NumberFault parse_number(std::string_view text, double& x);
/// `not_a_number` also for a fraction or exponent.
NumberFault parse_number(std::string_view text, std::int64_t& x);
NumberFault parse_number(std::string_view text, std::uint64_t& x);

/// Position of the first byte that is no part of UTF-8 (RFC 3629), or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;
/// Each byte that fits nowhere becomes U+FFFD.
std::string repair_utf8(std::string_view text);

void append_base64(std::string& out, std::span<const std::byte> bytes);
struct Base64Fault {
    std::size_t position;
    std::string problem;
};
/// Appends the decoded bytes; standard alphabet, padded, no blanks.
std::optional<Base64Fault> decode_base64(std::string_view text, std::vector<std::byte>& bytes);

/// Printable text for errors, in quotes, cut after `longest` bytes.
std::string quoted(std::string_view text, std::size_t longest = 40);

std::string to_hex(std::string_view bytes);
/// None unless `text` is pairs of digits 0-9a-f.
std::optional<std::string> from_hex(std::string_view text);

}  // namespace glassgrad::detail
