#pragma once
// The cases that tests/parity/make_model_cases.py writes, and their numbers as tensors.

#include "support/catch.hpp"

#include <glassgrad/tensor.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

namespace glassgrad::testing {

using nlohmann::json;

/// By name.
inline const std::map<std::string, json>& model_cases() {
    static const std::map<std::string, json> table = [] {
        std::ifstream file(std::string(GLASSGRAD_TEST_DATA) + "/layers/model_cases.json");
        const json data = json::parse(file);
        std::map<std::string, json> by_name;
        for (const char* list : {"cases", "files"}) {
            for (const json& each : data[list]) by_name[each["name"]] = each;
        }
        return by_name;
    }();
    return table;
}

/// The exact numbers that the script computes from a name.
inline Tensor value(std::string_view name, const Shape& shape) {
    std::uint32_t hashed = 2166136261U;
    for (const char c : name) hashed = (hashed ^ static_cast<unsigned char>(c)) * 16777619U;
    Tensor x = Tensor::empty(shape, f64);
    double* out = x.mutable_data<double>();
    const bool norm = name.find("norm") != std::string_view::npos && name.ends_with(".weight");
    for (std::int64_t i = 0; i < x.numel(); ++i) {
        std::uint32_t z = hashed + static_cast<std::uint32_t>(i) * 2654435761U;
        z = (z ^ z >> 16) * 0x45D9F3BU;
        out[i] = (z ^ z >> 16) / 4294967296.0 - 0.5;
        if (norm) out[i] = 1 + out[i] / 2;
    }
    return x;
}

inline Tensor integers(const json& rows) {
    std::vector<std::int64_t> values;
    for (const json& row : rows) {
        if (row.is_array()) {
            for (const json& each : row) values.push_back(each.get<std::int64_t>());
        } else {
            values.push_back(row.get<std::int64_t>());
        }
    }
    const auto count = static_cast<std::int64_t>(rows.size());
    return rows[0].is_array()
               ? reshape(from_span<std::int64_t>(values, {std::int64_t(values.size())}),
                         {count, -1})
               : from_span<std::int64_t>(values, {count});
}

inline Tensor truths(const json& rows) {
    Tensor x = zeros({std::int64_t(rows.size()), std::int64_t(rows[0].size())}, boolean);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        for (std::size_t j = 0; j < rows[i].size(); ++j) {
            x.set({std::int64_t(i), std::int64_t(j)}, rows[i][j].get<bool>());
        }
    }
    return x;
}

inline Tensor numbers(const json& item) {
    Shape shape;
    for (const json& size : item["s"]) shape.push_back(size.get<std::int64_t>());
    return from_values(item["v"].get<std::vector<double>>(), shape, f64);
}

/// The largest difference, relative to the largest number.
inline double distance(const Tensor& a, const Tensor& b) {
    REQUIRE(a.shape() == b.shape());
    const double largest = std::max(max(abs(b)).item(), 1e-4);
    return max(abs(a - b)).item() / largest;
}

}  // namespace glassgrad::testing
