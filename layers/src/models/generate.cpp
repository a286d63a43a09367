#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/layers/models/generate.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace glassgrad {
namespace {

using Texts = std::vector<std::vector<std::int64_t>>;

std::int64_t length(const std::vector<std::int64_t>& ids) {
    return static_cast<std::int64_t>(ids.size());
}

/// f() with all of `model` in evaluation; each module has its own mode again afterwards.
template <class F>
auto in_evaluation(Module& model, const F& f) {
    std::vector<std::pair<Module*, bool>> modes;
    for (const auto& [name, module] : model.named_modules()) {
        modes.emplace_back(module, module->training());
    }
    // Parents come before their children.
    const auto restore = [&] {
        for (const auto& [module, training] : modes) training ? module->train() : module->eval();
    };
    const NoGrad no_grad;
    model.eval();
    try {
        auto result = f();
        restore();
        return result;
    } catch (...) {
        restore();
        throw;
    }
}

void check_texts(std::string_view what, const Texts& texts, std::int64_t vocab_size,
                 std::int64_t context) {
    for (std::size_t row = 0; row < texts.size(); ++row) {
        if (texts[row].empty()) {
            throw ShapeError(fmt::format("generate: {} {} is empty", what, row),
                             "begin with the token that starts a text");
        }
        if (length(texts[row]) > context) {
            throw ShapeError(
                fmt::format("generate: {} {} of {} tokens is longer than the context "
                            "of {}",
                            what, row, texts[row].size(), context));
        }
        for (std::size_t i = 0; i < texts[row].size(); ++i) {
            const std::int64_t id = texts[row][i];
            if (id >= 0 && id < vocab_size) continue;
            throw IndexError(
                fmt::format("generate: token {} at {} of {} {} is outside the vocabulary of {}", id,
                            i, what, row, vocab_size));
        }
    }
}

void check_options(const GenerateOptions& options) {
    if (options.max_tokens < 0) {
        throw ValueError(fmt::format("generate: max_tokens {} is negative", options.max_tokens));
    }
}

/// Texts in one tensor, with what is padding.
struct Padded {
    Tensor ids;
    Tensor keep;       ///< undefined when all are equally long
    Tensor positions;  ///< likewise
};

enum class Side { left, right };
Padded pad_texts(const Texts& texts, Side side, std::int64_t context) {
    std::int64_t longest = 0;
    bool equal = true;
    for (const auto& text : texts) {
        equal = equal && (longest == 0 || length(text) == longest);
        longest = std::max(longest, length(text));
    }
    const Shape shape{static_cast<std::int64_t>(texts.size()), longest};
    Padded padded{zeros(shape, i64), {}, {}};
    Tensor keep = zeros(shape, boolean);
    Tensor positions = zeros(shape, i64);
    auto* id = padded.ids.mutable_data<std::int64_t>();
    bool* real = keep.mutable_data<bool>();
    auto* place = positions.mutable_data<std::int64_t>();
    for (const auto& text : texts) {
        const std::int64_t before = side == Side::left ? longest - length(text) : 0;
        for (std::int64_t i = 0; i < length(text); ++i) {
            id[before + i] = text[static_cast<std::size_t>(i)];
            real[before + i] = true;
            // A row that has ended goes on as filler beside longer ones, beyond the context too.
            place[before + i] = std::min(i, context - 1);
        }
        id += longest;
        real += longest;
        place += longest;
    }
    if (!equal) {
        padded.keep = std::move(keep);
        padded.positions = std::move(positions);
    }
    return padded;
}

/// The last token of each text, after what a cache holds.
Padded last_tokens(const Texts& texts, std::int64_t context) {
    const bool equal = std::all_of(texts.begin(), texts.end(), [&](const auto& text) {
        return text.size() == texts.front().size();
    });
    if (!equal) {
        Padded padded = pad_texts(texts, Side::left, context);
        padded.ids = slice(padded.ids, 1, {.start = -1});
        padded.positions = slice(padded.positions, 1, {.start = -1});
        return padded;
    }
    Padded last{Tensor::empty_matrix(static_cast<std::int64_t>(texts.size()), 1, i64), {}, {}};
    auto* id = last.ids.mutable_data<std::int64_t>();
    for (const auto& text : texts) *id++ = text.back();
    return last;
}

/// Continues texts; `step` gives the logits (batch, tokens, vocabulary) of the tokens it gets, the
/// last ones of each row when it has a cache.
template <class Step>
std::vector<Generation> continue_texts(Texts texts, std::int64_t context,
                                       const GenerateOptions& options, const Step& step) {
    std::vector<Generation> rows(texts.size());
    std::vector<CounterRng> rngs;
    for (std::size_t row = 0; row < rows.size(); ++row) {
        rngs.emplace_back(options.seed, options.stream + row);
    }
    std::vector<bool> active(rows.size(), options.max_tokens > 0);
    const auto end = [&](std::size_t row, FinishReason reason) {
        rows[row].reason = reason;
        active[row] = false;
    };
    for (bool first = true; std::find(active.begin(), active.end(), true) != active.end();
         first = false) {
        const bool continues = options.use_cache && !first;
        const Variable all =
            step(continues ? last_tokens(texts, context) : pad_texts(texts, Side::left, context));
        const Tensor last = select(all.value(), 1, -1);
        for (std::size_t row = 0; row < rows.size(); ++row) {
            if (!active[row]) {
                texts[row].push_back(0);
                continue;
            }
            const Tensor logits = select(last, 0, static_cast<std::int64_t>(row));
            const std::int64_t token =
                sample_token(logits, options.sampling, rngs[row], texts[row]);
            texts[row].push_back(token);
            const auto& stops = options.stop_tokens;
            if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
                end(row, FinishReason::stop_token);
                continue;
            }
            rows[row].tokens.push_back(token);
            if (options.on_token) options.on_token({row, token, logits});
            if (length(rows[row].tokens) == options.max_tokens) {
                end(row, FinishReason::max_tokens);
            } else if (length(texts[row]) > context) {
                end(row, FinishReason::context_length);
            }
        }
    }
    return rows;
}

}  // namespace

std::vector<Generation> generate(CausalModel& model, const Texts& prompts,
                                 const GenerateOptions& options) {
    const std::int64_t context = model.context_length();
    check_options(options);
    check_texts("prompt", prompts, model.vocab_size(), context);
    return in_evaluation(model, [&] {
        DecoderCache cache;
        return continue_texts(prompts, context, options, [&](const Padded& fed) {
            return model(fed.ids, {.keep = fed.keep,
                                   .positions = fed.positions,
                                   .cache = options.use_cache ? &cache : nullptr});
        });
    });
}

std::vector<Generation> generate(Seq2Seq& model, const Texts& sources, std::int64_t start_token,
                                 const GenerateOptions& options) {
    const std::int64_t context = model.config.context_length;
    const Texts starts(sources.size(), {start_token});
    check_options(options);
    check_texts("source", sources, model.config.source_vocab_size, context);
    check_texts("target", starts, model.config.target_vocab_size, context);
    if (sources.empty()) return {};
    return in_evaluation(model, [&] {
        const Padded source = pad_texts(sources, Side::right, context);
        const Variable memory = model.encode(source.ids, source.keep);
        Seq2SeqCache cache;
        return continue_texts(starts, context, options, [&](const Padded& fed) {
            return model.decode(
                fed.ids, memory,
                {.source_keep = source.keep, .cache = options.use_cache ? &cache : nullptr});
        });
    });
}

}  // namespace glassgrad
