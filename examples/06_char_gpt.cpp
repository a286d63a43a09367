// A GPT that learns to write like a text, character by character: any text file, or a few lines of
// our own. The run can be stopped at any time and resumed, and ends with the same bits.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <map>
#include <string>

using namespace glassgrad;

namespace {

constexpr std::string_view small_text =
    R"(A mill stood by the water, and the water turned the mill.
The miller had a grey cat, and the cat had a place in the sun.
In spring the water was high, and the wheel went round and round.
In summer the water was low, and the wheel stood still.
When the wheel went round, the miller ground the corn.
When the wheel stood still, the miller sat in the sun with the cat.
The cat looked at the water, and the water looked at the cat.
There were fish in the water, and the cat knew it well.
The fish stood still when the wheel stood still.
The fish went round and round when the wheel went round.
One day the rain came, and the rain did not end.
The water was high, and the wheel went round by day and by night.
The miller ground all the corn there was, and then there was none.
The cat had no place in the sun, for there was no sun.
Then the rain came to an end, and there was sun on the water.
The miller sat by the water, and the cat sat by the miller.
The wheel went round and round, and ground no corn at all.
)";

struct Preset {
    GptConfig model;
    TrainOptions train;
};

/// nano is what nanoGPT's README gives for a CPU, baby what it gives for a GPU: no biases, GELU by
/// erf, the head tied to the embedding, a warm-up of 100 steps. But weights start as init::gpt2 has
/// them: from N(0, 0.02) whatever the width, as there, 2,000 steps of nano end 0.13 higher.
Preset preset_of(const std::string& name) {
    if (name == "nano") {
        return {.model = {.context_length = 64, .d_model = 128, .num_layers = 4, .num_heads = 4},
                .train = {.steps = 2000, .batch_size = 12, .warmup = 100, .sample_every = 500}};
    }
    if (name == "baby") {
        return {.model = {.context_length = 256,
                          .d_model = 384,
                          .num_layers = 6,
                          .num_heads = 6,
                          .dropout = 0.2},
                .train = {.steps = 5000, .batch_size = 64, .warmup = 100, .sample_every = 500}};
    }
    return {.model = {.context_length = 32, .d_model = 32, .num_layers = 2, .num_heads = 2},
            .train = {.steps = 300,
                      .batch_size = 8,
                      .lr = 3e-3,
                      .eval_every = 50,
                      .eval_batches = 5,
                      .checkpoint_every = 50}};
}

/// What a checkpoint says of how its run was started.
template <class T>
T said(const Checkpoint& checkpoint, const std::string& name) {
    const std::optional<std::string> text = checkpoint.find(name);
    T value{};
    if (!text || !CLI::detail::lexical_cast(*text, value)) {
        throw ValueError("the checkpoint does not say its " + name);
    }
    return value;
}

struct Flags {
    std::string file, out = "char_gpt", preset = "tiny", prompt;
    std::int64_t steps = 0, length = 300;
    std::uint64_t seed = 1337;
    double temperature = 0.8;
    bool resume = false, quiet = false;
};

int sample(const Flags& flags) {
    CheckpointFolder checkpoints(flags.out);
    auto found = checkpoints.best();
    if (!found) found = checkpoints.newest();
    if (!found) throw FileError(flags.out + " holds no checkpoint");
    const TextModel made = text_model(found->checkpoint);
    fmt::print("{}{}\n", flags.prompt,
               continue_text(*made.model, *made.tokenizer, flags.prompt,
                             {.max_tokens = flags.length,
                              .sampling = {.temperature = flags.temperature},
                              .seed = flags.seed}));
    return 0;
}

