#pragma once
// The verbs of the command. Each returns the exit status; what it throws is printed as one
// sentence and gives exit_failure, a ConfigError exit_usage.

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace glassgrad::tools {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;  ///< unreadable or malformed input, or a failed write
inline constexpr int exit_usage = 2;
inline constexpr int exit_diverged = 3;  ///< training met a number that is none

int info(const std::string& path);
int schema();
int version();

/// A verb with options of its own.
struct Verb {
    CLI::App* app;
    std::function<int()> run;
};
/// `command` is how the program was called, for run.json.
Verb add_train(CLI::App& app, std::vector<std::string> command);
Verb add_generate(CLI::App& app);
Verb add_completion(CLI::App& app);
Verb add_man(CLI::App& app);

}  // namespace glassgrad::tools
