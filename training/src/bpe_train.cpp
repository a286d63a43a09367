#include <glassgrad/training/bpe_tokenizer.hpp>

#include "gpt2_split.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <queue>

namespace glassgrad {
namespace {

/// Left in the upper half, right in the lower.
using Pair = std::uint64_t;

Pair pair_of(std::uint32_t left, std::uint32_t right) noexcept { return Pair{left} << 32 | right; }

struct Word {
    std::vector<std::uint32_t> tokens;
    std::int64_t count;
};

struct Candidate {
    std::int64_t count;
    Pair pair;

    /// The most frequent pair is on top, of equals the one with the lowest ids.
    bool operator<(const Candidate& other) const noexcept {
        return count != other.count ? count < other.count : pair > other.pair;
    }
};

std::vector<Word> count_words(std::string_view text) {
    std::vector<Word> words;
    std::unordered_map<std::string_view, std::size_t> places;
    for (const std::string_view word : detail::gpt2_split(text)) {
        const auto [place, is_new] = places.try_emplace(word, words.size());
        if (is_new) {
            words.push_back({{}, 0});
            for (const char c : word) words.back().tokens.push_back(static_cast<unsigned char>(c));
        }
        ++words[place->second].count;
    }
    return words;
}

/// How often each pair is there, kept up to date as words change.
class Pairs {
  public:
    explicit Pairs(std::vector<Word>& words) : words_(words) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            count(i, 1);
            list(i, [](std::uint32_t) { return true; });
        }
        push_listed();
    }

    /// The next pair to be joined; none when no pair comes twice.
    std::optional<Pair> next() {
        while (!candidates_.empty()) {
            const Candidate top = candidates_.top();
            candidates_.pop();
            const std::int64_t count = found_[top.pair].count;
            if (count == top.count && count >= 2) return top.pair;
            if (count != top.count && count >= 2) candidates_.push({count, top.pair});
        }
        return std::nullopt;
    }

    void join(Pair pair, std::uint32_t result) {
        const std::vector<std::size_t> where = std::move(found_[pair].where);
        for (const std::size_t i : where) {
            std::vector<std::uint32_t>& tokens = words_[i].tokens;
            std::size_t kept = 0;
            count(i, -1);
            for (std::size_t t = 0; t < tokens.size(); ++t, ++kept) {
                const bool joins =
                    t + 1 < tokens.size() && pair_of(tokens[t], tokens[t + 1]) == pair;
                tokens[kept] = joins ? result : tokens[t];
                t += joins;
            }
            tokens.resize(kept);
            count(i, 1);
            // Pairs without the new token were there before.
            list(i, [&](std::uint32_t token) { return token == result; });
        }
        push_listed();
    }

  private:
    struct Found {
        std::int64_t count = 0;
        std::vector<std::size_t> where;  ///< words that have it, or had it; one may come twice
    };

    void count(std::size_t word, std::int64_t sign) {
        const std::vector<std::uint32_t>& tokens = words_[word].tokens;
        for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
            found_[pair_of(tokens[t], tokens[t + 1])].count += sign * words_[word].count;
        }
    }

    /// Says where the word's pairs with such a token are.
    template <class Wanted>
    void list(std::size_t word, const Wanted& wanted) {
        const std::vector<std::uint32_t>& tokens = words_[word].tokens;
        for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
            if (!wanted(tokens[t]) && !wanted(tokens[t + 1])) continue;
            const Pair pair = pair_of(tokens[t], tokens[t + 1]);
            std::vector<std::size_t>& where = found_[pair].where;
            if (where.empty() || where.back() != word) where.push_back(word);
            listed_.push_back(pair);
        }
    }

    void push_listed() {
        std::sort(listed_.begin(), listed_.end());
        listed_.erase(std::unique(listed_.begin(), listed_.end()), listed_.end());
        for (const Pair each : listed_) candidates_.push({found_[each].count, each});
        listed_.clear();
    }

    std::vector<Word>& words_;
    std::unordered_map<Pair, Found> found_;
    std::priority_queue<Candidate> candidates_;
    std::vector<Pair> listed_;  ///< candidates of the last change
};

}  // namespace

BpeTokenizer BpeTokenizer::train(std::string_view text, std::int64_t vocab_size) {
    if (vocab_size < 256 || vocab_size > max_vocab_size) {
        throw ValueError(
            fmt::format("bpe_tokenizer: train: a vocabulary of {} is outside 256 to {}", vocab_size,
                        max_vocab_size));
    }
    std::vector<std::string> pieces;
    pieces.reserve(256);
    for (int byte = 0; byte < 256; ++byte) pieces.emplace_back(1, static_cast<char>(byte));
    std::vector<std::array<std::int64_t, 2>> merges;
    std::unordered_map<std::string, bool> there;
    std::vector<Word> words = count_words(text);
    Pairs pairs(words);
    while (static_cast<std::int64_t>(pieces.size()) < vocab_size) {
        const std::optional<Pair> pair = pairs.next();
        if (!pair) break;
        const std::size_t left = *pair >> 32, right = *pair & 0xFFFFFFFFU;
        std::string joined = pieces[left] + pieces[right];
        // A piece has one way to be made: another pair that reads the same stays two tokens.
        if (joined.size() > max_piece_bytes || !there.emplace(joined, true).second) continue;
        pairs.join(*pair, static_cast<std::uint32_t>(pieces.size()));
        merges.push_back({static_cast<std::int64_t>(left), static_cast<std::int64_t>(right)});
        pieces.push_back(std::move(joined));
    }
    return BpeTokenizer(std::move(pieces), merges);
}

}  // namespace glassgrad
