#pragma once
// How GPT-2 cuts a text before it joins bytes: words with the space before them, numbers, signs,
// the endings 's 't 're 've 'm 'll 'd, blanks. Source: OpenAI's encoder.py.

#include <string_view>
#include <vector>

namespace glassgrad::detail {

/// The pieces of `text`, which together are `text`. Bytes that are no UTF-8 are pieces of their
/// own, as long as they go; letters and numbers are those of PCRE2's Unicode. Linear time.
std::vector<std::string_view> gpt2_split(std::string_view text);

}  // namespace glassgrad::detail
