// The `glassgrad` command. A verb is a file: cmd_<verb>.cpp with a function in commands.hpp.

#include "commands.hpp"
#include "output.hpp"
#include "train_config.hpp"

#include <glassgrad/tensor/error.hpp>

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
    // A reader that has gone shows when something is written.
    std::signal(SIGPIPE, SIG_IGN);
    CLI::App app("Trains small transformers, and looks into arrays, models and traces",
                 "glassgrad");
    app.require_subcommand(1);

    using glassgrad::tools::Verb;
    const Verb verbs[] = {glassgrad::tools::add_train(app, {argv, argv + argc}),
                          glassgrad::tools::add_generate(app),
                          glassgrad::tools::add_completion(app), glassgrad::tools::add_man(app)};
    std::string path;
    CLI::App* info = app.add_subcommand("info", "What a file of arrays, a model or a trace holds");
    info->add_option("FILE", path,
                     "ends in .npy, .npz, .safetensors, .bin (llama2.c), .json or .jsonl")
        ->required();
    app.add_subcommand("schema", "Prints the JSON Schema of traces");
    app.add_subcommand("version", "Prints the versions of the library and of the trace format");

    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp& help) {
        return app.exit(help);
    } catch (const CLI::ParseError& error) {
        std::fprintf(stderr, "glassgrad: %s\nRun glassgrad --help for the verbs.\n", error.what());
        return glassgrad::tools::exit_usage;
    }

    try {
        for (const Verb& each : verbs) {
            if (each.app->parsed()) return each.run();
        }
        if (app.got_subcommand("info")) return glassgrad::tools::info(path);
        if (app.got_subcommand("schema")) return glassgrad::tools::schema();
        return glassgrad::tools::version();
    } catch (const glassgrad::tools::ReaderGone&) {
        return glassgrad::tools::exit_ok;
    } catch (const glassgrad::tools::ConfigError& error) {
        std::fprintf(stderr, "glassgrad: %s\n", glassgrad::tools::printable(error.what()).c_str());
        return glassgrad::tools::exit_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "glassgrad: %s\n", glassgrad::tools::printable(error.what()).c_str());
        return glassgrad::tools::exit_failure;
    }
}
