#pragma once
// Reading of tests/data/tensor and building of tensors from it.

#include <glassgrad/tensor.hpp>

#include <nlohmann/json.hpp>

#include <bit>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

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

inline DType dtype_named(const std::string& text) {
    for (const DType dtype : {f32, f64, i64, boolean}) {
        if (text == name(dtype)) return dtype;
    }
    throw std::runtime_error("no element type " + text);
}

/// A number, or `nan`, `inf`, `-inf` as text.
inline double number_of(const nlohmann::json& value) {
    return value.is_string() ? std::stod(value.get<std::string>()) : value.get<double>();
}

/// A tensor of tests/data/tensor/encode.py.
inline Tensor tensor_of(const nlohmann::json& item) {
    const Shape shape = shape_of(item["s"]);
    const nlohmann::json& values = item["v"];
    const DType dtype = dtype_named(item["t"]);
    if (dtype == i64) {
        const auto integers = values.get<std::vector<std::int64_t>>();
        return from_span<std::int64_t>(integers, shape);
    }
    std::vector<double> numbers;
    for (const auto& value : values) numbers.push_back(number_of(value));
    return from_values(numbers, shape, dtype);
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
