#include "round_trip.hpp"

#include <glassgrad/layers/llama2c.hpp>

#include <algorithm>
#include <optional>

// Reads a tokenizer, then takes the end of its own file for a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    const auto bytes = std::as_bytes(std::span(data, size));
    std::optional<Llama2cTokenizer> tokens;
    try {
        tokens = Llama2cTokenizer::parse(bytes, "x");
    } catch (const FileError&) {
        return 0;
    }
    const std::string whole(reinterpret_cast<const char*>(data), size);
    fuzz::require(tokens->to_bytes() == whole, "a tokenizer is written as another");
    const std::string text = whole.substr(size - std::min<std::size_t>(size, 200));
    try {
        const auto ids = tokens->encode(text, {.bos = true, .eos = true});
        fuzz::require(tokens->decode(ids) == text, "a text comes back as another");
    } catch (const ValueError&) {  // a byte without a piece
    } catch (const IndexError&) {  // no piece for start or end
    }
    return 0;
}
