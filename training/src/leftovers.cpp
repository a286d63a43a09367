#include "leftovers.hpp"

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <vector>

#include <unistd.h>

namespace glassgrad::detail {
namespace {

/// Takes digits off the front of `text`; nothing unless there are some.
std::optional<std::int64_t> take_number(std::string_view& text) {
    std::int64_t value = -1;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    return value;
}

/// NAME of a leftover, or nothing.
std::string_view name_of(std::string_view name) {
    constexpr std::string_view middle = ".tmp.";
    const std::size_t place = name.rfind(middle);
    if (place == std::string_view::npos) return {};
    std::string_view rest = name.substr(place + middle.size());
    const auto process = take_number(rest);
    if (!process || *process < 1 || *process > std::numeric_limits<pid_t>::max() ||
        !rest.starts_with('.')) {
        return {};
    }
    rest.remove_prefix(1);
    if (!take_number(rest) || !rest.empty()) return {};
    const auto pid = static_cast<pid_t>(*process);
    const bool gone = pid == ::getpid() || (::kill(pid, 0) != 0 && errno == ESRCH);
    return gone ? name.substr(0, place) : std::string_view();
}

}  // namespace

void remove_leftovers(const std::string& folder,
                      const std::function<bool(std::string_view name)>& ours) {
    std::error_code error;
    std::vector<std::filesystem::path> found;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
         at.increment(error)) {
        const std::string name = at->path().filename().string();
        const std::string_view whole = name_of(name);
        if (!whole.empty() && ours(whole)) found.push_back(at->path());
    }
    for (const std::filesystem::path& each : found) ::unlink(each.c_str());
}

}  // namespace glassgrad::detail
