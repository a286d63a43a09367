#include <glassgrad/tensor/detail/text.hpp>

#include <array>
#include <cstring>

namespace glassgrad::detail {
namespace {

/// Bytes of the UTF-8 sequence that starts at `i`, or 0: no overlong forms, no surrogates, nothing
/// above U+10FFFF.
std::size_t sequence_length(std::string_view text, std::size_t i) noexcept {
    const auto byte = [&](std::size_t k) {
        return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U;
    };
    const auto is_tail = [&](std::size_t k) { return (byte(k) & 0xC0U) == 0x80U; };
    const unsigned lead = byte(i);
    if (lead < 0x80) return 1;
    if (lead >= 0xC2 && lead <= 0xDF) return is_tail(i + 1) ? 2 : 0;
    if (lead >= 0xE0 && lead <= 0xEF) {
        const unsigned next = byte(i + 1);
        if (lead == 0xE0 && next < 0xA0) return 0;
        if (lead == 0xED && next > 0x9F) return 0;
        return is_tail(i + 1) && is_tail(i + 2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const unsigned next = byte(i + 1);
        if (lead == 0xF0 && next < 0x90) return 0;
        if (lead == 0xF4 && next > 0x8F) return 0;
        return is_tail(i + 1) && is_tail(i + 2) && is_tail(i + 3) ? 4 : 0;
    }
    return 0;
}

constexpr std::string_view alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> make_digit_values() {
    std::array<std::int8_t, 256> values{};
    for (auto& value : values) value = -1;
    for (std::size_t i = 0; i < alphabet.size(); ++i) {
        values[static_cast<unsigned char>(alphabet[i])] = static_cast<std::int8_t>(i);
    }
    return values;
}
constexpr std::array<std::int8_t, 256> digit_values = make_digit_values();

std::string quoted_character(char c) {
    const auto code = static_cast<unsigned char>(c);
    if (code > 0x20 && code < 0x7F) return std::string("character ") + c;
    return "byte 0x" + to_hex({&c, 1});
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) noexcept {
    std::size_t i = 0;
    while (i < text.size()) {
        if (i + 8 <= text.size()) {
            std::uint64_t word = 0;
            std::memcpy(&word, text.data() + i, 8);
            if ((word & 0x8080808080808080ULL) == 0) {
                i += 8;
                continue;
            }
        }
        const std::size_t length = sequence_length(text, i);
        if (length == 0) return i;
        i += length;
    }
    return std::string_view::npos;
}

std::string repair_utf8(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t length = sequence_length(text, i);
        if (length == 0) {
            result.append("\xEF\xBF\xBD");
            ++i;
        } else {
            result.append(text.substr(i, length));
            i += length;
        }
    }
    return result;
}

void append_base64(std::string& out, std::span<const std::byte> bytes) {
    out.reserve(out.size() + (bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 3; ++k) {
            group = group << 8U | (k < count ? static_cast<std::uint32_t>(bytes[i + k]) : 0U);
        }
        for (std::size_t k = 0; k < 4; ++k) {
            out.push_back(k <= count ? alphabet[group >> (18 - 6 * k) & 63U] : '=');
        }
    }
}

std::optional<Base64Fault> decode_base64(std::string_view text, std::vector<std::byte>& bytes) {
    std::size_t padding = 0;
    while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') {
        ++padding;
    }
    const std::string_view digits = text.substr(0, text.size() - padding);
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (digit_values[static_cast<unsigned char>(digits[i])] < 0) {
            return Base64Fault{i, quoted_character(digits[i]) + " in base64"};
        }
    }
    if (text.size() % 4 != 0) {
        return Base64Fault{text.size(), "base64 of " + std::to_string(text.size()) +
                                            " characters, not a multiple of 4"};
    }
    bytes.reserve(bytes.size() + text.size() / 4 * 3);
    for (std::size_t i = 0; i < digits.size(); i += 4) {
        const std::size_t count = digits.size() - i < 4 ? digits.size() - i : 4;
        std::uint32_t group = 0;
        for (std::size_t k = 0; k < 4; ++k) {
            const int digit =
                k < count ? digit_values[static_cast<unsigned char>(digits[i + k])] : 0;
            group = group << 6U | static_cast<std::uint32_t>(digit);
        }
        const std::size_t whole = count - 1;
        if (whole < 3 && group << (8 + 8 * whole) != 0) {
            return Base64Fault{i + count - 1, "base64 ends in bits that belong to no byte"};
        }
        for (std::size_t k = 0; k < whole; ++k) {
            bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * k) & 255U));
        }
    }
    return std::nullopt;
}

std::string quoted(std::string_view text, std::size_t longest) {
    std::string result = "'";
    for (const char c : text.substr(0, longest)) {
        if (c >= ' ' && c <= '~') {
            result += c;
        } else {
            result += "\\x" + to_hex({&c, 1});
        }
    }
    return result + (text.size() > longest ? "...'" : "'");
}

std::string to_hex(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string result;
    for (const char c : bytes) {
        const auto code = static_cast<unsigned char>(c);
        result.push_back(digits[code >> 4U]);
        result.push_back(digits[code & 15U]);
    }
    return result;
}

std::optional<std::string> from_hex(std::string_view text) {
    if (text.size() % 2 != 0) return std::nullopt;
    std::string result;
    for (std::size_t i = 0; i < text.size(); i += 2) {
        unsigned code = 0;
        for (const char c : text.substr(i, 2)) {
            const bool is_digit = c >= '0' && c <= '9';
            if (!is_digit && (c < 'a' || c > 'f')) return std::nullopt;
            code = code * 16 + static_cast<unsigned>(is_digit ? c - '0' : c - 'a' + 10);
        }
        result.push_back(static_cast<char>(code));
    }
    return result;
}

}  // namespace glassgrad::detail
