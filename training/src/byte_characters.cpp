#include "byte_characters.hpp"

#include <array>

namespace glassgrad::detail {
namespace {

struct Table {
    std::array<unsigned, 256> code{};
    std::array<int, 0x144> byte{};

    Table() {
        byte.fill(-1);
        unsigned next = 0x100;
        for (unsigned b = 0; b < 256; ++b) {
            const bool visible = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
            code[b] = visible ? b : next++;
            byte[code[b]] = static_cast<int>(b);
        }
    }
};

const Table& table() {
    static const Table result;
    return result;
}

}  // namespace

std::string to_byte_characters(std::string_view bytes) {
    std::string text;
    for (const char c : bytes) {
        const unsigned code = table().code[static_cast<unsigned char>(c)];
        if (code < 0x80) {
            text.push_back(static_cast<char>(code));
        } else {
            text.push_back(static_cast<char>(0xC0 | code >> 6));
            text.push_back(static_cast<char>(0x80 | (code & 0x3F)));
        }
    }
    return text;
}

std::optional<std::string> from_byte_characters(std::string_view text, std::size_t& bad) {
    std::string bytes;
    for (std::size_t i = 0; i < text.size();) {
        bad = i;
        unsigned code = static_cast<unsigned char>(text[i++]);
        if (code >= 0x80) {
            // All that stand for bytes have two bytes themselves.
            if (code < 0xC2 || code > 0xDF || i == text.size()) return std::nullopt;
            const unsigned tail = static_cast<unsigned char>(text[i++]);
            if ((tail & 0xC0) != 0x80) return std::nullopt;
            code = (code & 0x1F) << 6 | (tail & 0x3F);
        }
        if (code >= table().byte.size() || table().byte[code] < 0) return std::nullopt;
        bytes.push_back(static_cast<char>(table().byte[code]));
    }
    return bytes;
}

}  // namespace glassgrad::detail
