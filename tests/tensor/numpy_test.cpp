// Every function against NumPy, over the cases of tests/data/tensor/make_numpy_cases.py.

#include <glassgrad/autograd/op_row.hpp>

#include "support/catch.hpp"
#include "tensor/support/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

using namespace glassgrad;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

/// `grid` of make_numpy_cases.py.
Tensor grid(const Shape& shape, DType dtype, std::int64_t seed, bool positive) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < shape.numel(); ++i) {
        std::int64_t k = (i * 611 + seed * 131) % 997 - 498;
        if (positive) k = std::abs(k) + 1;
        const bool low = (k % 7 + 7) % 7 < 3;
        values.push_back(dtype == boolean ? double(low)
                         : dtype == i64   ? double(k)
                                          : double(k) / 64);
    }
    return from_values(values, shape, dtype);
}

Tensor operand(const json& item) {
    const Shape shape = shape_of(item["s"]);
    const DType dtype = dtype_named(item["t"]);
    if (item.contains("g")) return grid(shape, dtype, item["g"], item.contains("p"));
    if (item.contains("n"))
        return RandomState(item["n"].get<std::int64_t>()).randn(shape, {.dtype = dtype});
    return tensor_of(item);
}

/// Largest relative error, in f64 and in f32; nothing is said of functions that are exact.
struct Tolerance {
    double f64;
    double f32;
};
Tolerance tolerance(const std::string& name) {
    static const std::map<std::string, Tolerance> table = {
        {"exp", {1e-14, 3e-7}},         {"log", {1e-14, 3e-7}},
        {"tanh", {1e-14, 3e-7}},        {"pow", {1e-14, 3e-7}},
        {"pow_scalar", {1e-14, 3e-7}},  {"mean", {1e-13, 2e-7}},
        {"var", {1e-13, 2e-7}},         {"softmax", {1e-14, 1e-6}},
        {"log_softmax", {1e-14, 1e-6}}, {"softmax_vjp", {1e-13, 1e-5}},
        {"linspace", {1e-15, 1e-7}},    {"expm1", {1e-14, 3e-7}},
        {"log1p", {1e-14, 3e-7}},       {"sin", {1e-14, 3e-7}},
        {"cos", {1e-14, 3e-7}},         {"rsqrt", {1e-15, 2e-7}},
        {"std", {1e-13, 2e-7}},         {"prod", {1e-13, 2e-7}},
        {"prod_vjp", {1e-13, 2e-7}},    {"norm", {1e-13, 2e-7}},
        {"logsumexp", {1e-14, 2e-7}},   {"cumsum", {1e-13, 2e-7}},
    };
    const auto found = table.find(name);
    return found == table.end() ? Tolerance{0, 0} : found->second;
}

std::uint64_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
std::uint64_t bits(double x) { return std::bit_cast<std::uint64_t>(x); }
std::uint64_t bits(std::int64_t x) { return static_cast<std::uint64_t>(x); }
std::uint64_t bits(bool x) { return x ? 1 : 0; }

/// Empty when `got` is the expected result, else what differs.
template <class T>
std::string difference(const Tensor& got, const json& expected, double relative, double absolute) {
    const auto values = got.values<T>();
    const json& wanted = expected["v"];
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        const T x = values[i];
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, bool>) {
            if (x != static_cast<T>(wanted[i].get<std::int64_t>())) {
                return fmt::format("element {}: {} is not {}", i, x, wanted[i].dump());
            }
        } else {
            const T y = static_cast<T>(number_of(wanted[i]));
            if (x != x && y != y) continue;
            const bool same =
                x == y && (x != 0 || relative > 0 || std::signbit(x) == std::signbit(y));
            const double distance = std::abs(double(x) - double(y));
            if (!same && !(distance <= absolute + relative * std::abs(double(y)))) {
                return fmt::format("element {}: {} is not {}", i, x, y);
            }
        }
    }
    if (expected.contains("h")) {
        Hash hash;
        for (const T x : values) hash.add(bits(x));
        if (fmt::format("{:016x}", hash.value()) != expected["h"].get<std::string>()) {
            return "elements after the first differ";
        }
    }
    return "";
}

