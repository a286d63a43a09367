#pragma once
// From logits to the next token: temperature, top-k, top-p, repetition penalty.

#include <glassgrad/tensor/counter_rng.hpp>
#include <glassgrad/tensor/tensor.hpp>

#include <cstdint>
#include <optional>
#include <span>

namespace glassgrad {

/// Applied in the order of Hugging Face's generate: penalty, temperature, top-k, top-p.
struct SamplingOptions {
    /// Logits are divided by it; 0 takes the largest, the first one of equals. Not negative.
    double temperature = 1;
    /// Only the k largest logits count, lower ids first among equals; more than there are keeps
    /// all. At least 1; not given: all.
    std::optional<std::int64_t> top_k = {};
    /// Only the smallest set of most probable tokens with a sum of at least p counts, and at least
    /// one token; 0 to 1. The sum is over what top_k has left. Source: Holtzman et al. 2019.
    double top_p = 1;
    /// Logits of tokens that were there before are divided by it if positive, else multiplied.
    /// Above 0; 1: none. Source: Keskar et al. 2019 (CTRL), section 4.1.
    double repetition_penalty = 1;
};

/// What each token is drawn with, f64 (vocab,): 0 for those left out, the sum is 1.
/// `logits` are floating (vocab,), `previous` the ids that the penalty is for. Computed in f64, the
/// largest logit taken out before the division, so that no temperature overflows.
/// Throws ShapeError unless logits are a vector that is not empty; ValueError for options outside
/// their range, a logit that is NaN or +inf (with its index), and when all are -inf; IndexError for
/// a previous id outside the vocabulary.
Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& options = {},
                              std::span<const std::int64_t> previous = {});

/// A token drawn with `sampling_probabilities`: an id of probability above 0. Takes one number from
/// `rng`, none at temperature 0. Throws as `sampling_probabilities`.
std::int64_t sample_token(const Tensor& logits, const SamplingOptions& options, CounterRng& rng,
                          std::span<const std::int64_t> previous = {});

}  // namespace glassgrad
