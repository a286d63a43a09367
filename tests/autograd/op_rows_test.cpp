// Every row of every family's table: its derivative to the second order on all its samples, and
// what holds for each op whatever it computes.

#include "autograd/support/checks.hpp"

#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <sstream>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

class Names final : public Observer {
  public:
    void on_forward(const ForwardEvent& event) override {
        seen.insert(std::string(event.row.name));
    }
    std::set<std::string> seen;
};

/// The inputs of a sample; those that can have a gradient want one.
std::vector<Variable> leaves_of(const OpRow& row, const OpSample& sample, DType dtype = f64) {
    std::vector<Variable> leaves;
    for (const Tensor& each : sample.inputs) {
        const Tensor x = is_floating(each.dtype()) ? each.astype(dtype) : each;
        const bool wanted = is_floating(each.dtype()) && !row.backward.empty();
        leaves.push_back(wanted ? parameter(x) : Variable(x));
    }
    return leaves;
}

std::vector<Variable> with_gradient(const std::vector<Variable>& leaves) {
    std::vector<Variable> wanted;
    for (const Variable& each : leaves) {
        if (each.requires_grad()) wanted.push_back(each);
    }
    return wanted;
}

enum class Rows : std::uint8_t { all, with_derivative };

template <class F>
void for_each_sample(Rows which, const F& f) {
    for (const OpRow* row : op_table()) {
        if (!row->samples || (which == Rows::with_derivative && row->backward.empty())) continue;
        for (const OpSample& sample : row->samples()) {
            INFO(row->name << ": " << sample.label);
            f(*row, sample);
        }
    }
}

bool is_finite(const Tensor& x) {
    const Tensor wide = x.astype(f64);
    const auto values = wide.values<double>();
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

Tensor signs(const Tensor& like, int seed) { return uneven(like.shape(), -1, 1, seed); }

/// The derivative is 0 everywhere, so that checks of it have no power.
bool is_flat(const OpRow& row) { return row.backward == "gx = 0"; }

/// Gradients of the leaves that want one, for a cotangent; zeros where there is no path.
std::vector<Tensor> pullback(const OpSample& sample, const std::vector<Variable>& leaves,
                             const Tensor& cotangent) {
    const Variable y = sample.apply(leaves);
    const std::vector<Variable> wanted = with_gradient(leaves);
    std::vector<Tensor> result;
    for (const Variable& g :
         grad({y}, wanted, {.grad_outputs = {Variable(cotangent)}, .allow_unused = true})) {
        result.push_back(g.defined() ? g.value() : zeros_like(wanted[result.size()].value()));
    }
    return result;
}

}  // namespace

TEST_CASE("every row has a name of its own, formulas and samples") {
    std::set<std::string_view> names;
    for (const OpRow* row : op_table()) {
        INFO(row->name);
        CHECK(names.insert(row->name).second);
        CHECK_FALSE(row->forward.empty());
        if (row->backward.empty()) continue;
        REQUIRE(row->samples);
        CHECK_FALSE(row->samples().empty());
        std::set<std::string> labels;
        for (const OpSample& sample : row->samples()) CHECK(labels.insert(sample.label).second);
    }
    CHECK(names.size() >= 20);
}

TEST_CASE("the derivative of every op passes gradcheck on all samples") {
    std::map<std::string_view, std::set<std::size_t>> proven;
    std::map<std::string_view, std::size_t> inputs;
    int count = 0;
    for_each_sample(Rows::with_derivative, [&](const OpRow& row, const OpSample& sample) {
        const std::vector<Variable> leaves = leaves_of(row, sample);
        GradcheckReport report = gradcheck(sample.apply, leaves);
        for (std::size_t i = 0; i < report.inputs.size(); ++i) {
            const GradcheckFinding& each = report.inputs[i];
            if (each.verdict == Verdict::passed && each.compared > 0) proven[row.name].insert(i);
            inputs[row.name] = std::max(inputs[row.name], i + 1);
        }
        // A sample may leave one input without effect (where); another has to prove it.
        if (report.verdict == Verdict::no_power) {
            report = gradcheck(sample.apply, leaves, {.accept_zero = true});
            if (is_flat(row) && report) proven[row.name].insert(0);
        }
        INFO(report.text);
        CHECK(report);
        CHECK(report.worst_error < 1e-7);
        ++count;
    });
    for (const auto& [name, needed] : inputs) {
        INFO(name);
        CHECK(proven[name].size() == needed);
    }
    CHECK(count > 200);
}

