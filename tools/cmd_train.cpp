// train: a model that learns to write like a text, in a folder that holds all there is about the
// run.

#include "commands.hpp"
#include "output.hpp"
#include "train_config.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/threads.hpp>
#include <glassgrad/trace/profile.hpp>
#include <glassgrad/training.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>

namespace glassgrad::tools {
namespace {

struct Call {
    std::vector<std::string> command;
    std::string config_path;
    std::string profile_path;                  ///< empty: no profile
    std::map<std::string, std::string> flags;  ///< by the setting's key
    bool resume = false, print_config = false, find_lr = false, quiet = false, tensorboard = false;
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

/// What decides over the weights, the order of data or what a checkpoint holds.
bool is_fixed(const Setting& setting) {
    static constexpr std::string_view keys[] = {"seed", "optimizer", "momentum", "average_decay"};
    return setting.section == "model" || (setting.section == "data" && setting.key != "file") ||
           std::find(std::begin(keys), std::end(keys), setting.key) != std::end(keys);
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
    // What belongs to a choice goes with it.
    const std::vector<Setting> given_before = settings(before), given = settings(config);
    for (std::size_t i = 0; i < given.size(); ++i) {
        const auto choice = std::find_if(given.begin(), given.end(), [&](const Setting& setting) {
            return setting.key == given[i].choice;
        });
        if (choice == given.end()) continue;
        const auto at = static_cast<std::size_t>(choice - given.begin());
        const bool other = text_of(*choice) != text_of(given_before[at]);
        if (other && text_of(given[i]) == text_of(given_before[i])) clear(given[i]);
    }

    std::string changed;
    TrainConfig was = with_defaults(before), is = with_defaults(config);
    const std::vector<Setting> all_was = settings(was), all_is = settings(is);
    for (std::size_t i = 0; i < all_is.size(); ++i) {
        if (!is_fixed(all_is[i]) || !(given_before[i].given() || given[i].given())) continue;
        const std::string from = text_of(all_was[i]), to = text_of(all_is[i]);
        if (from == to) continue;
        const auto shown = [](const std::string& text) { return text.empty() ? "none" : text; };
        changed += fmt::format("{}{} from {} to {}", changed.empty() ? "" : ", ", all_is[i].key,
                               shown(from), shown(to));
    }
    if (!changed.empty()) throw ConfigError("a run can't be resumed with another " + changed);
    return config;
}

/// Tells texts apart.
std::string mark_of(std::string_view text) {
    return fmt::format("{} bytes, CRC-32C {:08x}", text.size(), crc32c(text));
}

/// The folder of a run. One for the whole of it: what it found and passed over, it never removes.
struct Access {
    std::optional<RunLock> lock;
    std::optional<CheckpointFolder> folder;
    std::optional<CheckpointFolder::Found> found;

