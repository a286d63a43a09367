#include <glassgrad/training/bpe_tokenizer.hpp>
#include <glassgrad/training/tokenizer.hpp>

#include "byte_characters.hpp"

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>

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

void read_pieces(detail::JsonCursor& in, std::vector<std::string>& pieces) {
    in.array([&](std::size_t) {
        const std::string text = in.string();
        std::size_t bad = 0;
        auto bytes = detail::from_byte_characters(text, bad);
        if (!bytes) in.fail(fmt::format("a character at {} stands for no byte", bad));
        pieces.push_back(std::move(*bytes));
    });
}

void read_merges(detail::JsonCursor& in, std::vector<std::array<std::int64_t, 2>>& merges) {
    in.array([&](std::size_t) {
        std::size_t count = 0;
        std::array<std::int64_t, 2> merge{};
        in.array([&](std::size_t i) {
            const std::int64_t id = in.integer();
            if (i >= 2) in.fail("a merge has two ids");
            merge[i] = id;
            ++count;
        });
        if (count != 2) in.fail("a merge has two ids");
        merges.push_back(merge);
    });
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
        std::string kind, characters;
        std::vector<std::string> pieces;
        std::vector<std::array<std::int64_t, 2>> merges;
        std::vector<std::string> members;
        in.object([&](std::string_view name) {
            members.emplace_back(name);
            if (name == "tokenizer") {
                kind = in.string();
                if (kind != "characters" && kind != "bpe") {
                    in.fail(fmt::format("there is no tokenizer {}", detail::quoted(kind)));
                }
            } else if (name == "characters") {
                characters = in.string();
                if (characters.empty()) in.fail("there are no characters");
                std::int64_t next = 0;
                for (const std::int64_t id : CharTokenizer(characters).encode(characters)) {
                    if (id != next++) in.fail("the characters are not in order, each once");
                }
            } else if (name == "pieces") {
                read_pieces(in, pieces);
            } else if (name == "merges") {
                read_merges(in, merges);
            } else {
                in.fail("there is no such member");
            }
        });
        if (kind.empty()) in.fail(begin, "the member 'tokenizer' is missing");
        const auto need = [&](std::initializer_list<std::string_view> names) {
            for (const std::string_view name : names) {
                if (std::find(members.begin(), members.end(), name) == members.end()) {
                    in.fail(begin, fmt::format("the member '{}' is missing", name));
                }
            }
            if (members.size() > names.size() + 1) {
                in.fail(begin, fmt::format("a tokenizer '{}' has no such other members", kind));
            }
        };
        if (kind == "characters") {
            need({"characters"});
            result = std::make_unique<CharTokenizer>(characters);
            return;
        }
        need({"pieces", "merges"});
        std::string problem;
        try {
            result = std::make_unique<BpeTokenizer>(std::move(pieces), merges);
        } catch (const ValueError& error) {
            problem = error.what();
        }
        if (!problem.empty()) in.fail(begin, problem);
    });
    return result;
}

}  // namespace glassgrad
