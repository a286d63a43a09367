#pragma once
// Texts to numbers and back. What belongs to a model is stored with it: `to_json` and
// `tokenizer_from_json`.

#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad {

/// Ids are 0 to vocab_size() - 1.
class Tokenizer {
  public:
    virtual ~Tokenizer() = default;

    virtual std::vector<std::int64_t> encode(std::string_view text) const = 0;
    /// Throws IndexError with the place of an id that is outside the vocabulary.
    std::string decode(std::span<const std::int64_t> ids) const;
    virtual std::int64_t vocab_size() const noexcept = 0;
    /// The bytes that `id` stands for. Throws IndexError.
    virtual std::string_view piece(std::int64_t id) const = 0;
    /// A JSON object that `tokenizer_from_json` reads; the same tokenizer gives the same text.
    virtual std::string to_json() const = 0;

    /// As `encode`, as i64 of shape (tokens,).
    Tensor encode_tensor(std::string_view text) const;
};

/// One token a character, that is a code point: no token is half of one.
class CharTokenizer : public Tokenizer {
  public:
    /// The characters of `text`, by code point. Throws ValueError when there are none or it is no
    /// UTF-8.
    explicit CharTokenizer(std::string_view text);

    /// Throws ValueError that names the first character outside the vocabulary, and its offset.
    std::vector<std::int64_t> encode(std::string_view text) const override;
    std::int64_t vocab_size() const noexcept override;
    std::string_view piece(std::int64_t id) const override;
    std::string to_json() const override;

  private:
    std::string characters_;
    std::vector<std::uint32_t> begins_;  ///< one more than characters
    std::vector<std::int32_t> ids_;      ///< by code point, -1 for none
};

/// Throws FileError with line and column for what `to_json` doesn't write.
std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view text);

}  // namespace glassgrad