/// Whether all gradients are zeros, as those of the softmax of one number.
bool has_no_slope(const OpSample& sample, const std::vector<Variable>& leaves) {
    const Tensor y = sample.apply(leaves).value();
    const auto gradients = pullback(sample, leaves, signs(y, 3));
    return std::all_of(gradients.begin(), gradients.end(),
                       [](const Tensor& g) { return close(g, zeros_like(g), 0); });
}

TEST_CASE("the second derivative of every op passes gradgradcheck on all samples") {
    for_each_sample(Rows::with_derivative, [](const OpRow& row, const OpSample& sample) {
        const std::vector<Variable> leaves = leaves_of(row, sample);
        GradcheckReport report = gradgradcheck(sample.apply, leaves, {.accept_zero = is_flat(row)});
        if (report.verdict == Verdict::no_power && has_no_slope(sample, leaves)) {
            report = gradgradcheck(sample.apply, leaves, {.accept_zero = true});
        }
        INFO(report.text);
        CHECK(report);
        CHECK(report.worst_error < 1e-6);
    });
}

TEST_CASE("every op gives finite values, and the same bits twice") {
    for_each_sample(Rows::all, [](const OpRow& row, const OpSample& sample) {
        const Variable first = sample.apply(leaves_of(row, sample));
        CHECK(is_finite(first.value()));
        CHECK(same_bits(first.value(), sample.apply(leaves_of(row, sample)).value()));
        const NoGrad off;
        const Variable constant = sample.apply(leaves_of(row, sample));
        CHECK_FALSE(constant.requires_grad());
        CHECK(same_bits(first.value(), constant.value()));
    });
}

TEST_CASE("the pullback of every op is linear in the cotangent") {
    for_each_sample(Rows::with_derivative, [](const OpRow& row, const OpSample& sample) {
        const std::vector<Variable> leaves = leaves_of(row, sample);
        const Tensor y = sample.apply(leaves).value();
        const Tensor v = signs(y, 3);
        const Tensor w = signs(y, 8);
        const auto of_v = pullback(sample, leaves, v);
        const auto of_w = pullback(sample, leaves, w);
        const auto mixed = pullback(sample, leaves, v * 2.0 - w * 3.0);
        const auto zero = pullback(sample, leaves, zeros_like(y));
        for (std::size_t i = 0; i < zero.size(); ++i) {
            CHECK(close(mixed[i], of_v[i] * 2.0 - of_w[i] * 3.0, 1e-12));
            CHECK(close(zero[i], zeros_like(of_v[i]), 0));
        }
    });
}

TEST_CASE("a backward pass that is watched gives the bits of one that is not") {
    for_each_sample(Rows::with_derivative, [](const OpRow& row, const OpSample& sample) {
        const Tensor v = signs(sample.apply(leaves_of(row, sample)).value(), 3);
        const auto alone = pullback(sample, leaves_of(row, sample), v);
        Names names;
        const Observing observing(names);
        const auto watched = pullback(sample, leaves_of(row, sample), v);
        for (std::size_t i = 0; i < alone.size(); ++i) CHECK(same_bits(alone[i], watched[i]));
    });
}

