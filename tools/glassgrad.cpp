// The `glassgrad` command. A verb is a file: cmd_<verb>.cpp with a function in commands.hpp.

#include "commands.hpp"
#include "output.hpp"

#include <glassgrad/tensor/error.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
    CLI::App app("Looks into arrays, models and traces", "glassgrad");
    app.require_subcommand(1);

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
        if (app.got_subcommand("info")) return glassgrad::tools::info(path);
        if (app.got_subcommand("schema")) return glassgrad::tools::schema();
        return glassgrad::tools::version();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "glassgrad: %s\n", glassgrad::tools::printable(error.what()).c_str());
        return glassgrad::tools::exit_failure;
    }
}
