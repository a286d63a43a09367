// Values, gradients and second derivatives of every sample of every op against PyTorch's, which
// make_op_cases.py wrote to tests/data/autograd/op_cases.json.

#include "parity/samples.hpp"
#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

using namespace glassgrad;
using glassgrad::testing::parity_samples;
using glassgrad::testing::ParitySample;
using glassgrad::testing::tensor_of;
using nlohmann::json;

namespace {

using Key = std::pair<std::string, std::string>;

const std::map<Key, json>& cases() {
    static const std::map<Key, json> table = [] {
        const json file = glassgrad::testing::load_json("../autograd/op_cases.json");
        std::map<Key, json> read;
        for (const json& item : file["cases"]) read[{item["op"], item["label"]}] = item;
        return read;
    }();
    return table;
}

template <class F>
void for_each_case(const F& f) {
    for (const ParitySample& each : parity_samples()) {
        const auto found = cases().find({each.op, each.sample.label});
        if (found == cases().end()) continue;  // its own test says so
        INFO(each.op << ": " << each.sample.label << ": " << each.sample.torch);
        f(each, found->second);
    }
}

/// The largest difference, relative to the largest number that is finite. `least` is the least
/// size that counts as large: a softmax that is nearly one-hot has derivatives that are nothing but
/// the rounding of 1 - 1.
double distance(const Tensor& got, const json& item, double least = 1e-4) {
    const Tensor wanted = tensor_of(item);
    REQUIRE(got.shape() == wanted.shape());
    REQUIRE(got.dtype() == wanted.dtype());
    const Tensor a = got.astype(f64);
    const Tensor b = wanted.astype(f64);
    double difference = 0, largest = least;
    for (std::int64_t i = 0; i < a.numel(); ++i) {
        const double x = a.data<double>()[i];
        const double y = b.data<double>()[i];
        if (x == y || (std::isnan(x) && std::isnan(y))) {
            if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
            continue;
        }
        if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
        difference = std::max(difference, std::abs(x - y));
        largest = std::max(largest, std::abs(y));
    }
    return difference / largest;
}

struct Run {
    std::vector<Variable> inputs, leaves;
    Variable y;
};

Run run(const ParitySample& each) {
    Run result;
    for (const Tensor& x : each.sample.inputs) {
        const bool wanted = each.differentiable && is_floating(x.dtype());
        result.inputs.push_back(wanted ? parameter(x) : Variable(x));
        if (wanted) result.leaves.push_back(result.inputs.back());
    }
    result.y = each.sample.apply(result.inputs);
    return result;
}

/// Gradients of y; zeros where there is no path.
std::vector<Variable> gradients(const Variable& y, const std::vector<Variable>& wanted,
                                const GradOptions& options) {
    std::vector<Variable> found(wanted.size());
    if (y.requires_grad()) found = grad({y}, wanted, options);
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i].defined()) found[i] = Variable(zeros_like(wanted[i].value()));
    }
    return found;
}

Variable weighted_sum(const std::vector<Variable>& values, const json& weights) {
    Variable total(zeros({}, f64));
    for (std::size_t i = 0; i < values.size(); ++i) {
        total = total + sum(values[i] * Variable(tensor_of(weights[i])));
    }
    return total;
}

}  // namespace

TEST_CASE("every sample of every op has a case from PyTorch, and every case a sample") {
    std::set<Key> seen;
    for (const ParitySample& each : parity_samples()) {
        const Key key{each.op, each.sample.label};
        INFO(each.op << ": " << each.sample.label);
        CHECK(seen.insert(key).second);
        CHECK_FALSE(each.sample.torch.empty());
        // make_op_cases.py writes what is missing here.
        REQUIRE(cases().count(key) == 1);
        const json& item = cases().at(key);
        CHECK(item["torch"] == each.sample.torch);
        if (!each.differentiable) continue;
        const auto says = [&](const char* mark) {
            return each.sample.torch.find(mark) != std::string::npos;
        };
        CHECK(item.contains("gx") == !says("# value only"));
        CHECK(item.contains("second") == !(says("# value only") || says("# no second derivative")));
    }
    for (const auto& [key, item] : cases()) {
        INFO(key.first << ": " << key.second);
        CHECK(seen.count(key) == 1);
    }
    CHECK(seen.size() > 200);
}

TEST_CASE("every op gives the values and gradients that PyTorch gives, to 1e-12") {
    for_each_case([](const ParitySample& each, const json& item) {
        const Run it = run(each);
        CHECK(distance(it.y.value(), item["y"], std::numeric_limits<double>::min()) < 1e-12);
        if (!item.contains("gx")) return;
        const auto found =
            gradients(it.y, it.leaves,
                      {.grad_outputs = {Variable(tensor_of(item["gy"]))}, .allow_unused = true});
        REQUIRE(found.size() == item["gx"].size());
        for (std::size_t i = 0; i < found.size(); ++i) {
            INFO("input " << i);
            CHECK(distance(found[i].value(), item["gx"][i]) < 1e-12);
        }
    });
}

TEST_CASE("second derivatives are those of PyTorch, to 1e-11") {
    for_each_case([](const ParitySample& each, const json& item) {
        if (!item.contains("second")) return;
        const Run it = run(each);
        const Variable gy = parameter(tensor_of(item["gy"]), "gy");
        const auto first = gradients(
            it.y, it.leaves, {.grad_outputs = {gy}, .create_graph = true, .allow_unused = true});
        std::vector<Variable> wanted = it.leaves;
        wanted.push_back(gy);
        const auto second =
            gradients(weighted_sum(first, item["ggx"]), wanted, {.allow_unused = true});
        REQUIRE(second.size() == item["second"].size());
        for (std::size_t i = 0; i < second.size(); ++i) {
            INFO("with respect to "
                 << (i < it.leaves.size() ? "input " + std::to_string(i) : "gy"));
            CHECK(distance(second[i].value(), item["second"][i]) < 1e-11);
        }
    });
}
