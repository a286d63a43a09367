// train: a GPT that learns to write like a text, in a folder that holds all there is about the run.

#include "commands.hpp"
#include "output.hpp"
#include "train_config.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/threads.hpp>
#include <glassgrad/training.hpp>

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace glassgrad::tools {
namespace {

struct Call {
    std::string config_path;
    std::map<std::string, std::string> flags;  ///< by the setting's key
    bool resume = false, print_config = false, quiet = false, tensorboard = false;
};

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    if (!file) throw ConfigError("cannot read " + path);
    return text.str();
}

/// Flags over environment over file over what `config` is already.
void apply(TrainConfig& config, const Call& call) {
    const std::vector<Setting> all = settings(config);
    if (!call.config_path.empty()) {
        read_toml(all, content_of(call.config_path), call.config_path);
    }
    read_environment(all, [](const char* name) -> const char* { return std::getenv(name); });
    for (const Setting& each : all) {
        const auto given = call.flags.find(each.key);
        if (given != call.flags.end()) set(each, given->second, each.flag());
    }
}

/// What the run was begun with, and what the call changes. Throws ConfigError that lists what
/// can't be changed.
TrainConfig resumed(const Checkpoint& checkpoint, const Call& call) {
    const std::optional<std::string> stored = checkpoint.find("run");
    if (!stored) throw ConfigError("the checkpoint was not written by glassgrad train");
    TrainConfig before;
    read_toml(settings(before), *stored, "checkpoint");
    TrainConfig config = before;
    apply(config, call);
    std::string changed;
    const std::vector<Setting> was = settings(before), is = settings(config);
    for (std::size_t i = 0; i < is.size(); ++i) {
        const bool matters = is[i].section == "model" || is[i].key == "seed" ||
                             (is[i].section == "data" && is[i].key != "file");
        if (!matters) continue;
        const std::string from = text_of(was[i]), to = text_of(is[i]);
        if (from == to) continue;
        changed +=
            fmt::format("{}{} from {} to {}", changed.empty() ? "" : ", ", is[i].key, from, to);
    }
    if (!changed.empty()) throw ConfigError("a run can't be resumed with another " + changed);
    return config;
}

std::unique_ptr<Tokenizer> tokenizer_for(std::string_view text, const TrainConfig& config) {
    if (config.tokenizer == "char") return std::make_unique<CharTokenizer>(text);
    if (config.tokenizer != "bpe") {
        throw ConfigError("tokenizer is char or bpe, not '" + config.tokenizer + "'");
    }
    if (config.vocab_size < 256 || config.vocab_size > BpeTokenizer::max_vocab_size) {
        throw ConfigError(fmt::format("vocab_size {} is outside 256 to {}", config.vocab_size,
                                      BpeTokenizer::max_vocab_size));
    }
    return std::make_unique<BpeTokenizer>(BpeTokenizer::train(text, config.vocab_size));
}

/// Tells texts apart.
std::string mark_of(std::string_view text) {
    return fmt::format("{} bytes, CRC-32C {:08x}", text.size(), crc32c(text));
}

int train(const Call& call) {
    TrainConfig config;
    apply(config, call);
    if (call.print_config) {
        print(to_toml(settings(config)));
        return exit_ok;
    }

    std::optional<RunLock> lock;
    // One for the whole run: what it found and passed over, it never removes.
    std::optional<CheckpointFolder> saved;
    std::optional<CheckpointFolder::Found> found;
    if (call.resume) {
        if (!std::filesystem::is_directory(config.out)) {
            throw ConfigError(config.out + " is no folder of a run");
        }
        lock.emplace(config.out);
        saved.emplace(config.out);
        found = saved->newest();
        if (!found) throw ConfigError(config.out + " holds no checkpoint to resume");
        const std::string out = config.out;
        config = resumed(found->checkpoint, call);
        config.out = out;
        for (const std::string& each : found->damaged) warn("passed over " + printable(each));
    }
    if (config.file.empty()) {
        throw ConfigError("no text to train on: glassgrad train FILE");
    }

    // All that can be wrong with the text or the settings is said before anything is written.
    const Corpus corpus(config.file, {.any_bytes = config.any_bytes});
    if (corpus.had_mark()) warn(config.file + " begins with a byte order mark, which is left out");
    if (found && found->checkpoint.find("text") != mark_of(corpus.text())) {
        throw ConfigError("the run in " + config.out + " was begun with another text");
    }
    const std::unique_ptr<Tokenizer> made = tokenizer_for(corpus.text(), config);
    const Tokenizer& tokenizer = *made;
    config.model.vocab_size = tokenizer.vocab_size();
    config.train.seed = config.seed;
    try {
        validate(config.model);
        validate(config.train);
    } catch (const ValueError& error) {
        throw ConfigError(error.what());
    }
    if (!config.prompt.empty()) tokenizer.encode(config.prompt);
    const std::int64_t context = config.model.context_length;
    const auto [for_training, for_validation] =
        split_tokens(tokenizer.encode_tensor(corpus.text()), config.train_share, context);

    if (!lock) lock.emplace(config.out);
    if (!saved) saved.emplace(config.out);
    CheckpointFolder& checkpoints = *saved;
    checkpoints.set_keep_last(config.keep_last);
    if (!found && checkpoints.newest()) {
        throw ConfigError(config.out + " holds a run already; go on with --resume or give --out");
    }

    RandomState rng(static_cast<std::uint32_t>(config.seed));
    Gpt model(config.model, rng);
    Trainer trainer(model, TextBatches(for_training, context, config.seed),
                    TextBatches(for_validation, context, config.seed + 1), config.train);
    if (found) trainer.resume(found->checkpoint);

    std::int64_t parameters = 0;
    for (const Variable& each : model.parameters()) parameters += each.numel();
    // A checkpoint holds weights and AdamW's two states, in f32.
    probe_folder(config.out, {.bytes = static_cast<std::uint64_t>(parameters) * 12 + 4096});
    // Killed between the two files that a best checkpoint goes to.
    if (found && found->path == checkpoints.best_path()) checkpoints.save(found->checkpoint);
    const std::string toml = to_toml(settings(config));
    {
        detail::OutputFile file("train", config.out + "/config.toml");
        file.write(toml.data(), toml.size());
        file.commit();
    }

    StopSignals signals(config.out + "/stop");
    ProgressLine progress({.quiet = call.quiet});
    RunFolder folder(config.out);
    MetricsLog metrics(folder.path("metrics.jsonl"));
    RunCalls calls{.reporters = {&progress, &folder, &metrics}};
    std::optional<TensorBoardLog> board;
    if (call.tensorboard) calls.reporters.push_back(&board.emplace(config.out));
    calls.header
        .add("text",
             fmt::format("{}: {} tokens, {} of them to validate", config.file,
                         for_training.numel() + for_validation.numel(), for_validation.numel()))
        .add("vocabulary", std::to_string(tokenizer.vocab_size()))
        .add("model", fmt::format("{} layers, {} heads, width {}, context {}: {} parameters",
                                  config.model.num_layers, config.model.num_heads,
                                  config.model.d_model, context, parameters))
        .add("batch", std::to_string(config.train.batch_size))
        .add("seed", std::to_string(config.seed))
        .add("threads", std::to_string(num_threads()))
        .add("out", config.out);
    calls.save = [&](Checkpoint checkpoint, const CheckpointSaveOptions& options) {
        add_text_model(checkpoint, model, tokenizer);
        checkpoint.metadata.emplace_back("run", toml);
        checkpoint.metadata.emplace_back("text", mark_of(corpus.text()));
        checkpoints.save(checkpoint, options);
    };
    calls.sample = [&] {
        return continue_text(model, tokenizer, config.prompt,
                             {.max_tokens = config.length,
                              .sampling = {.temperature = config.temperature},
                              .seed = config.seed});
    };
    calls.stop = [&] { return signals.requested(); };
    const RunResult result = trainer.run(calls);
    write_loss_curve(folder.path("loss.svg"), read_metrics(metrics.path()));
    if (result.reason == RunEnd::Reason::diverged) return exit_diverged;
    return result.reason == RunEnd::Reason::interrupted ? signals.exit_status() : exit_ok;
}

}  // namespace

