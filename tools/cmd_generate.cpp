// generate: a trained model goes on with a text.

#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/training.hpp>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <memory>

namespace glassgrad::tools {
namespace {

struct Call {
    std::string path, prompt;
    GenerateOptions options{.max_tokens = 300, .sampling = {.temperature = 0.8}};
    std::int64_t top_k = 0;
    bool newest = false;
};

Checkpoint checkpoint_at(const Call& call) {
    if (!std::filesystem::is_directory(call.path)) return load_checkpoint(call.path);
    CheckpointFolder folder(call.path);
    std::optional<CheckpointFolder::Found> found;
    if (!call.newest) found = folder.best();
    if (!found) found = folder.newest();
    if (!found) throw FileError("generate: " + call.path + " holds no checkpoint");
    return std::move(found->checkpoint);
}

int generate_text(Call& call) {
    if (call.top_k > 0) call.options.sampling.top_k = call.top_k;
    const TextModel made = text_model(checkpoint_at(call));
    // A prompt that can't be encoded is an error before anything is printed.
    if (!call.prompt.empty()) made.tokenizer->encode(call.prompt);
    print(call.prompt);
    continue_text(*made.model, *made.tokenizer, call.prompt, call.options, print);
    print("\n");
    return exit_ok;
}

}  // namespace

Verb add_generate(CLI::App& app) {
    const auto call = std::make_shared<Call>();
    CLI::App* verb = app.add_subcommand("generate", "Continues a text with a trained model");
    verb->footer(
        "Examples:\n"
        "  glassgrad generate run --prompt 'To be'\n"
        "  glassgrad generate run/step-000500.safetensors --temperature 0\n"
        "The text is printed as it is drawn; a reader that closes the pipe ends it.\n"
        "Exit status: 0 done, 1 failed, 2 wrong call.");
    verb->add_option("RUN", call->path,
                     "Folder of a run, whose best checkpoint is taken, or a "
                     "checkpoint")
        ->required()
        ->check(CLI::ExistingPath);
    verb->add_option("--prompt", call->prompt, "What the text begins with");
    verb->add_option("--length", call->options.max_tokens, "New tokens")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb->add_option("--temperature", call->options.sampling.temperature,
                     "0 takes the most probable token")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb->add_option("--top-k", call->top_k, "Draw from the k most probable; 0: all")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    verb->add_option("--top-p", call->options.sampling.top_p,
                     "Draw from the smallest set with this probability")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    verb->add_option("--seed", call->options.seed, "Of what is drawn")->capture_default_str();
    verb->add_flag("--newest", call->newest, "The newest checkpoint instead of the best");
    return {verb, [call] { return generate_text(*call); }};
}

}  // namespace glassgrad::tools
