#pragma once
// The words of the format for enumerations, for reader and writer alike.

#include <glassgrad/trace/document.hpp>

#include <array>
#include <string_view>
#include <utility>

namespace glassgrad::detail {

template <class E, std::size_t n>
using Words = std::array<std::pair<std::string_view, E>, n>;

inline constexpr Words<DType, 4> dtype_words{
    {{"f32", DType::f32}, {"f64", DType::f64}, {"i64", DType::i64}, {"bool", DType::boolean}}};
inline constexpr Words<TraceRole, 7> role_words{{{"input", TraceRole::input},
                                                 {"param", TraceRole::param},
                                                 {"const", TraceRole::constant},
                                                 {"activation", TraceRole::activation},
                                                 {"loss", TraceRole::loss},
                                                 {"grad", TraceRole::grad},
                                                 {"buffer", TraceRole::buffer}}};
inline constexpr Words<TracePass, 3> pass_words{
    {{"fwd", TracePass::forward}, {"bwd", TracePass::backward}, {"opt", TracePass::optimizer}}};
inline constexpr Words<TraceSeverity, 3> severity_words{{{"info", TraceSeverity::info},
                                                         {"warning", TraceSeverity::warning},
                                                         {"error", TraceSeverity::error}}};

enum class Encoding : std::uint8_t { list, b64le, fill, ref, sample, none };
inline constexpr Words<Encoding, 6> encoding_words{{{"list", Encoding::list},
                                                    {"b64le", Encoding::b64le},
                                                    {"fill", Encoding::fill},
                                                    {"ref", Encoding::ref},
                                                    {"sample", Encoding::sample},
                                                    {"none", Encoding::none}}};

template <class E, std::size_t n>
constexpr std::string_view word(const Words<E, n>& words, E value) noexcept {
    for (const auto& [text, known] : words) {
        if (known == value) return text;
    }
    return "";
}

}  // namespace glassgrad::detail
