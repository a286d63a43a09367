#include <glassgrad/training/text_model.hpp>

#include <glassgrad/layers/models/gpt.hpp>
#include <glassgrad/layers/models/llama.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/error.hpp>
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

/// What a configuration says that it is of; gpt where it says nothing.
std::string architecture_of(std::string_view config) {
    std::string architecture = "gpt";
    detail::read_json(config, "text_model: ", [&](detail::JsonCursor& in) {
        in.object([&](std::string_view name) {
            if (name == "architecture") {
                architecture = in.string();
            } else {
                in.skip();
            }
        });
    });
    return architecture;
}

/// The numbers in the matrices of a model.
double numbers_of(const GptConfig& c) {
    const auto d = static_cast<double>(c.d_model);
    const double ff = c.d_ff == 0 ? 4 * d : static_cast<double>(c.d_ff);
    return d * static_cast<double>(c.vocab_size) + d * static_cast<double>(c.context_length) +
           static_cast<double>(c.num_layers) * d * (4 * d + 2 * ff);
}
double numbers_of(const LlamaConfig& c) {
    const auto d = static_cast<double>(c.d_model), ff = static_cast<double>(c.d_ff);
    return d * static_cast<double>(c.vocab_size) +
           static_cast<double>(c.num_layers) * d * (2 * d + 3 * ff);
}

/// A model of no more numbers than there are weights.
template <class Model, class Config>
std::unique_ptr<CausalModel> built(const Config& config, const Tokenizer& tokenizer,
                                   const StateDict& weights) {
    if (tokenizer.vocab_size() != config.vocab_size) {
        throw FileError(fmt::format("text_model: the tokenizer has {} tokens, the model {}",
                                    tokenizer.vocab_size(), config.vocab_size));
    }
    double numbers = 0;
    for (const auto& [name, value] : weights) numbers += static_cast<double>(value.numel());
    if (numbers_of(config) > numbers ||
        static_cast<std::size_t>(config.num_layers) > weights.size()) {
        throw FileError(
            fmt::format("text_model: {} numbers in {} tensors are less than the configuration of "
                        "{} layers needs",
                        numbers, weights.size(), config.num_layers));
    }
    RandomState rng(0);
    const DType dtype = weights.front().second.dtype();
    return std::make_unique<Model>(config, rng, ModelOptions{.dtype = dtype});
}

/// How many bytes of a text are whole characters of UTF-8, or can never become one.
std::size_t whole_characters(std::string_view text) {
    // The last byte that begins a character of several, among the last three.
    for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
        const auto byte = static_cast<unsigned char>(text[text.size() - back]);
        if (byte < 0x80) break;
        if (byte < 0xC0) continue;  // goes on with one
        const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
        return byte < 0xF8 && length > back ? text.size() - back : text.size();
    }
    return text.size();
}

}  // namespace

void add_text_model(Checkpoint& checkpoint, const CausalModel& model, const Tokenizer& tokenizer) {
    std::string config;
    if (const auto* gpt = dynamic_cast<const Gpt*>(&model)) {
        config = to_json(gpt->config);
    } else if (const auto* llama = dynamic_cast<const Llama*>(&model)) {
        config = to_json(llama->config);
    } else {
        throw ValueError("add_text_model: the model is neither a Gpt nor a Llama");
    }
    checkpoint.metadata.emplace_back("config", std::move(config));
    checkpoint.metadata.emplace_back("tokenizer", tokenizer.to_json());
}

TextModel text_model(const Checkpoint& checkpoint) {
    const std::string config = entry(checkpoint, "config");
    const StateDict weights = trained_weights(checkpoint);
    TextModel made;
    made.tokenizer = tokenizer_from_json(entry(checkpoint, "tokenizer"));
    const std::string architecture = architecture_of(config);
    if (architecture == "gpt") {
        made.model = built<Gpt>(gpt_config_from_json(config), *made.tokenizer, weights);
    } else if (architecture == "llama") {
        made.model = built<Llama>(llama_config_from_json(config), *made.tokenizer, weights);
    } else {
        throw FileError(
            fmt::format("text_model: the checkpoint is of '{}', which continues no text",
                        architecture),
            "models of texts are gpt and llama");
    }
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
                          GenerateOptions options,
                          const std::function<void(std::string_view)>& on_text) {
    std::vector<std::int64_t> ids = start_of(tokenizer, prompt);
    const std::int64_t wanted = options.max_tokens;
    const auto half =
        static_cast<std::size_t>(std::max<std::int64_t>(model.context_length() / 2, 1));
    std::string text;
    std::size_t told = 0;
    const auto tell = [&](std::size_t end) {
        if (on_text && end > told) on_text(std::string_view(text).substr(told, end - told));
        told = std::max(told, end);
    };
    options.on_token = [&, given = options.on_token](const GeneratedToken& token) {
        if (given) given(token);
        text += tokenizer.piece(token.token);
        if (on_text) tell(whole_characters(text));
    };
    std::int64_t drawn = 0;
    bool stopped = false;
    while (!stopped && drawn < wanted) {
        if (static_cast<std::int64_t>(ids.size()) > model.context_length() || drawn > 0) {
            ids.assign(ids.end() - static_cast<std::ptrdiff_t>(std::min(half, ids.size())),
                       ids.end());
        }
        options.max_tokens = wanted - drawn;
        const Generation more = generate(model, {ids}, options)[0];
        ids.insert(ids.end(), more.tokens.begin(), more.tokens.end());
        drawn += static_cast<std::int64_t>(more.tokens.size());
        stopped = more.reason == FinishReason::stop_token;
        ++options.stream;
    }
    tell(text.size());
    return text;
}

}  // namespace glassgrad
