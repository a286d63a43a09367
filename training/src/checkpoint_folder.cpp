#include "checkpoint_reader.hpp"
#include "leftovers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <system_error>
#include <tuple>

#include <unistd.h>

namespace glassgrad {
namespace {

constexpr std::string_view suffix = ".safetensors";

/// The number in `step-000420.safetensors`.
std::optional<std::int64_t> step_of(std::string_view name) {
    constexpr std::string_view prefix = "step-";
    if (!name.starts_with(prefix)) return std::nullopt;
    name.remove_prefix(prefix.size());
    std::int64_t step = -1;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), step);
    name.remove_prefix(static_cast<std::size_t>(stop - name.data()));
    if (error != std::errc{} || step < 0 || name != suffix) return std::nullopt;
    return step;
}

std::vector<std::string> names_in(const std::string& folder, std::error_code& error) {
    std::vector<std::string> names;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        names.push_back(at->path().filename().string());
    }
    return names;
}

/// `load_checkpoint: PATH: reason` without the name of the function.
std::string reason(const FileError& error) {
    const std::string_view text = error.what();
    constexpr std::string_view op = "load_checkpoint: ";
    return std::string(text.starts_with(op) ? text.substr(op.size()) : text);
}

}  // namespace

CheckpointFolder::CheckpointFolder(std::string folder, const CheckpointFolderOptions& options)
    : folder_(std::move(folder)) {
    set_keep_last(options.keep_last);
}

void CheckpointFolder::set_keep_last(std::int64_t keep_last) {
    if (keep_last < 1) {
        throw ValueError(fmt::format("CheckpointFolder: keep_last {} must be positive", keep_last));
    }
    keep_last_ = keep_last;
}

std::string CheckpointFolder::step_path(std::int64_t step) const {
    return fmt::format("{}/step-{:06}{}", folder_, step, suffix);
}

std::string CheckpointFolder::best_path() const {
    return fmt::format("{}/best{}", folder_, suffix);
}

void CheckpointFolder::save(const Checkpoint& checkpoint, const CheckpointSaveOptions& options) {
    detail::remove_leftovers(folder_, [](std::string_view name) { return name.ends_with(suffix); });
    // The best first: killed between the two, a run goes on from it as from the other.
    if (options.best) save_checkpoint(best_path(), checkpoint);
    const std::string path = step_path(checkpoint.step);
    save_checkpoint(path, checkpoint);
    kept_.erase(path);
    remove_old(checkpoint.step);
}

void CheckpointFolder::remove_old(std::int64_t step) const {
    std::error_code error;
    std::vector<std::pair<std::int64_t, std::string>> old;
    for (const std::string& name : names_in(folder_, error)) {
        const std::optional<std::int64_t> number = step_of(name);
        std::string path = fmt::format("{}/{}", folder_, name);
        if (number && *number <= step && !kept_.contains(path)) {
            old.emplace_back(*number, std::move(path));
        }
    }
    std::sort(old.begin(), old.end(), std::greater<>());
    for (auto i = static_cast<std::size_t>(keep_last_); i < old.size(); ++i) {
        ::unlink(old[i].second.c_str());
    }
}

std::optional<CheckpointFolder::Found> CheckpointFolder::newest() {
    std::error_code error;
    const std::vector<std::string> names = names_in(folder_, error);
    if (error == std::errc::no_such_file_or_directory) return std::nullopt;
    if (error) {
        throw FileError(
            fmt::format("CheckpointFolder: {}: cannot list it: {}", folder_, error.message()));
    }
    std::vector<std::string> damaged;
    const auto pass_over = [&](const std::string& path, const FileError& why) {
        // A run that is under way may have removed an old one meanwhile.
        if (!std::filesystem::exists(path, error) && !error) return;
        damaged.push_back(reason(why));
        kept_.insert(path);
    };
    struct Candidate {
        std::int64_t step;
        bool numbered;
        std::string path;
    };
    std::vector<Candidate> candidates;
    for (const std::string& name : names) {
        const bool numbered = step_of(name).has_value();
        const std::string path = fmt::format("{}/{}", folder_, name);
        if (!numbered && path != best_path()) continue;
        try {
            candidates.push_back({detail::CheckpointReader(path).step(), numbered, path});
        } catch (const detail::NewerFormat&) {
            throw;
        } catch (const FileError& why) {
            pass_over(path, why);
        }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tie(a.step, a.numbered) > std::tie(b.step, b.numbered);
    });
    for (const Candidate& each : candidates) {
        try {
            Found found{load_checkpoint(each.path), each.path, {}};
            kept_.insert(each.path);
            found.damaged = std::move(damaged);
            return found;
        } catch (const FileError& why) {
            pass_over(each.path, why);
        }
    }
    if (damaged.empty()) return std::nullopt;
    throw FileError(fmt::format("CheckpointFolder: {}: no checkpoint is whole: {}", folder_,
                                fmt::join(damaged, "; ")),
                    "move them away to start anew");
}

std::optional<CheckpointFolder::Found> CheckpointFolder::best() {
    std::error_code error;
    if (!std::filesystem::exists(best_path(), error) && !error) return std::nullopt;
    return Found{load_checkpoint(best_path()), best_path(), {}};
}

}  // namespace glassgrad
