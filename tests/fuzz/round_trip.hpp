#pragma once
// What every fuzz target holds a reader to: any bytes are refused with one of our errors, or what
// was read survives writing, reading and writing again with the same bytes.

#include <glassgrad/tensor/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

namespace glassgrad::fuzz {

inline std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span<const char>(text));
}

/// Ends the program, which libFuzzer reports with the input.
inline void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: %s\n", what);
    std::abort();
}

/// `read` takes bytes, `write` what it gives. Only the first reading may refuse.
template <class Read, class Write>
void round_trip(std::span<const std::byte> bytes, const Read& read, const Write& write) {
    std::string once;
    try {
        once = write(read(bytes));
    } catch (const Error& error) {
        require(error.what()[0] != '\0', "a refusal without a word");
        return;
    }
    require(write(read(bytes_of(once))) == once, "what was written reads as something else");
}

}  // namespace glassgrad::fuzz
