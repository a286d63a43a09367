#pragma once
// Text from models: one token after the other, for several prompts at once.

#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/layers/models/seq2seq.hpp>
#include <glassgrad/layers/sampling.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace glassgrad {

/// A token as it comes.
struct GeneratedToken {
    std::size_t row;  ///< which prompt it continues
    std::int64_t token;
    const Tensor&
        logits;  ///< what it was drawn from, (vocab_size,), before penalty and temperature
};

struct GenerateOptions {
    std::int64_t max_tokens = 100;  ///< new ones, a prompt
    SamplingOptions sampling = {};
    /// A row ends where one of these is drawn; it does not become part of the result.
    std::vector<std::int64_t> stop_tokens = {};
    std::uint64_t seed = 0;
    /// Row i draws from CounterRng(seed, stream + i): alone with its own stream it gets the same
    /// tokens as in a batch.
    std::uint64_t stream = 0;
    /// Keys and values of tokens seen are kept; otherwise everything is computed anew for each
    /// token. The tokens are the same.
    bool use_cache = true;
    /// Called for each token that becomes part of the result.
    std::function<void(const GeneratedToken&)> on_token = {};
};

enum class FinishReason {
    max_tokens,
    stop_token,
    context_length,  ///< the row's last token has no place left to be looked at
};

struct Generation {
    std::vector<std::int64_t> tokens;  ///< the new ones
    FinishReason reason = FinishReason::max_tokens;
};

/// Continues each prompt. Shorter ones are padded on the left inside, with the padding hidden and
/// positions that begin at each prompt's first token, so a row is continued as if it were alone. A
/// row ends when it has max_tokens, draws a stop token, or fills the context: a prompt of n tokens
/// gets at most context_length - n + 1. Runs in evaluation mode and under NoGrad; the modes are as
/// before afterwards. The repetition penalty is for prompt and new tokens.
/// Throws ShapeError for an empty prompt or one longer than the context, IndexError for a token
/// outside the vocabulary, ValueError for a negative max_tokens, and as `sample_token`.
std::vector<Generation> generate(CausalModel& model,
                                 const std::vector<std::vector<std::int64_t>>& prompts,
                                 const GenerateOptions& options = {});

/// A target for each source, which begins with `start_token` (not part of the result). Sources are
/// padded on the right inside, and encoded once.
std::vector<Generation> generate(Seq2Seq& model,
                                 const std::vector<std::vector<std::int64_t>>& sources,
                                 std::int64_t start_token, const GenerateOptions& options = {});

}  // namespace glassgrad
