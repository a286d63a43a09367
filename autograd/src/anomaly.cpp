// The usual case, a tensor that is all finite, is one fast pass over its elements. Everything else
// runs after a hit only.

#include <glassgrad/autograd/anomaly.hpp>
#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/detail/place.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {
namespace {

using detail::all_finite;

struct Counts {
    std::int64_t nans = 0;
    std::int64_t infinities = 0;
};

Counts count(const Tensor& x) {
    Counts counts;
    if (all_finite(x)) return counts;
    const Tensor wide = x.astype(f64);
    for (const double value : wide.values<double>()) {
        if (std::isnan(value)) ++counts.nans;
        if (std::isinf(value)) ++counts.infinities;
    }
    return counts;
}

Counts& operator+=(Counts& a, const Counts& b) {
    a.nans += b.nans;
    a.infinities += b.infinities;
    return a;
}

TensorSummary summarize(std::string name, const Tensor& x) {
    constexpr double none = std::numeric_limits<double>::quiet_NaN();
    TensorSummary summary{std::move(name), x.shape(), x.dtype(), none, none, none, 0, 0};
    double sum = 0;
    std::int64_t finite = 0;
    const Tensor wide = x.astype(f64);
    for (const double value : wide.values<double>()) {
        if (std::isnan(value)) {
            ++summary.nans;
        } else if (std::isinf(value)) {
            ++summary.infinities;
        } else {
            summary.min = finite == 0 ? value : std::min(summary.min, value);
            summary.max = finite == 0 ? value : std::max(summary.max, value);
            sum += value;
            ++finite;
        }
    }
    if (finite > 0) summary.mean = sum / static_cast<double>(finite);
    return summary;
}

std::string to_text(const TensorSummary& x) {
    std::string text = fmt::format("{}, {} {}", x.name, name(x.dtype), to_string(x.shape));
    if (!std::isnan(x.mean)) {
        text += fmt::format(", min {:.4g}, max {:.4g}, mean {:.4g}", x.min, x.max, x.mean);
    }
    if (x.nans > 0) text += fmt::format(", {} NaN", x.nans);
    if (x.infinities > 0) text += fmt::format(", {} infinite", x.infinities);
    return text;
}

/// Index of the first element of the kind.
void locate(AnomalyReport& report, const Tensor& x) {
    const Tensor wide = x.astype(f64);
    const auto values = wide.values<double>();
    const auto found = std::find_if(values.begin(), values.end(), [&](double value) {
        return report.nan ? std::isnan(value) : std::isinf(value);
    });
    if (found == values.end()) return;
    report.value = *found;
    report.index = detail::place(found - values.begin(), x.shape());
}

std::string number(double value) {
    return std::isnan(value) ? "a NaN" : (value < 0 ? "-inf" : "inf");
}

std::string_view name_of(AnomalyReport::Pass pass) {
    return pass == AnomalyReport::Pass::forward ? "forward" : "backward";
}

std::string headline(const AnomalyReport& report) {
    const bool scalar = report.index.rank() == 0;
    const std::string at = scalar ? "" : fmt::format("at {} of ", to_string(report.index));
    if (report.cause == AnomalyReport::Cause::came_in) {
        return fmt::format("anomaly: {} came in {}{}, read by {} in the {} pass",
                           number(report.value), scalar ? "with " : at, report.where, report.op,
                           name_of(report.pass));
    }
    return fmt::format("anomaly: {} made {} {}{} in the {} pass", report.op, number(report.value),
                       scalar ? "in " : at, report.where, name_of(report.pass));
}

std::string details(const AnomalyReport& report) {
    std::string text = "read ";
    for (const TensorSummary& each : report.inputs) text += to_text(each) + "; ";
    if (report.inputs.empty()) text.clear();
    return text + "gave " + to_text(report.result);
}

bool brings_infinity(const Attributes& attributes) {
    return std::any_of(attributes.begin(), attributes.end(), [](const Attribute& each) {
        return each.kind == Attribute::Kind::number && std::isinf(each.number);
    });
}

std::string called(std::string_view role, const Variable& x) {
    if (!x.name().empty()) return fmt::format("{} '{}'", role, x.name());
    if (!x.op().empty()) return fmt::format("{} (result of {})", role, x.op());
    return std::string(role);
}

}  // namespace

Anomaly::Anomaly(const AnomalyOptions& options) : options_(options) {}

void Anomaly::report(AnomalyReport report) {
    const std::string problem = headline(report);
    const std::string hint = details(report);
    report.text = problem + (report.scope.empty() ? "" : ", in " + report.scope) + "; " + hint;
    if (static_cast<std::int64_t>(reports_.size()) < options_.limit) {
        reports_.push_back(std::move(report));
    } else {
        ++not_kept_;
    }
    // The pass that is watched is in the scope of the event, which the error adds by itself.
    if (options_.on_anomaly == OnAnomaly::fail) throw ValueError(problem, hint);
}

