# cmake -D INPUT=<file> -D OUTPUT=<file.cpp> -D FUNCTION=<name> -P EmbedText.cmake
#
# A C++ file with the function glassgrad::FUNCTION, which returns the text of INPUT. As numbers,
# not as a string literal: those have a length limit in some compilers.
file(READ "${INPUT}" digits HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "\
#include <string_view>

namespace glassgrad {

static const unsigned char bytes[] = {
${bytes}};

std::string_view ${FUNCTION}() noexcept {
    return {reinterpret_cast<const char*>(bytes), sizeof(bytes)};
}

}  // namespace glassgrad
")