int train(Flags flags) {
    const RunLock lock(flags.out);
    CheckpointFolder checkpoints(flags.out);
    const auto found = checkpoints.newest();
    if (found && !flags.resume) {
        throw ValueError(flags.out + " holds a run already", "go on with --resume, or give --out");
    }
    if (!found && flags.resume) throw ValueError(flags.out + " holds no checkpoint to resume");

    // The text, as numbers.
    std::optional<Corpus> corpus;
    if (!flags.file.empty()) corpus.emplace(flags.file);
    const std::string_view text = corpus ? corpus->text() : small_text;
    if (found) {
        const Checkpoint& checkpoint = found->checkpoint;
        flags.preset = said<std::string>(checkpoint, "preset");
        flags.seed = said<std::uint64_t>(checkpoint, "seed");
        if (flags.steps == 0) flags.steps = said<std::int64_t>(checkpoint, "steps");
        if (said<std::size_t>(checkpoint, "text_bytes") != text.size()) {
            throw ValueError("the run in " + flags.out + " was begun with another text");
        }
    }
    const CharTokenizer tokenizer(text);
    Preset preset = preset_of(flags.preset);
    preset.model.vocab_size = tokenizer.vocab_size();
    preset.model.bias = false;
    preset.model.activation = Activation::gelu;
    preset.train.seed = flags.seed;
    if (flags.steps > 0) preset.train.steps = flags.steps;
    if (preset.train.warmup.value_or(0) >= preset.train.steps) preset.train.warmup.reset();
    const std::int64_t context = preset.model.context_length;
    const auto [for_training, for_validation] =
        split_tokens(tokenizer.encode_tensor(text), 0.9, context);

    // The model and what trains it: all of them functions of the seed.
    RandomState rng(static_cast<std::uint32_t>(flags.seed));
    Gpt model(preset.model, rng);
    Trainer trainer(model, TextBatches(for_training, context, flags.seed),
                    TextBatches(for_validation, context, flags.seed + 1), preset.train);
    if (found) trainer.resume(found->checkpoint);
    // Killed between the two files that a best checkpoint goes to.
    if (found && found->path == checkpoints.best_path()) checkpoints.save(found->checkpoint);

    // The run, with all that watches it.
    StopSignals signals(flags.out + "/stop");
    ProgressLine progress({.quiet = flags.quiet});
    RunFolder folder(flags.out);
    MetricsLog metrics(folder.path("metrics.jsonl"));
    RunCalls calls{.reporters = {&progress, &folder, &metrics}};
    calls.header
        .add("text",
             fmt::format("{} characters, {} different",
                         for_training.numel() + for_validation.numel(), tokenizer.vocab_size()))
        .add("model", fmt::format("{} layers, width {}, context {}", preset.model.num_layers,
                                  preset.model.d_model, context))
        .add("out", flags.out);
    calls.save = [&](Checkpoint checkpoint, const CheckpointSaveOptions& options) {
        add_text_model(checkpoint, model, tokenizer);
        checkpoint.metadata.emplace_back("preset", flags.preset);
        checkpoint.metadata.emplace_back("seed", std::to_string(flags.seed));
        checkpoint.metadata.emplace_back("steps", std::to_string(preset.train.steps));
        checkpoint.metadata.emplace_back("text_bytes", std::to_string(text.size()));
        checkpoints.save(checkpoint, options);
    };
    const auto write = [&] {
        return continue_text(model, tokenizer, flags.prompt,
                             {.max_tokens = flags.length,
                              .sampling = {.temperature = flags.temperature},
                              .seed = flags.seed});
    };
    calls.sample = write;
    calls.stop = [&] { return signals.requested(); };
    const RunResult ended = trainer.run(calls);

    const std::vector<Metrics> rows = read_metrics(metrics.path());
    write_loss_curve(folder.path("loss.svg"), rows);
    if (ended.reason == RunEnd::Reason::diverged) return 3;
    if (ended.reason == RunEnd::Reason::interrupted) {
        fmt::print("Stopped after {} steps. Go on with --resume.\n", ended.step);
        return signals.exit_status();
    }
    // Without overlap, so that each character is asked for once.
    const TextBatches all(for_validation, context, 0, {.stride = context, .shuffle = false});
    fmt::print(
        "{} steps, best validation loss {:.4f} of {} windows; {:.4f} now of all {}. The model "
        "writes:\n{}\n",
        ended.step, ended.best_loss, preset.train.eval_batches * preset.train.batch_size,
        mean_loss(model, all), all.windows(), write());
    return 0;
}

}  // namespace

int main(int argc, char** argv) try {
    Flags flags;
    CLI::App app{
        "Trains a GPT on the characters of a text.\n"
        "  06_char_gpt                                 a few lines of our own\n"
        "  06_char_gpt shakespeare.txt --preset nano   any text\n"
        "  06_char_gpt shakespeare.txt --resume        goes on after Ctrl-C\n"
        "  06_char_gpt --sample 'To be'                what it has learned"};
    app.add_option("FILE", flags.file, "Text in UTF-8")->check(CLI::ExistingFile);
    app.add_option("--out", flags.out, "Folder of the run")->capture_default_str();
    app.add_option("--preset", flags.preset, "Size of model and run")
        ->check(CLI::IsMember({"tiny", "nano", "baby"}))
        ->capture_default_str();
    app.add_option("--steps", flags.steps, "Instead of the preset's")
        ->check(CLI::Range(1, 10000000));
    app.add_option("--seed", flags.seed, "Of weights, order and samples")->capture_default_str();
    app.add_flag("--resume", flags.resume, "Go on with the run in --out");
    const CLI::Option* asked = app.add_option("--sample", flags.prompt,
                                              "Train nothing: continue this with the run's best");
    app.add_option("--length", flags.length, "Characters of a sample")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--temperature", flags.temperature, "0 takes the most probable character")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_flag("--quiet", flags.quiet, "No progress");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    return asked->count() > 0 ? sample(flags) : train(flags);
} catch (const std::exception& error) {
    fmt::print(stderr, "06_char_gpt: {}\n", error.what());
    return 1;
}
