#pragma once
// Reading of tests/data/tensor and building of tensors from it.

#include <glassgrad/tensor.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

namespace glassgrad::testing {

inline nlohmann::json load_json(const std::string& name) {
    const std::string path = std::string(GLASSGRAD_TEST_DATA) + "/tensor/" + name;
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    return nlohmann::json::parse(file);
}

inline Shape shape_of(const nlohmann::json& sizes) {
    Shape shape;
    for (const auto& size : sizes) shape.push_back(size.get<std::int64_t>());
    return shape;
}

/// FNV-1a over whole 8-byte words.
class Hash {
  public:
    void add(std::uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3u; }
    std::uint64_t value() const { return value_; }

  private:
    std::uint64_t value_ = 0xcbf29ce484222325u;
};

inline std::uint64_t word(double x) { return std::bit_cast<std::uint64_t>(x); }
inline std::uint64_t word(std::int64_t x) { return static_cast<std::uint64_t>(x); }

inline std::string message_of(const auto& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace glassgrad::testing
