#pragma once
// What verbs print with.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

namespace glassgrad::tools {

/// Names from files may hold anything; control characters do not reach the terminal.
inline std::string printable(std::string_view text) {
    std::string safe;
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (code < 0x20 || code == 0x7F) {
            safe += fmt::format("\\x{:02x}", code);
        } else {
            safe += c;
        }
    }
    return safe;
}

/// Something the user should know that is no failure, on standard error.
inline void warn(std::string_view text) {
    std::fprintf(stderr, "glassgrad: warning: %.*s\n", static_cast<int>(text.size()), text.data());
}

/// Whoever reads standard output has had enough. The command ends, and that is no failure.
struct ReaderGone {};

/// At once. Throws ReaderGone, or runtime_error when standard output takes no more.
inline void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
        std::fflush(stdout) != 0) {
        if (errno == EPIPE) throw ReaderGone();
        throw std::runtime_error("cannot write to standard output");
    }
}

}  // namespace glassgrad::tools
