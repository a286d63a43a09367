// A checkpoint of training: its step, its model and tokenizer, the settings of its run.

#include "info.hpp"
#include "output.hpp"

#include <glassgrad/training/checkpoint.hpp>
#include <glassgrad/training/text_model.hpp>

#include <algorithm>
#include <sstream>

namespace glassgrad::tools {
namespace {

/// JSON that is written a member a line, on one.
std::string on_one_line(std::string text) {
    std::erase(text, '\n');
    return text;
}

/// The settings of a TOML document, without comments.
std::string settings_of(const std::string& toml) {
    std::istringstream lines(toml);
    std::string out;
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.front() == '#') continue;
        if (const std::size_t comment = line.rfind(" # "); comment != line.npos) {
            line.resize(comment);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += "  " + printable(line) + '\n';
    }
    return out;
}

}  // namespace

std::string describe_checkpoint(const std::string& path,
                                const std::vector<std::pair<std::string, std::string>>& metadata) {
    const bool named = std::any_of(metadata.begin(), metadata.end(), [](const auto& entry) {
        return entry.first == "checkpoint.format";
    });
    if (!named) return {};
    Checkpoint checkpoint;
    try {
        checkpoint = load_checkpoint(path);
    } catch (const FileError& error) {
        warn(printable(error.what()));
        return {};
    }
    std::string text =
        fmt::format("checkpoint after step {}, whole by its checksums\n", checkpoint.step);
    for (const auto& [name, value] : checkpoint.metadata) {
        std::string shown = value;
        if (name == "config") {
            shown = on_one_line(value);
        } else if (name == "tokenizer") {
            try {
                shown = fmt::format("{} of {} tokens", value.find("\"bpe\"") < 20 ? "bpe" : "char",
                                    tokenizer_from_json(value)->vocab_size());
            } catch (const Error&) {  // another program's
            }
        } else if (name == "run") {
            text += "run:\n" + settings_of(value);
            continue;
        }
        text += fmt::format("{}: {}\n", printable(name), printable(shown));
    }
    return text;
}

}  // namespace glassgrad::tools
