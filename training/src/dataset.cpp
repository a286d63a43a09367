#include <glassgrad/training/dataset.hpp>

#include "permutation.hpp"

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace glassgrad {
namespace {

void check_tokens(std::string_view op, const Tensor& tokens) {
    if (!tokens.defined()) throw ValueError(fmt::format("{}: the tokens are undefined", op));
    if (tokens.dtype() != i64) {
        throw TypeError(fmt::format("{}: tokens are i64, not {}", op, name(tokens.dtype())));
    }
    if (tokens.rank() != 1) {
        throw ShapeError(fmt::format("{}: tokens have the shape (count,), not {}", op,
                                     to_string(tokens.shape())));
    }
}

}  // namespace

TextBatches::TextBatches(Tensor tokens, std::int64_t context, std::uint64_t seed,
                         const TextBatchesOptions& options)
    : tokens_(std::move(tokens)), context_(context), seed_(seed), options_(options) {
    check_tokens("text_batches", tokens_);
    if (context < 1) throw ValueError(fmt::format("text_batches: context {} is below 1", context));
    if (options.stride < 1) {
        throw ValueError(fmt::format("text_batches: stride {} is below 1", options.stride));
    }
    const std::int64_t count = tokens_.numel();
    if (count <= context) {
        throw ValueError(
            fmt::format("text_batches: {} tokens, but a context of {} needs at least one more than "
                        "that",
                        count, context),
            "take a longer text or a shorter context");
    }
    windows_ = (count - context - 1) / options.stride + 1;
}

std::int64_t TextBatches::start(std::int64_t sample) const {
    if (sample < 0) throw ValueError(fmt::format("text_batches: sample {} is negative", sample));
    std::int64_t window = sample % windows_;
    if (options_.shuffle) {
        const detail::Permutation order(static_cast<std::uint64_t>(windows_), seed_,
                                        static_cast<std::uint64_t>(sample / windows_));
        window = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(window)));
    }
    return window * options_.stride;
}

Batch TextBatches::batch(std::int64_t first_sample, std::int64_t count) const {
    if (count < 1) throw ValueError(fmt::format("text_batches: a batch of {} samples", count));
    if (first_sample > std::numeric_limits<std::int64_t>::max() - count) {
        throw ValueError(
            fmt::format("text_batches: no sample comes {} after {}", count, first_sample));
    }
    Batch batch{Tensor::empty({count, context_}, i64), Tensor::empty({count, context_}, i64)};
    auto* inputs = batch.inputs.mutable_data<std::int64_t>();
    auto* targets = batch.targets.mutable_data<std::int64_t>();
    const auto* tokens = tokens_.data<std::int64_t>();
    for (std::int64_t row = 0; row < count; ++row) {
        const std::int64_t* window = tokens + start(first_sample + row);
        std::copy_n(window, context_, inputs + row * context_);
        std::copy_n(window + 1, context_, targets + row * context_);
    }
    return batch;
}

std::pair<Tensor, Tensor> split_tokens(const Tensor& tokens, double train_share,
                                       std::int64_t context) {
    check_tokens("split_tokens", tokens);
    if (!(train_share > 0 && train_share < 1)) {
        throw ValueError(
            fmt::format("split_tokens: train_share {} is not between 0 and 1", train_share));
    }
    if (context < 0) throw ValueError(fmt::format("split_tokens: context {} is negative", context));
    const auto all = tokens.values<std::int64_t>();
    const auto train = static_cast<std::size_t>(train_share * static_cast<double>(all.size()));
    const std::size_t least = std::min(train, all.size() - train);
    if (least <= static_cast<std::size_t>(context)) {
        throw ValueError(
            fmt::format("split_tokens: {} tokens give {} to train on and {} to validate on, but a "
                        "context of {} needs at least one more than that in each",
                        all.size(), train, all.size() - train, context),
            "take a longer text or a shorter context");
    }
    const auto part = [](std::span<const std::int64_t> values) {
        return from_span(values, {static_cast<std::int64_t>(values.size())});
    };
    return {part(all.first(train)), part(all.subspan(train))};
}

}  // namespace glassgrad