Verb add_train(CLI::App& app) {
    const auto call = std::make_shared<Call>();
    CLI::App* verb = app.add_subcommand("train", "Trains a GPT on a text");
    verb->footer(
        "Examples:\n"
        "  glassgrad train plays.txt                       into the folder run/\n"
        "  glassgrad train plays.txt --steps 500 --lr 3e-4 --out small\n"
        "  glassgrad train --config small/config.toml --out again\n"
        "  glassgrad train --resume --out small            goes on after Ctrl-C\n"
        "A flag counts more than GLASSGRAD_<NAME> in the environment, that more than the file.\n"
        "Exit status: 0 done, 1 failed, 2 wrong call or setting, 3 diverged, 130 interrupted.");
    verb->add_option("--config", call->config_path,
                     "TOML file with settings, as --print-config "
                     "prints them")
        ->check(CLI::ExistingFile);
    verb->add_flag("--resume", call->resume, "Go on with the run in --out");
    verb->add_flag("--print-config", call->print_config, "Print all settings as TOML, and end");
    verb->add_flag("--quiet", call->quiet, "No progress");
    verb->add_flag("--tensorboard", call->tensorboard, "Write events for TensorBoard as well");
    TrainConfig defaults;
    for (const Setting& each : settings(defaults)) {
        const std::string key = each.key;
        CLI::Option* option = verb->add_option_function<std::string>(
            key == "file" ? "FILE" : each.flag(),
            [call, key](const std::string& text) { call->flags[key] = text; }, each.help);
        option->type_name("")->default_str(text_of(each))->take_last();
        if (key != "file") option->group("[" + each.section + "]");
    }
    return {verb, [call] { return train(*call); }};
}

}  // namespace glassgrad::tools
