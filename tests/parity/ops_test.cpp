// Values, gradients and second derivatives of every op against PyTorch's, over the cases that
// make_op_cases.py wrote to tests/data/autograd/op_cases.json.

#include <glassgrad/autograd.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <set>

using namespace glassgrad;
using glassgrad::testing::shape_of;
using glassgrad::testing::tensor_of;
using nlohmann::json;

namespace {

using In = std::span<const Variable>;
using Call = std::function<Variable(In, const json&)>;

ReduceOptions reduce_options(const json& options) {
    const auto axes = options["axes"].get<std::vector<std::int64_t>>();
    return {.axes = axes.empty() ? Axes() : Axes(axes), .keepdims = options["keepdims"]};
}

SliceOptions slice_options(const json& options) {
    SliceOptions result{.step = options["step"]};
    if (!options["start"].is_null()) result.start = options["start"].get<std::int64_t>();
    if (!options["stop"].is_null()) result.stop = options["stop"].get<std::int64_t>();
    return result;
}

Variable attention(In x) {
    const Variable& q = x[0];
    const std::int64_t length = q.size(-2);
    Tensor mask = zeros({length, length}, boolean);
    for (std::int64_t i = 0; i < length; ++i) {
        for (std::int64_t j = 0; j <= i; ++j) mask.set({i, j}, 1);
    }
    const double root = std::sqrt(static_cast<double>(q.size(-1)));
    const Variable scores = matmul(q, x[1], {.transpose_b = true}) / root;
    const Variable weights = softmax(where(mask, scores, Variable(full({}, -1e30, f64))));
    const Variable heads = permute(matmul(weights, x[2]), {0, 2, 1, 3});
    return matmul(reshape(heads, {q.size(0), length, -1}), x[3]);
}

Variable layer_norm(In x) {
    const ReduceOptions last{.axes = {-1}, .keepdims = true};
    const Variable centred = x[0] - mean(x[0], last);
    return centred / sqrt(mean(centred * centred, last) + 1e-5) * x[1] + x[2];
}

Variable perceptron(In x) {
    const Variable hidden = tanh(matmul(x[0], x[1]) + x[2]);
    return mean(log_softmax(matmul(hidden, x[3]) + x[4]), {.axes = {0}});
}

/// What PyTorch's calls are here.
const std::map<std::string, Call>& calls() {
    static const std::map<std::string, Call> table{
        {"add", [](In x, const json&) { return x[0] + x[1]; }},
        {"sub", [](In x, const json&) { return x[0] - x[1]; }},
        {"mul", [](In x, const json&) { return x[0] * x[1]; }},
        {"div", [](In x, const json&) { return x[0] / x[1]; }},
        {"neg", [](In x, const json&) { return -x[0]; }},
        {"pow", [](In x, const json&) { return pow(x[0], x[1]); }},
        {"add number", [](In x, const json& o) { return x[0] + o["number"].get<double>(); }},
        {"number sub", [](In x, const json& o) { return o["number"].get<double>() - x[0]; }},
        {"scale", [](In x, const json& o) { return scale(x[0], o["number"]); }},
        {"div number", [](In x, const json& o) { return x[0] / o["number"].get<double>(); }},
        {"number div", [](In x, const json& o) { return o["number"].get<double>() / x[0]; }},
        {"pow number", [](In x, const json& o) { return pow(x[0], o["number"].get<double>()); }},
        {"exp", [](In x, const json&) { return exp(x[0]); }},
        {"log", [](In x, const json&) { return log(x[0]); }},
        {"sqrt", [](In x, const json&) { return sqrt(x[0]); }},
        {"tanh", [](In x, const json&) { return tanh(x[0]); }},
        {"relu", [](In x, const json&) { return relu(x[0]); }},
        {"where", [](In x, const json& o) { return where(tensor_of(o["condition"]), x[0], x[1]); }},
        {"matmul",
         [](In x, const json& o) {
             return matmul(x[0], x[1],
                           {.transpose_a = o["transpose_a"], .transpose_b = o["transpose_b"]});
         }},
        {"softmax", [](In x, const json& o) { return softmax(x[0], o["axis"]); }},
        {"log_softmax", [](In x, const json& o) { return log_softmax(x[0], o["axis"]); }},
        {"softmax_vjp", [](In x, const json& o) { return softmax_vjp(x[0], x[1], o["axis"]); }},
        {"sum", [](In x, const json& o) { return sum(x[0], reduce_options(o)); }},
        {"mean", [](In x, const json& o) { return mean(x[0], reduce_options(o)); }},
        {"max", [](In x, const json& o) { return max(x[0], reduce_options(o)); }},
        {"sum_to", [](In x, const json& o) { return sum_to(x[0], shape_of(o["shape"])); }},
        {"reshape", [](In x, const json& o) { return reshape(x[0], shape_of(o["shape"])); }},
        {"permute",
         [](In x, const json& o) {
             return permute(x[0], o["axes"].get<std::vector<std::int64_t>>());
         }},
        {"transpose", [](In x, const json& o) { return transpose(x[0], o["axis0"], o["axis1"]); }},
        {"slice", [](In x, const json& o) { return slice(x[0], o["axis"], slice_options(o)); }},
        {"slice_scatter",
         [](In x, const json& o) {
             return slice_scatter(x[0], shape_of(o["shape"]), o["axis"], slice_options(o));
         }},
        {"concat", [](In x, const json& o) { return concat(x, o["axis"]); }},
        {"broadcast_to",
         [](In x, const json& o) { return broadcast_to(x[0], shape_of(o["shape"])); }},
        {"attention", [](In x, const json&) { return attention(x); }},
        {"layer norm", [](In x, const json&) { return layer_norm(x); }},
        {"perceptron", [](In x, const json&) { return perceptron(x); }},
    };
    return table;
}

/// The largest difference, relative to the largest number. A softmax that is nearly one-hot has
/// derivatives that are nothing but the rounding of 1 - 1, hence the least size.
double distance(const Tensor& got, const json& item) {
    const Tensor wanted = tensor_of(item);
    REQUIRE(got.shape() == wanted.shape());
    REQUIRE(got.dtype() == f64);
    double difference = 0, largest = 0;
    for (std::int64_t i = 0; i < got.numel(); ++i) {
        difference =
            std::max(difference, std::abs(got.data<double>()[i] - wanted.data<double>()[i]));
        largest = std::max(largest, std::abs(wanted.data<double>()[i]));
    }
    return difference / std::max(largest, 1e-4);
}

Variable weighted_sum(const std::vector<Variable>& values, const json& weights) {
    Variable total(zeros({}, f64));
    for (std::size_t i = 0; i < values.size(); ++i) {
        total = total + sum(values[i] * Variable(tensor_of(weights[i])));
    }
    return total;
}

json load_cases() {
    const std::string path = std::string(GLASSGRAD_TEST_DATA) + "/autograd/op_cases.json";
    std::ifstream file(path);
    if (!file) throw std::runtime_error("cannot read " + path);
    return json::parse(file);
}

struct Run {
    std::vector<Variable> leaves;
    Variable gy, y;
};

Run run(const json& item) {
    Run result;
    for (const json& x : item["x"]) result.leaves.push_back(parameter(tensor_of(x)));
    result.gy = parameter(tensor_of(item["gy"]), "gy");
    result.y = calls().at(item["op"])(result.leaves, item["options"]);
    return result;
}

}  // namespace