    void open(const std::string& out) {
        lock.emplace(out);
        folder.emplace(out);
        found = folder->newest();
    }
    /// Throws ConfigError where there is nothing to go on with.
    void resume(const std::string& out) {
        if (!std::filesystem::is_directory(out)) throw ConfigError(out + " is no folder of a run");
        open(out);
        if (!found) throw ConfigError(out + " holds no checkpoint to resume");
        for (const std::string& each : found->damaged) warn("passed over " + printable(each));
    }
};

/// What stands behind a flag in the help, where completion finds the words that fit.
std::string type_of(const Setting& setting) {
    if (setting.key == "out") return "FOLDER";
    if (setting.key == "file") return "FILE";
    if (setting.kind() == Setting::Kind::truth) return "{true,false}";
    return setting.values.empty() ? "" : fmt::format("{{{}}}", fmt::join(setting.values, ","));
}

int find_rate(Trainer& trainer) {
    const LrFinding found = trainer.find_lr({.first = 1e-6, .last = 10, .steps = 140});
    std::string text = "lr        loss\n";
    for (std::size_t i = 0; i < found.rates.size(); i += 5) {
        text += fmt::format("{:.2e}  {:.4f}\n", found.rates[i], found.losses[i]);
    }
    if (found.suggestion == 0) {
        print(text);
        throw ValueError("train: the loss falls at no rate");
    }
    print(fmt::format("{}The loss falls fastest at --lr {:.2g}\n", text, found.suggestion));
    return exit_ok;
}

int train(const Call& call) {
    TrainConfig given;
    apply(given, call);
    if (call.print_config) {
        check_choices(given);
        print(to_toml(given));
        return exit_ok;
    }
    Access before;
    if (call.resume) {
        const std::string out = given.out;
        before.resume(out);
        given = resumed(before.found->checkpoint, call);
        given.out = out;
    }
    if (given.file.empty()) throw ConfigError("no text to train on: glassgrad train FILE");
    check_choices(given);

    // All that can be wrong with the text or the settings is said before anything is written.
    const TrainConfig config = with_defaults(given);
    const TrainOptions options = train_options(config);
    const Corpus corpus(config.file, {.any_bytes = config.any_bytes.value_or(false)});
    if (corpus.had_mark()) warn(config.file + " begins with a byte order mark, which is left out");
    if (before.found && before.found->checkpoint.find("text") != mark_of(corpus.text())) {
        throw ConfigError("the run in " + config.out + " was begun with another text");
    }
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(corpus.text(), config);
    const std::unique_ptr<CausalModel> model = make_model(tokenizer->vocab_size(), config);
    if (!config.prompt.empty()) tokenizer->encode(config.prompt);
    const std::int64_t context = config.context_length;
    // Not bound to names: clang 14 can't capture those.
    const auto parts =
        split_tokens(tokenizer->encode_tensor(corpus.text()), config.train_share, context);
    Trainer trainer = [&] {
        try {
            return Trainer(*model, TextBatches(parts.first, context, config.seed),
                           TextBatches(parts.second, context, config.seed + 1), options);
        } catch (const ValueError& error) {  // of an optimizer's or a schedule's setting
            throw ConfigError(error.what());
        }
    }();
    if (call.find_lr) return find_rate(trainer);
    Profile profile;
    // A path that can't be written is found out before the run.
    if (!call.profile_path.empty()) profile.write_chrome_trace(call.profile_path);

    if (!call.resume) {
        before.open(config.out);
        if (before.found) {
            throw ConfigError(config.out +
                              " holds a run already; go on with --resume or give --out");
        }
    }
    CheckpointFolder& checkpoints = *before.folder;
    checkpoints.set_keep_last(config.keep_last);
    if (before.found) trainer.resume(before.found->checkpoint);

    std::int64_t parameters = 0;
    for (const Variable& each : model->parameters()) parameters += each.numel();
    // A checkpoint holds weights, two states of each at most, and averages, in f32.
    probe_folder(config.out, {.bytes = static_cast<std::uint64_t>(parameters) * 16 + 4096});
    // Killed between the two files that a best checkpoint goes to.
    if (before.found && before.found->path == checkpoints.best_path()) {
        checkpoints.save(before.found->checkpoint);
    }
    const std::string toml = to_toml(given);
    {
        detail::OutputFile file("train", config.out + "/config.toml");
        file.write(toml.data(), toml.size());
        file.commit();
    }

    StopSignals signals(config.out + "/stop");
    ProgressLine progress({.quiet = call.quiet});
    RunFolder folder(config.out, {.command = call.command});
    MetricsLog metrics(folder.path("metrics.jsonl"));
    RunCalls calls{.reporters = {&progress, &folder, &metrics}};
    std::optional<TensorBoardLog> board;
    if (call.tensorboard) calls.reporters.push_back(&board.emplace(config.out));
    calls.header
        .add("text", fmt::format("{}: {} tokens, {} of them to validate", config.file,
                                 parts.first.numel() + parts.second.numel(), parts.second.numel()))
        .add("vocabulary", std::to_string(tokenizer->vocab_size()))
        .add("model", fmt::format("{}, {} layers, {} heads, width {}, context {}: {} parameters",
                                  config.model, config.num_layers, config.num_heads, config.d_model,
                                  context, parameters))
        .add("optimizer",
             fmt::format("{}, lr {}, {}", config.optimizer, *config.lr, config.schedule))
        .add("batch", std::to_string(config.batch_size))
        .add("seed", std::to_string(config.seed))
        .add("threads", std::to_string(num_threads()))
        .add("out", config.out);
    calls.save = [&](Checkpoint checkpoint, const CheckpointSaveOptions& save) {
        add_text_model(checkpoint, *model, *tokenizer);
        checkpoint.metadata.emplace_back("run", toml);
        checkpoint.metadata.emplace_back("text", mark_of(corpus.text()));
        checkpoints.save(checkpoint, save);
    };
    calls.sample = [&] {
        return continue_text(*model, *tokenizer, config.prompt,
                             {.max_tokens = config.length,
                              .sampling = {.temperature = config.temperature},
                              .seed = config.seed});
    };
    calls.stop = [&] { return signals.requested(); };
    std::optional<Observing> watch;
    if (!call.profile_path.empty()) watch.emplace(profile);
    const RunResult result = trainer.run(calls);
    watch.reset();
    if (!call.profile_path.empty()) {
        profile.write_chrome_trace(call.profile_path);
        print("\n" + profile.text());
    }
    write_loss_curve(folder.path("loss.svg"), read_metrics(metrics.path()));
    if (result.reason == RunEnd::Reason::diverged) return exit_diverged;
    return result.reason == RunEnd::Reason::interrupted ? signals.exit_status() : exit_ok;
}

}  // namespace

Verb add_train(CLI::App& app, std::vector<std::string> command) {
    const auto call = std::make_shared<Call>();
    call->command = std::move(command);
    CLI::App* verb = app.add_subcommand("train", "Trains a GPT or a LLaMA on a text");
    verb->footer(
        "Examples:\n"
        "  glassgrad train plays.txt                       into the folder run/\n"
        "  glassgrad train plays.txt --steps 500 --lr 3e-4 --out small\n"
        "  glassgrad train plays.txt --model llama --optimizer muon --schedule linear\n"
        "  glassgrad train plays.txt --find-lr             which rate to take\n"
        "  glassgrad train --config small/config.toml --out again\n"
        "  glassgrad train --resume --out small            goes on after Ctrl-C\n"
        "A flag counts more than GLASSGRAD_<NAME> in the environment, that more than the file.\n"
        "Exit status: 0 done, 1 failed, 2 wrong call or setting, 3 diverged, 130 interrupted.");
    verb->add_option("--config", call->config_path,
                     "TOML file with settings, as --print-config prints them")
        ->type_name("FILE")
        ->check(CLI::ExistingFile);
    CLI::Option* resume = verb->add_flag("--resume", call->resume, "Go on with the run in --out");
    verb->add_flag("--print-config", call->print_config, "Print all settings as TOML, and end");
    verb->add_flag("--find-lr", call->find_lr,
                   "Raise the rate from step to step, say where the loss falls fastest, and end")
        ->excludes(resume);
    verb->add_flag("--quiet", call->quiet, "No progress");
    verb->add_option("--profile", call->profile_path,
                     "Print what each op and layer took; write a Chrome trace into FILE")
        ->type_name("FILE");
    verb->add_flag("--tensorboard", call->tensorboard, "Write events for TensorBoard as well");
    TrainConfig none, defaults = with_defaults(none);
    const std::vector<Setting> all = settings(none), filled = settings(defaults);
    for (std::size_t i = 0; i < all.size(); ++i) {
        const Setting& each = all[i];
        const std::string key = each.key;
        CLI::Option* option = verb->add_option_function<std::string>(
            key == "file" ? "FILE" : each.flag(),
            [call, key](const std::string& text) { call->flags[key] = text; },
            each.values.empty() ? each.full_help() : each.help);
        option->type_name(type_of(each))->default_str(text_of(filled[i]))->take_last();
        if (key != "file") option->group("[" + each.section + "]");
    }
    return {verb, [call] { return train(*call); }};
}

}  // namespace glassgrad::tools
