#include <glassgrad/training/bpe_tokenizer.hpp>

#include "byte_characters.hpp"
#include "gpt2_split.hpp"

#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace glassgrad {
namespace {

constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
/// Longer words are hardly met again.
constexpr std::size_t longest_known = 64;

std::uint64_t key(std::int64_t left, std::int64_t right) noexcept {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
}

std::string shown(std::string_view piece) {
    return fmt::format("'{}'", detail::to_byte_characters(piece.substr(0, 40)));
}

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
    throw ValueError("bpe_tokenizer: " + fmt::format(text, std::forward<Args>(args)...));
}

}  // namespace

BpeTokenizer::BpeTokenizer(std::vector<std::string> pieces,
                           const std::vector<std::array<std::int64_t, 2>>& merges)
    : pieces_(std::move(pieces)) {
    if (vocab_size() > max_vocab_size) {
        refuse("{} pieces, above the limit of {}", pieces_.size(), max_vocab_size);
    }
    by_text_.reserve(pieces_.size());
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
        const std::string& piece = pieces_[id];
        if (piece.empty()) refuse("piece {} is empty", id);
        if (piece.size() > max_piece_bytes) {
            refuse("piece {} has {} bytes, above the limit of {}", id, piece.size(),
                   max_piece_bytes);
        }
        const auto [other, is_new] = by_text_.emplace(piece, static_cast<std::int64_t>(id));
        if (!is_new) refuse("pieces {} and {} are both {}", other->second, id, shown(piece));
    }
    std::vector<bool> made(pieces_.size());
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
        const auto found = by_text_.find(std::string(1, static_cast<char>(byte)));
        if (found == by_text_.end()) refuse("the byte {:#04x} has no piece", byte);
        bytes_[byte] = found->second;
        made[static_cast<std::size_t>(found->second)] = true;
    }
    merges_.reserve(merges.size());
    ranks_.reserve(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        const auto [left, right] = merges[rank];
        for (const std::int64_t part : merges[rank]) {
            if (part < 0 || part >= vocab_size()) {
                refuse("merge {}: token {} is outside 0 to {}", rank, part, vocab_size() - 1);
            }
            const auto at = static_cast<std::size_t>(part);
            if (!made[at]) refuse("merge {}: {} is not made before it", rank, shown(pieces_[at]));
        }
        const std::string joined =
            pieces_[static_cast<std::size_t>(left)] + pieces_[static_cast<std::size_t>(right)];
        const auto found = by_text_.find(joined);
        if (found == by_text_.end()) refuse("merge {}: {} is no piece", rank, shown(joined));
        const auto result = static_cast<std::size_t>(found->second);
        if (made[result]) refuse("merge {}: {} is made before it", rank, shown(joined));
        made[result] = true;
        ranks_.emplace(key(left, right), static_cast<std::uint32_t>(rank));
        merges_.push_back({left, right, found->second});
    }
}

/// A word as a list of tokens. Node i begins at byte i; `rank` is that of the pair it begins.
struct BpeTokenizer::Scratch {
    std::vector<std::int64_t> id;
    std::vector<std::uint32_t> next, previous, rank;
    std::vector<std::uint64_t> heap;  ///< rank, then node
};

void BpeTokenizer::encode_word(std::string_view word, Scratch& scratch,
                               std::vector<std::int64_t>& ids, BpeWork& work) const {
    const std::size_t count = word.size();
    if (count >= none) refuse("a word of {} bytes", count);
    auto& id = scratch.id;
    auto& next = scratch.next;
    auto& previous = scratch.previous;
    auto& rank = scratch.rank;
    auto& heap = scratch.heap;
    id.resize(count);
    next.resize(count);
    previous.resize(count);
    rank.assign(count, none);
    heap.clear();
    for (std::size_t i = 0; i < count; ++i) {
        id[i] = bytes_[static_cast<unsigned char>(word[i])];
        next[i] = i + 1 < count ? static_cast<std::uint32_t>(i + 1) : none;
        previous[i] = i > 0 ? static_cast<std::uint32_t>(i - 1) : none;
    }
    const auto look_up = [&](std::uint32_t at) {
        rank[at] = none;
        if (next[at] == none) return;
        ++work.pairs;
        const auto found = ranks_.find(key(id[at], id[next[at]]));
        if (found == ranks_.end()) return;
        rank[at] = found->second;
        heap.push_back(std::uint64_t{found->second} << 32 | at);
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
    };
    for (std::size_t i = 0; i < count; ++i) look_up(static_cast<std::uint32_t>(i));
    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), std::greater<>());
        const auto at = static_cast<std::uint32_t>(heap.back());
        const auto found = static_cast<std::uint32_t>(heap.back() >> 32);
        heap.pop_back();
        if (rank[at] != found) continue;  // the pair is no more
        const std::uint32_t gone = next[at];
        id[at] = merges_[found].result;
        rank[gone] = none;
        next[at] = next[gone];
        if (next[at] != none) previous[next[at]] = at;
        look_up(at);
        if (previous[at] != none) look_up(previous[at]);
    }
    for (std::uint32_t at = 0; at != none; at = next[at]) ids.push_back(id[at]);
}

std::vector<std::int64_t> BpeTokenizer::encode(std::string_view text) const {
    BpeWork work;
    return encode(text, work);
}

std::vector<std::int64_t> BpeTokenizer::encode(std::string_view text, BpeWork& work) const {
    struct Place {
        std::size_t begin, end;
    };
    std::vector<std::int64_t> ids;
    std::unordered_map<std::string_view, Place> known;
    Scratch scratch;
    for (const std::string_view word : split(text)) {
        ++work.words;
        if (word.size() > longest_known) {
            encode_word(word, scratch, ids, work);
            continue;
        }
        const auto [found, is_new] = known.try_emplace(word, Place{ids.size(), 0});
        Place& place = found->second;
        if (is_new) {
            encode_word(word, scratch, ids, work);
            place.end = ids.size();
        } else {
            ++work.known;
            for (std::size_t i = place.begin; i < place.end; ++i) {
                const std::int64_t id = ids[i];
                ids.push_back(id);
            }
        }
    }
    return ids;
}

std::vector<std::string_view> BpeTokenizer::split(std::string_view text) {
    return detail::gpt2_split(text);
}

std::string_view BpeTokenizer::piece(std::int64_t id) const {
    if (id < 0 || id >= vocab_size()) {
        throw IndexError(fmt::format("piece: token {} is outside 0 to {}", id, vocab_size() - 1));
    }
    return pieces_[static_cast<std::size_t>(id)];
}

std::optional<std::int64_t> BpeTokenizer::find(std::string_view piece) const {
    const auto found = by_text_.find(std::string(piece));
    if (found == by_text_.end()) return std::nullopt;
    return found->second;
}

std::string BpeTokenizer::to_json() const {
    detail::JsonWriter out;
    out.begin_object();
    out.name("tokenizer").text("bpe");
    out.name("pieces");
    out.begin_array();
    for (const std::string& piece : pieces_) out.text(detail::to_byte_characters(piece));
    out.end_array();
    out.name("merges");
    out.begin_array();
    for (const BpeMerge& merge : merges_) {
        out.begin_array();
        out.number(merge.left);
        out.number(merge.right);
        out.end_array();
    }
    out.end_array();
    out.end_object();
    return out.take();
}

}  // namespace glassgrad
