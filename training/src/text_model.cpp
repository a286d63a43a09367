#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/text_model.hpp>
#include <glassgrad/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {
namespace {

std::vector<std::int64_t> start_of(const Tokenizer& tokenizer, std::string_view prompt) {
    if (!prompt.empty()) return tokenizer.encode(prompt);
    try {
        return tokenizer.encode("\n");
    } catch (const ValueError&) {
        return {0};
    }
}

std::string entry(const Checkpoint& checkpoint, std::string_view name) {
    std::optional<std::string> text = checkpoint.find(name);
    if (!text) {
        throw FileError(fmt::format("text_model: the checkpoint has no {}", name),
                        "it is no run of a model of texts");
    }
    return *std::move(text);
}

}  // namespace

void add_text_model(Checkpoint& checkpoint, const Gpt& model, const Tokenizer& tokenizer) {
    checkpoint.metadata.emplace_back("config", to_json(model.config));
    checkpoint.metadata.emplace_back("tokenizer", tokenizer.to_json());
}

TextModel text_model(const Checkpoint& checkpoint) {
    const GptConfig config = gpt_config_from_json(entry(checkpoint, "config"));
    TextModel made;
    made.tokenizer = tokenizer_from_json(entry(checkpoint, "tokenizer"));
    if (made.tokenizer->vocab_size() != config.vocab_size) {
        throw FileError(fmt::format("text_model: the tokenizer has {} tokens, the model {}",
                                    made.tokenizer->vocab_size(), config.vocab_size));
    }
    const StateDict weights = trained_weights(checkpoint);
    RandomState rng(0);
    const DType dtype = weights.empty() ? f32 : weights.front().second.dtype();
    made.model = std::make_unique<Gpt>(config, rng, ModelOptions{.dtype = dtype});
    try {
        made.model->load_state_dict(weights);
    } catch (const ValueError& error) {
        throw FileError(
            fmt::format("text_model: the weights are not those of the configuration: "
                        "{}",
                        error.what()));
    }
    made.model->eval();
    return made;
}

std::string continue_text(CausalModel& model, const Tokenizer& tokenizer, std::string_view prompt,
                          GenerateOptions options) {
    std::vector<std::int64_t> ids = start_of(tokenizer, prompt);
    std::vector<std::int64_t> drawn;
    const std::int64_t wanted = options.max_tokens;
    const auto half =
        static_cast<std::size_t>(std::max<std::int64_t>(model.context_length() / 2, 1));
    bool stopped = false;
    while (!stopped && static_cast<std::int64_t>(drawn.size()) < wanted) {
        if (static_cast<std::int64_t>(ids.size()) > model.context_length() || !drawn.empty()) {
            ids.assign(ids.end() - static_cast<std::ptrdiff_t>(std::min(half, ids.size())),
                       ids.end());
        }
        options.max_tokens = wanted - static_cast<std::int64_t>(drawn.size());
        const Generation more = generate(model, {ids}, options)[0];
        ids.insert(ids.end(), more.tokens.begin(), more.tokens.end());
        drawn.insert(drawn.end(), more.tokens.begin(), more.tokens.end());
        stopped = more.reason == FinishReason::stop_token;
        ++options.stream;
    }
    return tokenizer.decode(drawn);
}

}  // namespace glassgrad
