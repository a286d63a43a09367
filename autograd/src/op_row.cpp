#include <glassgrad/autograd/op_row.hpp>

#include <fmt/format.h>

namespace glassgrad::detail {
namespace {

std::string_view trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

/// `gweight = …` gives `weight`; empty if the text does not begin like that.
std::string_view differentiated(std::string_view formula) {
    const std::string_view left = trimmed(formula.substr(0, formula.find('=')));
    const bool is_name = left.size() > 1 && left.front() == 'g' && left.size() < formula.size() &&
                         left.find_first_of(" ;()[]") == std::string_view::npos;
    return is_name ? left.substr(1) : std::string_view();
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> pieces;
    while (!text.empty()) {
        const auto end = text.find(separator);
        const std::string_view piece = trimmed(text.substr(0, end));
        if (!piece.empty()) pieces.emplace_back(piece);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return pieces;
}

std::vector<std::string> input_names(const OpRow& row, std::size_t count) {
    std::vector<std::string> names = split(row.inputs, ' ');
    if (names.size() == count) return names;
    names.clear();
    for (const std::string& formula : split(row.backward, ';')) {
        const std::string_view name = differentiated(formula);
        if (!name.empty()) names.emplace_back(name);
    }
    if (names.size() == count) return names;
    if (count == 1) return {"x"};
    if (count == 2) return {"a", "b"};
    names.clear();
    for (std::size_t i = 1; i <= count; ++i) names.push_back(fmt::format("x{}", i));
    return names;
}

}  // namespace glassgrad::detail
