#include <glassgrad/training/corpus.hpp>

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {
namespace {

constexpr std::string_view mark = "\xEF\xBB\xBF";

/// Two or four bytes a character: a mark says so, or a NUL in most places of one parity and in none
/// of the other, which no text in UTF-8 has.
bool is_wide(std::string_view text) {
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) return true;
    const std::string_view head = text.substr(0, std::size_t{1} << 16);
    std::size_t nuls[2] = {};
    for (std::size_t i = 0; i < head.size(); ++i) nuls[i % 2] += head[i] == '\0';
    const auto [fewer, more] = std::minmax(nuls[0], nuls[1]);
    return fewer == 0 && head.size() >= 4 && more > head.size() / 4;
}

}  // namespace

Corpus::Corpus(const std::string& path, const CorpusOptions& options)
    : path_(path), file_(std::make_unique<detail::MappedFile>("corpus", path)) {
    const auto bytes = file_->bytes();
    text_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const std::string where = "corpus: " + path + ": ";
    if (text_.empty()) throw FileError(where + "the file is empty, there is nothing to train on");
    if (options.any_bytes) return;
    if (is_wide(text_)) {
        throw FileError(where + "the text is UTF-16 or UTF-32, not UTF-8",
                        "convert it with iconv -f UTF-16 -t UTF-8, or take its bytes as they are "
                        "with any_bytes");
    }
    had_mark_ = text_.starts_with(mark);
    if (had_mark_) text_.remove_prefix(mark.size());
    if (text_.empty()) throw FileError(where + "the file holds a byte order mark and no text");
    const std::size_t bad = detail::find_invalid_utf8(text_);
    if (bad != std::string_view::npos) {
        const auto line = std::count(text_.begin(), text_.begin() + static_cast<long>(bad), '\n');
        throw FileError(fmt::format("{}byte {:#04x} at offset {} (line {}) is not UTF-8", where,
                                    static_cast<unsigned char>(text_[bad]),
                                    bad + (had_mark_ ? mark.size() : 0), line + 1),
                        "convert the file, as with iconv -f LATIN1 -t UTF-8, or take its bytes as "
                        "they are with "
                        "any_bytes");
    }
}

Corpus::~Corpus() = default;
Corpus::Corpus(Corpus&&) noexcept = default;
Corpus& Corpus::operator=(Corpus&&) noexcept = default;

}  // namespace glassgrad
