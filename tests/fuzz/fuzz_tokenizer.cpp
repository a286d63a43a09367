#include "round_trip.hpp"

#include <glassgrad/training/bpe_tokenizer.hpp>

#include <algorithm>
#include <memory>

// Reads a tokenizer, then takes the end of its own file for a text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace glassgrad;
    const std::string whole(reinterpret_cast<const char*>(data), size);
    std::unique_ptr<Tokenizer> tokens;
    try {
        tokens = tokenizer_from_json(whole);
    } catch (const FileError&) {
    }
    if (tokens) {
        const std::string once = tokens->to_json();
        fuzz::require(tokenizer_from_json(once)->to_json() == once,
                      "what was written reads as something else");
    } else {
        tokens = std::make_unique<BpeTokenizer>(BpeTokenizer::train(whole, 270));
    }
    const std::string text = whole.substr(size - std::min<std::size_t>(size, 200));
    try {
        fuzz::require(tokens->decode(tokens->encode(text)) == text, "a text comes back as another");
    } catch (const ValueError&) {  // a character outside the vocabulary
    }
    return 0;
}
