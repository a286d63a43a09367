#include <glassgrad/training/tokenizer.hpp>

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

namespace glassgrad {
namespace {

/// A character of valid UTF-8.
struct Character {
    std::uint32_t code;
    std::size_t size;
};

Character character_at(std::string_view text, std::size_t i) noexcept {
    const auto byte = [&](std::size_t k) {
        return static_cast<std::uint32_t>(static_cast<unsigned char>(text[i + k]));
    };
    const auto tail = [&](std::size_t k) { return byte(k) & 0x3FU; };
    const std::uint32_t lead = byte(0);
    if (lead < 0x80) return {lead, 1};
    if (lead < 0xE0) return {(lead & 0x1FU) << 6 | tail(1), 2};
    if (lead < 0xF0) return {(lead & 0x0FU) << 12 | tail(1) << 6 | tail(2), 3};
    return {(lead & 0x07U) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

std::string quoted(std::string_view character, std::uint32_t code) {
    if (code < 0xA0) return detail::quoted(character);
    return fmt::format("'{}'", character);
}

void check_utf8(std::string_view text) {
    const std::size_t bad = detail::find_invalid_utf8(text);
    if (bad == std::string_view::npos) return;
    throw ValueError(fmt::format("char_tokenizer: byte {:#04x} at offset {} is not UTF-8",
                                 static_cast<unsigned char>(text[bad]), bad),
                     "BpeTokenizer takes any bytes");
}

}  // namespace

std::string Tokenizer::decode(std::span<const std::int64_t> ids) const {
    std::string text;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < 0 || ids[i] >= vocab_size()) {
            throw IndexError(fmt::format("decode: token {} at place {} is outside 0 to {}", ids[i],
                                         i, vocab_size() - 1));
        }
        text += piece(ids[i]);
    }
    return text;
}

Tensor Tokenizer::encode_tensor(std::string_view text) const {
    const std::vector<std::int64_t> ids = encode(text);
    return from_span(std::span<const std::int64_t>(ids), {static_cast<std::int64_t>(ids.size())});
}

CharTokenizer::CharTokenizer(std::string_view text) {
    if (text.empty()) throw ValueError("char_tokenizer: the text is empty");
    check_utf8(text);
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text, i);
        if (c.code >= ids_.size()) ids_.resize(c.code + 1, -1);
        ids_[c.code] = 0;
        i += c.size;
    }
    std::int32_t next = 0;
    for (std::int32_t& id : ids_) {
        if (id == 0) id = next++;
    }
    // Their first places in the text, in order of code points.
    std::vector<std::string_view> pieces(static_cast<std::size_t>(next));
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text, i);
        std::string_view& piece = pieces[static_cast<std::size_t>(ids_[c.code])];
        if (piece.empty()) piece = text.substr(i, c.size);
        i += c.size;
    }
    begins_.push_back(0);
    for (const std::string_view piece : pieces) {
        characters_ += piece;
        begins_.push_back(static_cast<std::uint32_t>(characters_.size()));
    }
}

std::vector<std::int64_t> CharTokenizer::encode(std::string_view text) const {
    check_utf8(text);
    std::vector<std::int64_t> ids;
    ids.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        const Character c = character_at(text, i);
        if (c.code >= ids_.size() || ids_[c.code] < 0) {
            throw ValueError(
                fmt::format("char_tokenizer: the character {} (U+{:04X}) at offset {} is not among "
                            "the {} of the vocabulary",
                            quoted(text.substr(i, c.size), c.code), c.code, i, vocab_size()),
                "leave it out, or make the tokenizer from a text that has it");
        }
        ids.push_back(ids_[c.code]);
        i += c.size;
    }
    return ids;
}

std::int64_t CharTokenizer::vocab_size() const noexcept {
    return static_cast<std::int64_t>(begins_.size()) - 1;
}

std::string_view CharTokenizer::piece(std::int64_t id) const {
    if (id < 0 || id >= vocab_size()) {
        throw IndexError(fmt::format("piece: token {} is outside 0 to {}", id, vocab_size() - 1));
    }
    const auto at = static_cast<std::size_t>(id);
    return std::string_view(characters_).substr(begins_[at], begins_[at + 1] - begins_[at]);
}

std::string CharTokenizer::to_json() const {
    detail::JsonWriter out;
    out.begin_object();
    out.name("tokenizer").text("characters");
    out.name("characters").text(characters_);
    out.end_object();
    return out.take();
}

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view text) {
    std::unique_ptr<Tokenizer> result;
    detail::read_json(text, "tokenizer: ", [&](detail::JsonCursor& in) {
        in.peek();
        const std::size_t begin = in.offset();
        bool named = false;
        in.object([&](std::string_view name) {
            if (name == "tokenizer") {
                named = true;
                const std::string kind = in.string();
                if (kind != "characters") {
                    in.fail(fmt::format("there is no tokenizer {}", detail::quoted(kind)));
                }
            } else if (name == "characters") {
                const std::string characters = in.string();
                if (characters.empty()) in.fail("there are no characters");
                auto made = std::make_unique<CharTokenizer>(characters);
                std::int64_t next = 0;
                for (const std::int64_t id : made->encode(characters)) {
                    if (id != next++) in.fail("the characters are not in order, each once");
                }
                result = std::move(made);
            } else {
                in.fail("there is no such member");
            }
        });
        if (!named) in.fail(begin, "the member 'tokenizer' is missing");
        if (!result) in.fail(begin, "the member 'characters' is missing");
    });
    return result;
}

}  // namespace glassgrad