std::string difference(const json& item, const Tensor& got) {
    const json& expected = item["r"];
    const std::string name = item["f"];
    Tolerance limit = tolerance(name);
    double absolute = 0;
    for (const json& a : item["a"]) {
        if (!a.contains("n")) continue;
        if (name == "sum") limit = {1e-13, 2e-7};
        if (name == "matmul") limit = {1e-13, 1e-5};
        if (name == "sum" || name == "matmul") absolute = got.dtype() == f32 ? 1e-5 : 1e-13;
    }
    if (name == "sum") limit.f64 = std::max(limit.f64, 1e-300);  // the sign of a zero sum is free
    if (name == "log_softmax") absolute = got.dtype() == f32 ? 5e-7 : 1e-15;  // of the shift
    if (name == "softmax_vjp") absolute = got.dtype() == f32 ? 1e-4 : 1e-12;
    if (got.shape() != shape_of(expected["s"])) return "shape " + to_string(got.shape());
    if (got.dtype() != dtype_named(expected["t"]))
        return "type " + std::string(glassgrad::name(got.dtype()));
    switch (got.dtype()) {
        case DType::f32: return difference<float>(got, expected, limit.f32, absolute);
        case DType::f64: return difference<double>(got, expected, limit.f64, absolute);
        case DType::i64: return difference<std::int64_t>(got, expected, 0, 0);
        case DType::boolean: break;
    }
    return difference<bool>(got, expected, 0, 0);
}

/// The name in a line `Tensor name(` or `bool name(`, else nothing.
std::string declared(const std::string& line) {
    for (const std::string type : {"Tensor ", "bool "}) {
        const std::size_t end = line.find('(');
        if (!line.starts_with(type) || end == line.npos) continue;
        const std::string function = line.substr(type.size(), end - type.size());
        const bool word = std::all_of(function.begin(), function.end(),
                                      [](unsigned char c) { return std::isalnum(c) || c == '_'; });
        return word ? function : "";
    }
    return "";
}

}  // namespace

TEST_CASE("every function gives what NumPy gives") {
    const json file = load_json("numpy_cases.json");
    std::map<std::string, int> wrong;
    for (const json& item : file["cases"]) {
        const std::string name = item["f"];
        Operands operands;
        for (const json& a : item["a"]) operands.push_back(operand(a));
        std::string problem;
        try {
            problem = difference(item, calls().at(name)(operands, item["o"]));
        } catch (const std::exception& error) {
            problem = error.what();
        }
        if (problem.empty() || ++wrong[name] > 3) continue;
        FAIL_CHECK(name << " of " << item["a"].dump().substr(0, 300) << " with " << item["o"]
                        << ": " << problem << "\nexpected " << item["r"].dump().substr(0, 300));
    }
    for (const auto& [name, count] : wrong) WARN(name << ": " << count << " cases wrong");
    CHECK(file["cases"].size() > 5000);
}

TEST_CASE("every function of the headers of ops and every creation function has reference cases") {
    std::set<std::string> covered;
    const json file = load_json("numpy_cases.json");
    for (const json& item : file["cases"]) covered.insert(item["f"].get<std::string>());
    const std::string headers =
        std::string(GLASSGRAD_TEST_DATA) + "/../../tensor/include/glassgrad/tensor/";
    // Ops with a row are compared with PyTorch, forward and backward.
    for (const OpRow* row : op_table()) {
        covered.insert(std::string(row->name));
        covered.insert(std::string(row->name) + "_vjp");
    }
    // Not NumPy's: they take C++ values, and have tests of their own.
    const std::set<std::string> others = {"tensor", "from_values", "from_span"};
    int found = 0;
    std::vector<std::filesystem::path> files{headers + "tensor.hpp"};
    for (const auto& entry : std::filesystem::directory_iterator(headers + "ops")) {
        files.push_back(entry.path());
    }
    for (const auto& header : files) {
        std::ifstream in(header);
        REQUIRE(in);
        for (std::string line; std::getline(in, line);) {
            const std::string function = declared(line);
            if (function.empty() || others.contains(function)) continue;
            INFO(line);
            CHECK(covered.contains(function));
            ++found;
        }
    }
    CHECK(found > 50);
    for (const auto& [name, call] : calls()) CHECK(covered.contains(name));
}
