#pragma once

#include <glassgrad/training/tokenizer.hpp>

#include <array>
#include <optional>
#include <unordered_map>

namespace glassgrad {

/// Two neighbours that become one token.
struct BpeMerge {
    std::int64_t left;
    std::int64_t right;
    std::int64_t result;

    friend bool operator==(const BpeMerge&, const BpeMerge&) = default;
};

/// What an `encode` did.
struct BpeWork {
    std::int64_t words = 0;  ///< of the split
    std::int64_t known = 0;  ///< of these, met before in the same text
    std::int64_t pairs = 0;  ///< neighbours looked up among the merges
};

/// Byte pair encoding on bytes, as GPT-2's: a text is cut into words with GPT-2's rule, a word's
/// bytes are its first tokens, and the neighbours whose merge comes first are joined until none
/// are left. So any bytes are encoded, and decode to what they were.
/// Source: Sennrich et al. 2016; Radford et al. 2019.
class BpeTokenizer : public Tokenizer {
  public:
    static constexpr std::int64_t max_vocab_size = std::int64_t{1} << 20;
    static constexpr std::size_t max_piece_bytes = 1024;

    /// The bytes of each id, and the merges in their order as ids (left, right). Pieces that are
    /// neither a byte nor a merge's result are special: no text is encoded to them. Throws
    /// ValueError for a piece that is empty, too long, or there twice, a byte without a piece, a
    /// merge whose parts aren't made before it, and one whose result is no piece or made already.
    BpeTokenizer(std::vector<std::string> pieces,
                 const std::vector<std::array<std::int64_t, 2>>& merges);

    /// Learns merges from `text`: bytes are tokens 0 to 255, and then the most frequent pair of
    /// neighbours within words becomes the next, the one with the lower ids of equally frequent
    /// ones. Ends early where no pair comes twice. Throws ValueError unless 256 <= vocab_size <=
    /// max_vocab_size.
    static BpeTokenizer train(std::string_view text, std::int64_t vocab_size);
    /// GPT-2's two files: `vocab.json` and `merges.txt`. Throws FileError with the line of what is
    /// wrong.
    static BpeTokenizer from_gpt2(std::string_view vocab_json, std::string_view merges_txt);
    static BpeTokenizer load_gpt2(const std::string& vocab_path, const std::string& merges_path);

    /// In time linear in the text, but for the logarithm of the longest word.
    std::vector<std::int64_t> encode(std::string_view text) const override;
    /// As `encode`, and adds to `work`.
    std::vector<std::int64_t> encode(std::string_view text, BpeWork& work) const;
    std::int64_t vocab_size() const noexcept override {
        return static_cast<std::int64_t>(pieces_.size());
    }
    std::string_view piece(std::int64_t id) const override;
    /// The id of a piece, special ones as well: find("<|endoftext|>").
    std::optional<std::int64_t> find(std::string_view piece) const;
    const std::vector<BpeMerge>& merges() const noexcept { return merges_; }
    /// The words that `encode` cuts a text into; together they are the text.
    static std::vector<std::string_view> split(std::string_view text);

    std::string to_json() const override;
    /// The texts of GPT-2's files.
    std::string gpt2_vocab() const;
    std::string gpt2_merges() const;

  private:
    struct Scratch;
    void encode_word(std::string_view word, Scratch& scratch, std::vector<std::int64_t>& ids,
                     BpeWork& work) const;

    std::vector<std::string> pieces_;
    std::unordered_map<std::string, std::int64_t> by_text_;
    std::vector<BpeMerge> merges_;
    std::unordered_map<std::uint64_t, std::uint32_t> ranks_;  ///< of pairs of ids
    std::array<std::int64_t, 256> bytes_{};
};

}  // namespace glassgrad