/// The largest difference of two tensors, in units in the last place of an f32 of the size of the
/// largest element of `wanted`. Both may have the same NaN and infinities.
double ulps(const Tensor& got, const Tensor& wanted) {
    REQUIRE(got.shape() == wanted.shape());
    const Tensor wide = got.astype(f64);
    double difference = 0, largest = 0;
    for (std::int64_t i = 0; i < wide.numel(); ++i) {
        const double a = wide.data<double>()[i];
        const double b = wanted.data<double>()[i];
        if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        if (!std::isfinite(a) || !std::isfinite(b)) return std::numeric_limits<double>::infinity();
        difference = std::max(difference, std::abs(a - b));
    }
    if (difference == 0) return 0;
    return difference / std::ldexp(1.0, std::max(std::ilogb(largest) - 23, -149));
}

TEST_CASE(
    "f32 results are as near to f64 as the rows state, and gradients within four times that") {
    std::map<std::string_view, std::pair<double, double>> worst;
    for_each_sample(Rows::all, [&](const OpRow& row, const OpSample& sample) {
        // Both compute from the numbers that f32 can hold.
        OpSample rounded = sample;
        for (Tensor& x : rounded.inputs) x = x.dtype() == f64 ? x.astype(f32).astype(f64) : x;
        const std::vector<Variable> wide = leaves_of(row, rounded, f64);
        const std::vector<Variable> narrow = leaves_of(row, rounded, f32);
        const Variable y = sample.apply(wide);
        const Variable z = sample.apply(narrow);
        CHECK(z.dtype() == (y.dtype() == f64 ? f32 : y.dtype()));
        auto& [value, gradient] = worst[row.name];
        value = std::max(value, ulps(z.value(), y.value().astype(f64)));
        CHECK(value <= row.f32_ulp);
        if (row.backward.empty()) return;
        const Tensor v = signs(y.value(), 3).astype(f32);
        const auto of_y = pullback(sample, wide, v.astype(f64));
        const auto of_z = pullback(sample, narrow, v);
        for (std::size_t i = 0; i < of_z.size(); ++i) {
            CHECK(of_z[i].dtype() == f32);
            gradient = std::max(gradient, ulps(of_z[i], of_y[i]));
            CHECK(gradient <= 4 * row.f32_ulp);
        }
    });
    for (const auto& each : worst) {
        UNSCOPED_INFO(each.first << ": value " << each.second.first << ", gradient "
                                 << each.second.second);
    }
    CHECK(worst.size() >= 20);
}

/// The names that a function may record: its own, or those of the ops it is made of.
std::set<std::string> recorded_names(const OpRow& row) {
    std::istringstream words{std::string(row.records.empty() ? row.name : row.records)};
    return {std::istream_iterator<std::string>(words), {}};
}

TEST_CASE("a sample records the name of its row and nothing else, and no op without a row") {
    std::set<std::string> rows;
    for (const OpRow* row : op_table()) {
        const std::string name(row->name);
        if (recorded_names(*row).count(name) == 1) rows.insert(name);
    }
    for_each_sample(Rows::all, [&](const OpRow& row, const OpSample& sample) {
        Names names;
        const Observing observing(names);
        const std::vector<Variable> leaves = leaves_of(row, sample);
        const Variable y = sample.apply(leaves);
        if (row.records.empty()) {
            CHECK(names.seen.count(std::string(row.name)) == 1);
            if (!row.backward.empty()) CHECK(y.op() == row.name);
        }
        for (const std::string& each : names.seen) {
            INFO(each);
            CHECK(recorded_names(row).count(each) == 1);
        }
        // The ops that the derivative is made of have rows, too.
        if (row.backward.empty()) return;
        grad({y}, with_gradient(leaves),
             {.grad_outputs = {Variable(signs(y.value(), 1))},
              .create_graph = true,
              .allow_unused = true});
        for (const std::string& each : names.seen) {
            INFO(each);
            CHECK(rows.count(each) == 1);
        }
    });
}
