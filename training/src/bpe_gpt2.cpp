// GPT-2's two files: pieces by number, written in its characters for bytes, and merges by line.

#include <glassgrad/training/bpe_tokenizer.hpp>

#include "byte_characters.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

namespace glassgrad {
namespace {

constexpr std::string_view version_mark = "#version:";

std::vector<std::string> read_vocab(std::string_view text, std::string_view where) {
    std::vector<std::string> pieces;
    std::vector<bool> given;
    detail::read_json(text, where, [&](detail::JsonCursor& in) {
        std::size_t count = 0;
        in.object([&](std::string_view name) {
            std::size_t bad = 0;
            const std::optional<std::string> bytes = detail::from_byte_characters(name, bad);
            const std::int64_t id = in.integer();
            if (!bytes) {
                in.fail(fmt::format("{} has a character at {} that stands for no byte",
                                    detail::quoted(name), bad));
            }
            if (bytes->empty()) in.fail("a piece is empty");
            if (id < 0 || id >= BpeTokenizer::max_vocab_size) {
                in.fail(
                    fmt::format("id {} is outside 0 to {}", id, BpeTokenizer::max_vocab_size - 1));
            }
            const auto at = static_cast<std::size_t>(id);
            if (at >= pieces.size()) {
                pieces.resize(at + 1);
                given.resize(at + 1);
            }
            if (given[at]) in.fail(fmt::format("id {} comes twice", id));
            given[at] = true;
            pieces[at] = *bytes;
            ++count;
        });
        for (std::size_t id = 0; id < given.size(); ++id) {
            if (!given[id]) in.fail(0, fmt::format("{} pieces, but none with id {}", count, id));
        }
    });
    return pieces;
}

std::vector<std::array<std::int64_t, 2>> read_merges(
    std::string_view text, std::string_view where,
    const std::unordered_map<std::string, std::int64_t>& ids) {
    std::vector<std::array<std::int64_t, 2>> merges;
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (number == 1 && line.starts_with(version_mark)) continue;
        const std::size_t space = line.find(' ');
        if (space == line.npos || line.find(' ', space + 1) != line.npos) {
            throw FileError(fmt::format("{}line {}: {} is not two pieces with a space between them",
                                        where, number, detail::quoted(line)));
        }
        std::array<std::int64_t, 2> merge{};
        for (std::size_t i = 0; i < 2; ++i) {
            const std::string_view part = i == 0 ? line.substr(0, space) : line.substr(space + 1);
            std::size_t bad = 0;
            const auto bytes = detail::from_byte_characters(part, bad);
            const auto found = bytes ? ids.find(*bytes) : ids.end();
            if (found == ids.end()) {
                throw FileError(fmt::format("{}line {}: {} is not in the vocabulary", where, number,
                                            detail::quoted(part)));
            }
            merge[i] = found->second;
        }
        merges.push_back(merge);
    }
    return merges;
}

BpeTokenizer read(std::string_view vocab, std::string_view merges, const std::string& vocab_name,
                  const std::string& merges_name) {
    std::vector<std::string> pieces = read_vocab(vocab, vocab_name + ": ");
    std::unordered_map<std::string, std::int64_t> ids;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        ids.emplace(pieces[i], static_cast<std::int64_t>(i));
    }
    const auto pairs = read_merges(merges, merges_name + ": ", ids);
    try {
        return BpeTokenizer(std::move(pieces), pairs);
    } catch (const ValueError& error) {
        throw FileError(fmt::format("{}, {}: {}", vocab_name, merges_name, error.what()));
    }
}

}  // namespace

BpeTokenizer BpeTokenizer::from_gpt2(std::string_view vocab_json, std::string_view merges_txt) {
    return read(vocab_json, merges_txt, "gpt2: vocab.json", "gpt2: merges.txt");
}

BpeTokenizer BpeTokenizer::load_gpt2(const std::string& vocab_path,
                                     const std::string& merges_path) {
    const detail::MappedFile vocab("gpt2", vocab_path), merges("gpt2", merges_path);
    const auto text = [](const detail::MappedFile& file) {
        return std::string_view(reinterpret_cast<const char*>(file.bytes().data()),
                                file.bytes().size());
    };
    return read(text(vocab), text(merges), "gpt2: " + vocab_path, "gpt2: " + merges_path);
}

std::string BpeTokenizer::gpt2_vocab() const {
    detail::JsonWriter out;
    out.begin_object();
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
        out.name(detail::to_byte_characters(pieces_[id])).number(static_cast<std::int64_t>(id));
    }
    out.end_object();
    return out.take();
}

std::string BpeTokenizer::gpt2_merges() const {
    std::string text = "#version: 0.2\n";
    for (const BpeMerge& merge : merges_) {
        text += detail::to_byte_characters(piece(merge.left)) + ' ' +
                detail::to_byte_characters(piece(merge.right)) + '\n';
    }
    return text;
}

}  // namespace glassgrad
