// Prints the rows of all ops and the samples that are compared with PyTorch, with their inputs, as
// JSON in the manner of tests/data/tensor/encode.py: for make_op_cases.py and docs/make_ops.py.

#include "parity/samples.hpp"

#include <nlohmann/json.hpp>

#include <iostream>

using namespace glassgrad;
using nlohmann::json;

namespace {

json number(double x) {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    return x;
}

json encode(const Tensor& x) {
    json values = json::array();
    if (x.dtype() == i64) {
        for (const std::int64_t each : x.values<std::int64_t>()) values.push_back(each);
    } else if (x.dtype() == boolean) {
        for (const bool each : x.values<bool>()) values.push_back(each ? 1 : 0);
    } else {
        const Tensor wide = x.astype(f64);
        for (const double each : wide.values<double>()) values.push_back(number(each));
    }
    json sizes = json::array();
    for (const std::int64_t size : x.shape()) sizes.push_back(size);
    return {{"t", std::string(name(x.dtype()))}, {"s", sizes}, {"v", values}};
}

json encode(const OpRow& row) {
    return {{"name", row.name},   {"forward", row.forward}, {"backward", row.backward},
            {"holds", row.holds}, {"domain", row.domain},   {"inputs", row.inputs},
            {"torch", row.torch}, {"records", row.records}, {"f32_ulp", row.f32_ulp}};
}

}  // namespace

int main() {
    json rows = json::array();
    for (const OpRow* row : op_table()) rows.push_back(encode(*row));
    json samples = json::array();
    for (const auto& [op, sample, differentiable] : testing::parity_samples()) {
        json inputs = json::array();
        for (const Tensor& x : sample.inputs) inputs.push_back(encode(x));
        samples.push_back({{"op", op},
                           {"label", sample.label},
                           {"torch", sample.torch},
                           {"differentiable", differentiable},
                           {"x", inputs}});
    }
    std::cout << json{{"rows", rows}, {"samples", samples}} << '\n';
}
