// A text from a trained LLaMA in llama2.c's files: the prompt becomes tokens, the model continues
// them one by one with a cache of keys and values, and each token is printed as it comes.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

std::vector<float> numbers(const Tensor& x) {
    const auto values = x.values<float>();
    return {values.begin(), values.end()};
}

}  // namespace

int main(int argc, char** argv) try {
    std::string model_path, tokenizer_path, prompt;
    GenerateOptions options{.sampling = {.temperature = 0, .top_p = 0.9}};
    options.max_tokens = 0;
    bool json = false;
    CLI::App app{"Continues a text with a model in llama2.c's format."};
    app.add_option("MODEL", model_path, "Checkpoint")->required()->check(CLI::ExistingFile);
    app.add_option("TOKENIZER", tokenizer_path, "Its tokenizer")
        ->required()
        ->check(CLI::ExistingFile);
    app.add_option("--prompt", prompt, "Text to continue");
    app.add_option("--tokens", options.max_tokens, "New tokens; 0: until the context is full")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--temperature", options.sampling.temperature, "0 takes the most probable token")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--top-p", options.sampling.top_p,
                   "Draw from the smallest set of tokens with this probability")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    app.add_option("--seed", options.seed, "Of what is drawn")->capture_default_str();
    app.add_flag("--json", json, "Print ids, text, first and last logits as JSON");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    const auto model = load_llama2c(model_path);
    const auto tokenizer = Llama2cTokenizer::load(tokenizer_path, model->vocab_size());
    std::vector<std::int64_t> ids = tokenizer.encode(prompt);
    if (options.max_tokens == 0) options.max_tokens = model->context_length();
    // llama2.c's models were trained on texts one after the other: a start is an end, too.
    options.stop_tokens = {Llama2cTokenizer::bos, Llama2cTokenizer::eos};

    if (!json) print(tokenizer.decode(ids));
    Tensor first, last;
    options.on_token = [&](const GeneratedToken& each) {
        if (!json) print(tokenizer.decode_next(ids.back(), each.token));
        ids.push_back(each.token);
        if (!first.defined()) first = each.logits;
        last = each.logits;
    };
    const auto begin = std::chrono::steady_clock::now();
    const std::size_t given = ids.size();
    generate(*model, {ids}, options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;

    if (json) {
        nlohmann::ordered_json out{{"ids", ids}, {"text", tokenizer.decode(ids)}};
        if (first.defined()) out["first_logits"] = numbers(first);
        if (last.defined()) out["last_logits"] = numbers(last);
        // A text may end within a character.
        print(out.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    } else {
        print("\n");
    }
    const auto count = static_cast<double>(ids.size() - given);
    fmt::print(stderr, "{} tokens, {:.0f} a second\n", count, count / seconds.count());
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "05_llama_generate: {}\n", error.what());
    return 1;
}
