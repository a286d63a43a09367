#include "gpt2_split.hpp"

#include <glassgrad/tensor/detail/text.hpp>
#include <glassgrad/tensor/error.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <memory>

namespace glassgrad::detail {
namespace {

// Blanks are Unicode's White_Space, written out: PCRE2's \s has U+180E, too, which lost that
// property in Unicode 6.3.
#define GLASSGRAD_BLANKS R"(\p{Z}\x09-\x0d\x85)"
constexpr std::string_view pattern =
    "'(?:[sdmt]|ll|ve|re)"
    R"(| ?\p{L}+| ?\p{N}+)"
    "| ?[^" GLASSGRAD_BLANKS R"(\p{L}\p{N}]+)"
    "|[" GLASSGRAD_BLANKS "]+(?![^" GLASSGRAD_BLANKS
    "])"
    "|[" GLASSGRAD_BLANKS "]+";
#undef GLASSGRAD_BLANKS

struct FreeCode {
    void operator()(pcre2_code* code) const noexcept { pcre2_code_free(code); }
};
struct FreeMatch {
    void operator()(pcre2_match_data* data) const noexcept { pcre2_match_data_free(data); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;

[[noreturn]] void fail(std::string_view what, int code) {
    PCRE2_UCHAR text[256] = {};
    pcre2_get_error_message(code, text, sizeof(text));
    throw Error(
        fmt::format("gpt2_split: PCRE2 cannot {}: {}", what, reinterpret_cast<const char*>(text)));
}

Code compile() {
    int code = 0;
    PCRE2_SIZE offset = 0;
    Code result(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                              PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &code, &offset, nullptr));
    if (!result) fail("compile the pattern, is it built with Unicode", code);
    // Where no memory may be made executable the pattern is interpreted.
    (void)pcre2_jit_compile(result.get(), PCRE2_JIT_COMPLETE);
    return result;
}

/// `text` is valid UTF-8, and a subject of its own: nothing looks beyond it.
void split_valid(std::string_view text, std::vector<std::string_view>& pieces) {
    static const Code code = compile();
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!match) throw MemoryError("gpt2_split: no memory for a match");
    std::size_t begin = 0;
    while (begin < text.size()) {
        // Checked once already: PCRE2 would check all of the rest for each piece.
        const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                                      text.size(), begin, PCRE2_NO_UTF_CHECK, match.get(), nullptr);
        if (found < 0) fail("match", found);
        const std::size_t end = pcre2_get_ovector_pointer(match.get())[1];
        pieces.push_back(text.substr(begin, end - begin));
        begin = end;
    }
}

}  // namespace

std::vector<std::string_view> gpt2_split(std::string_view text) {
    std::vector<std::string_view> pieces;
    bool after_bad = false;
    while (!text.empty()) {
        const std::size_t bad = std::min(find_invalid_utf8(text), text.size());
        split_valid(text.substr(0, bad), pieces);
        if (bad == text.size()) break;
        if (after_bad && bad == 0) {
            pieces.back() = {pieces.back().data(), pieces.back().size() + 1};
        } else {
            pieces.push_back(text.substr(bad, 1));
        }
        after_bad = true;
        text.remove_prefix(bad + 1);
    }
    return pieces;
}

}  // namespace glassgrad::detail
