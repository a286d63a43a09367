#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/scope.hpp>

namespace glassgrad {

static std::string compose(std::string_view problem, std::string_view hint) {
    std::string text(problem);
    const std::string& path = current_scope()->path;
    if (!path.empty()) text.append(", in ").append(path);
    if (!hint.empty()) text.append("; ").append(hint);
    return text;
}

Error::Error(std::string_view problem, std::string_view hint)
    : std::runtime_error(compose(problem, hint)) {}

}  // namespace glassgrad
