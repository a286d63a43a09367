#include <glassgrad/tensor/detail/json_writer.hpp>

namespace glassgrad::detail {

void JsonWriter::quote(std::string_view value) {
    std::string repaired;
    if (find_invalid_utf8(value) != std::string_view::npos) {
        repaired = repair_utf8(value);
        value = repaired;
    }
    out_.push_back('"');
    for (const char c : value) {
        switch (c) {
            case '"': out_.append("\\\""); break;
            case '\\': out_.append("\\\\"); break;
            case '\n': out_.append("\\n"); break;
            case '\r': out_.append("\\r"); break;
            case '\t': out_.append("\\t"); break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) {
                    out_.append("\\u00").append(to_hex({&c, 1}));
                } else {
                    out_.push_back(c);
                }
        }
    }
    out_.push_back('"');
}

}  // namespace glassgrad::detail
