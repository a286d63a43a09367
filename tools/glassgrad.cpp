// The `glassgrad` command. A verb is a file: cmd_<verb>.cpp with a function in commands.hpp.

#include "commands.hpp"

#include <glassgrad/tensor/error.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

int main(int argc, char** argv) {
    CLI::App app("Looks into arrays and traces of glassgrad", "glassgrad");
    app.require_subcommand(1);

    std::string path;
    CLI::App* info = app.add_subcommand("info", "What a .npy array or a trace holds");
    info->add_option("FILE", path, "a .npy file, a .trace.json or a .trace.jsonl")->required();
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
        std::fprintf(stderr, "glassgrad: %s\n", error.what());
        return glassgrad::tools::exit_failure;
    }
}
