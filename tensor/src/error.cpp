#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/scope.hpp>

#include <utility>

namespace glassgrad {

static std::string compose(std::string_view problem, std::string_view hint) {
    std::string text(problem);
    const std::string& path = current_scope()->path;
    if (!path.empty()) text.append(", in ").append(path);
    if (!hint.empty()) text.append("; ").append(hint);
    return text;
}

Error::Error(std::string_view problem, std::string_view hint)
    : std::runtime_error(compose(problem, hint)), problem_size_(problem.size()) {}

void Error::name_operands(std::string_view operands) {
    if (std::exchange(named_, true)) return;
    std::string text(what());
    text.insert(problem_size_, " (" + std::string(operands) + ")");
    static_cast<std::runtime_error&>(*this) = std::runtime_error(text);
}

}  // namespace glassgrad
