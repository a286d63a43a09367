// Prints the rows of all ops and the samples that are compared with PyTorch, with their inputs, as
// JSON in the manner of tests/data/tensor/encode.py, for make_op_cases.py; with --errors also the
// worst errors of the gradient checks of each row, for docs/make_ops.py.

#include "parity/samples.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <string_view>

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
    return {{"name", row.name},         {"forward", row.forward},
            {"backward", row.backward}, {"holds", row.holds},
            {"domain", row.domain},     {"inputs", row.inputs},
            {"torch", row.torch},       {"records", row.records},
            {"f32_ulp", row.f32_ulp},   {"samples", row.samples ? row.samples().size() : 0}};
}

/// The largest errors of both gradient checks over all samples: order 1, order 2.
json errors_of(const OpRow& row) {
    double first = 0, second = 0;
    if (!row.samples || row.backward.empty()) return json::array();
    for (const OpSample& sample : row.samples()) {
        const std::vector<Variable> inputs(sample.inputs.begin(), sample.inputs.end());
        const auto check = [&](auto& checker, double& worst) {
            const GradcheckReport report =
                checker(sample.apply, inputs, GradcheckOptions{.accept_zero = true});
            if (!report) throw ValueError(std::string(row.name) + ": " + report.text);
            worst = std::max(worst, report.worst_error);
        };
        check(gradcheck, first);
        check(gradgradcheck, second);
    }
    return {first, second};
}

}  // namespace

int main(int argc, char** argv) {
    const bool with_errors = argc > 1 && argv[1] == std::string_view("--errors");
    json rows = json::array();
    for (const OpRow* row : op_table()) {
        rows.push_back(encode(*row));
        if (with_errors) rows.back()["errors"] = errors_of(*row);
    }
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
