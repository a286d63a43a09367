#pragma once
// The files of llama2.c (https://github.com/karpathy/llama2.c): checkpoints of LLaMA-style models
// and their tokenizers. Both are taken as hostile: sizes are compared with the file, in 64 bits,
// before memory is asked for.

#include <glassgrad/layers/module.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

/// What a checkpoint holds. Weights carry the names of `Llama`:
///
///     embedding.weight                                   (vocab_size, d_model)
///     blocks.N.norm1.weight, blocks.N.norm2.weight       (d_model,)       attention, feed-forward
///     blocks.N.self_attn.q_proj.weight, .out_proj.weight (d_model, d_model)
///     blocks.N.self_attn.k_proj.weight, .v_proj.weight   (d_model / num_heads * num_kv_heads,
///     d_model) blocks.N.linear1.weight, blocks.N.linear3.weight   (d_ff, d_model)  w1 (gate), w3
///     blocks.N.linear2.weight                            (d_model, d_ff)  w2
///     norm.weight                                        (d_model,)
///     head.weight                                        (vocab_size, d_model), unless it is
///     shared
///
/// Rotary positions pair neighbours, with base 10,000; the norms' eps is 1e-5.
struct Llama2cCheckpoint {
    std::int64_t vocab_size = 0;
    std::int64_t context_length = 0;
    std::int64_t d_model = 0;
    std::int64_t num_layers = 0;
    std::int64_t num_heads = 0;
    std::int64_t num_kv_heads = 0;
    std::int64_t d_ff = 0;
    bool shares_head = false;  ///< the head is the embedding
    StateDict weights;         ///< f32
};

/// Reads a checkpoint: the old layout (seven int32, a negative vocabulary for a head of its own,
/// the rotary tables, which are skipped) or version 1 (magic 'ak42'). Refused: sizes that are not
/// above 0 or don't divide, a file that is longer or shorter than its header says, version 2 (8-bit
/// weights). NaN weights are let in. Throws FileError that names the file and what is wrong.
Llama2cCheckpoint load_llama2c_checkpoint(const std::string& path);

/// As `load_llama2c_checkpoint`, without the weights, which are not read.
Llama2cCheckpoint load_llama2c_sizes(const std::string& path);

/// As `load_llama2c_checkpoint`, from the bytes of a file; errors call them `name`.
Llama2cCheckpoint parse_llama2c_checkpoint(std::span<const std::byte> bytes, std::string_view name);

inline constexpr std::int64_t llama2c_max_layers = 10'000;

struct EncodeOptions {
    bool bos = true;   ///< the start token first
    bool eos = false;  ///< the end token last
};

/// llama2.c's tokenizer: byte pair encoding by score. Tokens are numbers of pieces; 1 starts a
/// text, 2 ends it, and a piece `<0x0A>` stands for that byte.
class Llama2cTokenizer {
  public:
    static constexpr std::int64_t bos = 1;
    static constexpr std::int64_t eos = 2;
    static constexpr std::size_t max_pieces = std::size_t{1} << 20;
    static constexpr std::size_t max_bytes = std::size_t{32} << 20;  ///< of a file

    /// Reads a tokenizer's file, which doesn't say how many pieces it has: all that there are. With
    /// a `vocab_size`, the model's, another number is refused. An empty piece is let in, and never
    /// met in a text. Throws FileError.
    static Llama2cTokenizer load(const std::string& path,
                                 std::optional<std::int64_t> vocab_size = std::nullopt);
    /// As `load`, from the bytes of a file; errors call them `name`.
    static Llama2cTokenizer parse(std::span<const std::byte> bytes, std::string_view name,
                                  std::optional<std::int64_t> vocab_size = std::nullopt);

    std::int64_t vocab_size() const noexcept { return static_cast<std::int64_t>(scores_.size()); }
    /// A piece as it stands in the file. Throws IndexError.
    std::string_view piece(std::int64_t id) const;
    float score(std::int64_t id) const;

    /// The tokens of any bytes, UTF-8 or not: a space is put before a text that isn't empty, each
    /// character becomes its piece or the pieces of its bytes, then the neighbours that join to the
    /// piece of the highest score are joined (the first of several), until none join. As in
    /// llama2.c, but that a text never turns into a special token or the piece of a byte that it
    /// spells out. Takes time n log n. Throws ValueError where a byte has no piece.
    std::vector<std::int64_t> encode(std::string_view text,
                                     const EncodeOptions& options = {}) const;

    /// The bytes that the tokens stand for: the start and end tokens for none, and the space that
    /// `encode` puts after the start is taken off. So `decode(encode(text))` is `text`, for any
    /// bytes. Throws IndexError with the place of a token that is outside the vocabulary.
    std::string decode(std::span<const std::int64_t> ids) const;
    /// The bytes of `id` after the token `previous`, for texts that are shown as they grow.
    std::string_view decode_next(std::int64_t previous, std::int64_t id) const;

    /// The bytes of the file.
    std::string to_bytes() const;

  private:
    Llama2cTokenizer() = default;
    static Llama2cTokenizer read(std::span<const std::byte> bytes, std::string where,
                                 std::optional<std::int64_t> vocab_size);
    void index();
    std::string_view text_of(std::size_t id) const noexcept;
    /// The ordinary piece that reads so, or -1.
    std::int64_t find(std::string_view text) const noexcept;
    void append_character(std::string_view character, std::vector<std::int64_t>& ids) const;
    void join(std::vector<std::int64_t>& ids) const;
    void check_token(std::string_view op, std::int64_t id) const;

    std::string texts_;                  ///< all pieces, one after the other
    std::vector<std::uint32_t> begins_;  ///< one more than pieces
    std::vector<float> scores_;
    std::vector<std::uint32_t> sorted_;   ///< ordinary pieces by text, then number
    std::int64_t byte_pieces_[256] = {};  ///< -1 where there is none
    std::uint32_t max_length_ = 0;
    bool has_space_ = false;
};

}  // namespace glassgrad