TEST_CASE("every op gives the values and gradients that PyTorch gives, to 1e-12") {
    const json file = load_cases();
    REQUIRE(file["cases"].size() > 200);
    std::set<std::string> seen;
    for (const json& item : file["cases"]) {
        INFO(item["op"] << " " << item["options"].dump().substr(0, 200) << " of "
                        << item["x"][0]["s"]);
        seen.insert(item["op"]);
        const Run it = run(item);
        CHECK(distance(it.y.value(), item["y"]) < 1e-12);
        const auto gradients = grad({it.y}, it.leaves, {.grad_outputs = {it.gy.detach()}});
        for (std::size_t i = 0; i < gradients.size(); ++i) {
            INFO("input " << i);
            CHECK(distance(gradients[i].value(), item["gx"][i]) < 1e-12);
        }
    }
    for (const auto& [name, call] : calls()) {
        INFO(name);
        CHECK(seen.count(name) == 1);
    }
    // And no op without a case.
    for (const OpRow* row : op_table()) {
        const std::string name(row->name);
        INFO(name);
        CHECK(seen.count(name) == 1);
    }
}

TEST_CASE("second derivatives are those of PyTorch, to 1e-11") {
    const json file = load_cases();
    for (const json& item : file["cases"]) {
        INFO(item["op"] << " " << item["options"].dump().substr(0, 200) << " of "
                        << item["x"][0]["s"]);
        const Run it = run(item);
        const auto gradients =
            grad({it.y}, it.leaves, {.grad_outputs = {it.gy}, .create_graph = true});
        const Variable total = weighted_sum(gradients, item["ggx"]);
        std::vector<Variable> wanted = it.leaves;
        wanted.push_back(it.gy);
        std::vector<Variable> second(wanted.size());
        if (total.requires_grad()) second = grad({total}, wanted, {.allow_unused = true});
        for (std::size_t i = 0; i < second.size(); ++i) {
            INFO("with respect to "
                 << (i < it.leaves.size() ? "input " + std::to_string(i) : "gy"));
            const Tensor got =
                second[i].defined() ? second[i].value() : zeros_like(wanted[i].value());
            CHECK(distance(got, item["second"][i]) < 1e-11);
        }
    }
}
