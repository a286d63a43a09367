#pragma once
// The files beside the checkout, each with its verdict and values in a manifest.

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <cmath>
#include <filesystem>
#include <map>

namespace glassgrad::testing {

struct ManifestFile {
    std::string name;  ///< without folder and extension
    std::string path;
    bool is_decided;  ///< false where loading and refusing are both sane
    bool valid;
    nlohmann::json expect;
};

/// Calls `visit` for each file of `format`; gives how often it said true. 0 where the folder is
/// absent.
template <class Visit>
std::size_t for_each_file(const std::string& format, const Visit& visit) {
    const std::string root = std::string(GLASSGRAD_SHARED) + "/reliability/";
    std::ifstream file(root + "manifest.json");
    if (!file) {
        WARN("skipped: no " + root + "manifest.json");
        return 0;
    }
    const nlohmann::json manifest = nlohmann::json::parse(file);
    std::size_t count = 0;
    for (const nlohmann::json& item : manifest["files"]) {
        if (item["format"] != format) continue;
        const std::string path = root + "files/" + item["file"].get<std::string>();
        const bool decided = item["valid"].is_boolean();
        const ManifestFile one = {std::filesystem::path(path).stem().string(), path, decided,
                                  decided && item["valid"].get<bool>(),
                                  item.value("expect", nlohmann::json())};
        INFO(one.name);
        if (visit(one)) ++count;
    }
    return count;
}

/// Holds an array against `shape`, `dtype` and `bits`, `data_hex` or `values` of a manifest.
inline void check_array(const Tensor& x, const nlohmann::json& expect) {
    CHECK(x.shape() == shape_of(expect["shape"]));
    const std::map<std::string, DType> types = {
        {"float32", f32}, {"float64", f64}, {"int64", i64}, {"bool", boolean}};
    REQUIRE(x.dtype() == types.at(expect["dtype"]));
    if (expect.contains("bits")) {
        for (std::size_t i = 0; i < expect["bits"].size(); ++i) {
            CHECK(std::bit_cast<std::uint32_t>(x.data<float>()[i]) ==
                  expect["bits"][i].get<std::uint32_t>());
        }
        return;
    }
    const nlohmann::json& values = expect["values"];
    REQUIRE(x.numel() == std::int64_t(values.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (x.dtype() == i64) {
            CHECK(x.data<std::int64_t>()[i] == values[i].get<std::int64_t>());
        } else {
            CHECK(word(x.astype(f64).data<double>()[i]) == word(number_of(values[i])));
        }
    }
}

/// Holds named arrays against those of a manifest.
inline void check_arrays(const std::vector<std::pair<std::string, Tensor>>& arrays,
                         const nlohmann::json& expect) {
    CHECK(arrays.size() == expect.size());
    for (const auto& [name, x] : arrays) {
        INFO(name);
        REQUIRE(expect.contains(name));
        check_array(x, expect[name]);
    }
}

}  // namespace glassgrad::testing
