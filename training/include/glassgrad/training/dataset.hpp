#pragma once
// Windows of a text in random order. Which window sample n is, is a function of the seed and n
// alone: a run goes on at any sample without a state, and any number of processes agree.

#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>
#include <utility>

namespace glassgrad {

/// What a model is asked, and what it should say; i64 (batch, context).
struct Batch {
    Tensor inputs;
    Tensor targets;
};

struct TextBatchesOptions {
    /// Windows begin at 0, stride, 2 stride, …: 1 for all there are, the context for ones that
    /// share no target.
    std::int64_t stride = 1;
    /// Otherwise sample n is window n, and after the last one the first.
    bool shuffle = true;
};

/// Windows of `context` tokens, each token's target the one after it. Every window comes once an
/// epoch, in an order of the epoch's own.
class TextBatches {
  public:
    /// `tokens` is i64 (count,). Throws TypeError or ShapeError for another tensor, ValueError for
    /// a context or stride below 1, and, with both lengths, unless there are context + 1 tokens.
    TextBatches(Tensor tokens, std::int64_t context, std::uint64_t seed,
                const TextBatchesOptions& options = {});

    /// Samples first_sample to first_sample + count - 1, a row each. Throws ValueError for a
    /// negative sample or a count below 1.
    Batch batch(std::int64_t first_sample, std::int64_t count) const;
    /// The first token of sample n's window.
    std::int64_t start(std::int64_t sample) const;

    /// Samples of an epoch.
    std::int64_t windows() const noexcept { return windows_; }
    std::int64_t context() const noexcept { return context_; }
    std::int64_t tokens() const noexcept { return tokens_.numel(); }

  private:
    Tensor tokens_;
    std::int64_t context_;
    std::uint64_t seed_;
    TextBatchesOptions options_;
    std::int64_t windows_ = 0;
};

/// The first part to train on, the rest to validate on: they share no token. The first has
/// ⌊train_share count⌋. Throws TypeError or ShapeError unless `tokens` is i64 (count,), ValueError
/// unless 0 < train_share < 1, and, with all lengths, when a part has fewer than context + 1.
std::pair<Tensor, Tensor> split_tokens(const Tensor& tokens, double train_share = 0.9,
                                       std::int64_t context = 0);

}  // namespace glassgrad