void Anomaly::on_forward(const ForwardEvent& event) {
    const Tensor& y = event.output.value();
    // What was moved without a copy was looked at where it came from.
    const bool moved = bad_values_.empty() && event.inputs.size() == 1 &&
                       y.shares_buffer_with(event.inputs.front().value());
    if (moved || all_finite(y)) return;
    if (event.recomputed && bad_values_.contains(event.output.id())) return;  // seen the first time
    const Counts out = count(y);
    if (out.nans == 0 && !options_.infinities) return;
    Counts in;
    const Variable* source = nullptr;  // of what came in
    for (const Variable& x : event.inputs) {
        if (bad_values_.contains(x.id())) {
            bad_values_.insert(event.output.id());
            ++passed_on_;
            return;
        }
        const Counts each = count(x.value());
        const bool parameter = x.requires_grad() && x.is_leaf();
        if (each.nans > 0 || (each.infinities > 0 && parameter && out.nans == 0)) source = &x;
        in += each;
    }
    AnomalyReport found;
    found.nan = out.nans > 0;
    found.cause = source ? AnomalyReport::Cause::came_in : AnomalyReport::Cause::made;
    if (!source && !found.nan && (in.infinities > 0 || brings_infinity(event.attributes))) return;
    found.op = event.row.name;
    found.scope = event.scope->path;
    found.output_id = event.output.id();
    const std::vector<std::string> names = detail::input_names(event.row, event.inputs.size());
    for (std::size_t i = 0; i < event.inputs.size(); ++i) {
        const Variable& x = event.inputs[i];
        found.inputs.push_back(summarize(called(names[i], x), x.value()));
        if (&x == source) found.where = found.inputs.back().name;
    }
    if (!source) found.where = "its result";
    found.result = summarize(called("the result", event.output), y);
    locate(found, source ? source->value() : y);
    bad_values_.insert(event.output.id());
    if (source) bad_values_.insert(source->id());
    report(std::move(found));
}

void Anomaly::on_backward(const BackwardEvent& event) {
    for (std::size_t i = 0; i < event.gradients.size(); ++i) {
        const Variable& gx = event.gradients[i];
        if (!gx.defined()) continue;
        const std::int64_t id = event.input_ids[i];
        const bool passed = gx.value().shares_buffer_with(event.gradient.value());
        if ((passed && !known(event.output_id)) || all_finite(gx.value())) {
            finite_[id] = gx.value().bytes();
            continue;
        }
        const Counts out = count(gx.value());
        if (out.nans == 0 && !options_.infinities) continue;
        bool descends = bad_gradients_.contains(event.output_id);
        Counts in = count(event.gradient.value());
        for (const Variable& each : event.saved) {
            descends = descends || bad_values_.contains(each.id());
            in += count(each.value());
        }
        if (descends || (out.nans > 0 && in.nans > 0)) {
            ++passed_on_;
            bad_gradients_.insert(id);
            continue;
        }
        if (out.nans == 0 && in.infinities > 0) {
            meant_gradients_.insert(id);
            continue;
        }
        if (!bad_gradients_.insert(id).second) continue;
        const auto names = detail::input_names(event.row, event.gradients.size());
        AnomalyReport found;
        found.pass = AnomalyReport::Pass::backward;
        found.nan = out.nans > 0;
        found.op = event.row.name;
        found.scope = event.scope->path;
        found.output_id = event.output_id;
        found.where = "the gradient of " + names[i];
        found.inputs.push_back(summarize("gy", event.gradient.value()));
        for (const Variable& each : event.saved) {
            found.inputs.push_back(summarize(called("saved", each), each.value()));
        }
        found.result = summarize(found.where, gx.value());
        locate(found, gx.value());
        report(std::move(found));
    }
}

void Anomaly::on_accumulate(const AccumulateEvent& event) {
    if (known(event.of)) return;
    if (all_finite(event.total.value())) {
        finite_[event.of] = event.total.value().bytes();
        return;
    }
    Counts in;
    for (const Variable& each : event.contributions) in += count(each.value());
    const Counts out = count(event.total.value());
    if (in.nans > 0 || in.infinities > 0 || (out.nans == 0 && !options_.infinities)) return;
    AnomalyReport found;
    found.pass = AnomalyReport::Pass::backward;
    found.op = "accumulate";
    found.scope = event.scope->path;
    found.output_id = event.of;
    found.where = "the sum of gradients";
    for (const Variable& each : event.contributions) {
        found.inputs.push_back(summarize("gradient", each.value()));
    }
    found.result = summarize(found.where, event.total.value());
    locate(found, event.total.value());
    bad_gradients_.insert(event.of);
    report(std::move(found));
}

void Anomaly::on_gradient(const GradientEvent& event) {
    const Tensor& gradient = event.gradient.value();
    if (was_finite(event.of, gradient) || known(event.of) || all_finite(gradient)) return;
    const Counts out = count(gradient);
    if (out.nans == 0 && !options_.infinities) return;
    AnomalyReport found;
    found.pass = AnomalyReport::Pass::backward;
    found.cause = AnomalyReport::Cause::came_in;
    found.nan = out.nans > 0;
    found.op = "the engine";
    found.output_id = event.of;
    found.where = "a cotangent or a hook";
    found.result = summarize("the gradient", gradient);
    locate(found, gradient);
    bad_gradients_.insert(event.of);
    report(std::move(found));
}

bool Anomaly::known(std::int64_t of) const {
    return bad_gradients_.contains(of) || meant_gradients_.contains(of);
}

/// True when these very elements were looked at on their way; forgets them.
bool Anomaly::was_finite(std::int64_t of, const Tensor& gradient) {
    const auto found = finite_.extract(of);
    return !found.empty() && found.mapped() == gradient.bytes();
}

std::string Anomaly::text() const {
    if (reports_.empty()) return "no anomaly";
    std::string text;
    for (const AnomalyReport& each : reports_) text += each.text + "\n";
    if (not_kept_ > 0) text += fmt::format("and {} more\n", not_kept_);
    if (passed_on_ > 0) text += fmt::format("{} more values descend from these\n", passed_on_);
    return text;
}

void Anomaly::clear() {
    reports_.clear();
    bad_values_.clear();
    bad_gradients_.clear();
    meant_gradients_.clear();
    finite_.clear();
    passed_on_ = 0;
    not_kept_ = 0;
}

}  // namespace glassgrad
