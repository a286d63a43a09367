// A checkpoint or a tokenizer of llama2.c.

#include "info.hpp"
#include "output.hpp"

#include <glassgrad/layers/llama2c.hpp>
#include <glassgrad/tensor/detail/file.hpp>

#include <algorithm>
#include <cstring>
#include <filesystem>

namespace glassgrad::tools {
namespace {

constexpr std::int64_t listed_pieces = 8;

/// Both begin with a size. Then a checkpoint has another one, a tokenizer a score: a float, whose
/// bits are no size unless it is tiny.
bool is_tokenizer(const std::string& path) {
    constexpr std::int32_t largest = 1 << 24;
    const detail::InputFile file("info", path);
    std::int32_t words[2] = {0, 1};
    file.read(0, reinterpret_cast<std::byte*>(words),
              static_cast<std::size_t>(std::min<std::uint64_t>(sizeof(words), file.size())));
    const auto is_size = [](std::int32_t word) { return word > 0 && word <= largest; };
    return is_size(words[0]) && !is_size(words[1]);
}

/// A tokenizer's file doesn't say how many pieces its model has. Throws when there are checkpoints
/// beside it and none has that many.
std::string find_model(const std::string& path, std::int64_t pieces) {
    constexpr int most = 1000;
    namespace fs = std::filesystem;
    std::error_code ignored;
    std::string other;
    int seen = 0;
    fs::path folder = fs::path(path).parent_path();
    if (folder.empty()) folder = ".";
    for (fs::directory_iterator each(folder, ignored), end; each != end && seen < most;
         each.increment(ignored), ++seen) {
        if (each->path().extension() != ".bin") continue;
        try {
            const std::int64_t vocabulary = load_llama2c_sizes(each->path().string()).vocab_size;
            const std::string name = each->path().filename().string();
            if (vocabulary == pieces) return printable(name);
            other = fmt::format("{} beside it has a vocabulary of {}", name, vocabulary);
        } catch (const FileError&) {
            continue;  // no checkpoint
        }
    }
    if (!other.empty()) {
        throw FileError(fmt::format("info: {}: a tokenizer of {}, but {}", path,
                                    count(static_cast<std::size_t>(pieces), "piece"), other));
    }
    return {};
}

std::string describe_tokenizer(const std::string& path) {
    const Llama2cTokenizer tokens = Llama2cTokenizer::load(path);
    const std::string model = find_model(path, tokens.vocab_size());
    std::string text = fmt::format("llama2.c tokenizer of {}",
                                   count(static_cast<std::size_t>(tokens.vocab_size()), "piece"));
    if (!model.empty()) text += fmt::format(", as many as {} needs", model);
    float low = tokens.score(0);
    float high = low;
    std::size_t longest = 0;
    for (std::int64_t id = 0; id < tokens.vocab_size(); ++id) {
        low = std::min(low, tokens.score(id));
        high = std::max(high, tokens.score(id));
        longest = std::max(longest, tokens.piece(id).size());
    }
    text += fmt::format("\nlongest piece {}, scores {:.6g} to {:.6g}\nfirst",
                        count(longest, "byte"), low, high);
    for (std::int64_t id = 0; id < std::min(tokens.vocab_size(), listed_pieces); ++id) {
        text += fmt::format(" '{}'", printable(tokens.piece(id)));
    }
    return text + (tokens.vocab_size() > listed_pieces ? " ...\n" : "\n");
}

std::string describe_checkpoint(const std::string& path) {
    const Llama2cCheckpoint model = load_llama2c_checkpoint(path);
    TensorList list;
    for (const auto& [name, x] : model.weights) list.add(name, glassgrad::name(x.dtype()), x);
    return fmt::format("llama2.c checkpoint of {}, {}\n", count(model.weights.size(), "tensor"),
                       count(list.elements(), "parameter")) +
           fmt::format("d_model {}, d_ff {}, {}, {}, {}, vocabulary {}, context {}, {}\n",
                       model.d_model, model.d_ff,
                       count(static_cast<std::size_t>(model.num_layers), "layer"),
                       count(static_cast<std::size_t>(model.num_heads), "head"),
                       count(static_cast<std::size_t>(model.num_kv_heads), "key/value head"),
                       model.vocab_size, model.context_length,
                       model.shares_head ? "the head is the embedding" : "a head of its own") +
           list.text();
}

}  // namespace

std::string describe_llama2c(const std::string& path) {
    return is_tokenizer(path) ? describe_tokenizer(path) : describe_checkpoint(path);
}

}  // namespace glassgrad::tools
