#include "gradcheck_problem.hpp"

#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/tensor/detail/same_bits.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace glassgrad::proof {
namespace {

/// Powers of two, since x + 2^k loses least; never far below the size that the tensor has as a
/// whole, so that a zero among large numbers gets a step that they would get.
std::vector<double> natural_steps(const Tensor& x) {
    double squares = 0;
    std::int64_t count = 0;
    for (const double each : x.values<double>()) {
        if (!std::isfinite(each)) continue;
        squares += each * each;
        ++count;
    }
    double typical = count > 0 ? std::sqrt(squares / static_cast<double>(count)) : 0;
    if (typical == 0 || !std::isfinite(typical)) typical = 1;
    std::vector<double> steps;
    for (const double each : x.values<double>()) {
        const double size = std::isfinite(each) ? std::max(std::abs(each), typical) : typical;
        steps.push_back(std::exp2(std::floor(std::log2(size))));
    }
    return steps;
}

/// Sees whether any step of the function is f32.
class PrecisionWatch final : public Observer {
  public:
    void on_forward(const ForwardEvent& event) override {
        if (op.empty() && event.output.dtype() == f32) op = event.row.name;
    }
    std::string op;
};

class PausedObservers {
  public:
    PausedObservers() noexcept : previous_(std::exchange(detail::observers_paused, true)) {}
    ~PausedObservers() { detail::observers_paused = previous_; }
    PausedObservers(const PausedObservers&) = delete;
    PausedObservers& operator=(const PausedObservers&) = delete;

  private:
    bool previous_;
};

void check_results(const std::vector<Variable>& results) {
    for (const Variable& y : results) {
        if (!y.defined()) {
            throw Refusal{Verdict::invalid, GradFault::none,
                          "the function returned an undefined Variable"};
        }
        if (y.dtype() == f32) {
            throw Refusal{Verdict::invalid, GradFault::none,
                          "the function gives f32 for f64 inputs: it has to compute in f64 to be "
                          "checked, since differences in f32 prove little"};
        }
        if (y.dtype() != f64) {
            throw Refusal{
                Verdict::invalid, GradFault::none,
                fmt::format("the function gives {}, which has no gradient", name(y.dtype()))};
        }
    }
}

}  // namespace

Problem::Problem(std::string_view op, Function f, std::span<const Variable> inputs,
                 std::span<const Variable> parameters)
    : f_(std::move(f)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Variable& x = inputs[i];
        if (!x.defined()) throw ValueError(fmt::format("{}: input {} is undefined", op, i));
        const bool floating = is_floating(x.dtype());
        arguments_.push_back(floating ? Variable() : x.detach());
        if (!floating) continue;
        Tensor value = x.dtype() == f64 ? x.value().clone() : x.value().astype(f64);
        std::vector<double> scale = natural_steps(value);
        slots_.push_back({x.name().empty() ? fmt::format("input {}", i) : x.name(),
                          std::move(value),
                          std::move(scale),
                          i,
                          {}});
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        const Variable& p = parameters[i];
        if (!p.defined()) throw ValueError(fmt::format("{}: parameter {} is undefined", op, i));
        const std::string title = p.name().empty() ? fmt::format("parameter {}", i) : p.name();
        if (!p.requires_grad()) {
            frozen_.push_back(title);
            continue;
        }
        if (!p.is_leaf()) {
            throw ValueError(fmt::format("{}: {} is no parameter", op, describe(p)),
                             "pass results of ops as inputs");
        }
        if (p.dtype() != f64) {
            throw TypeError(fmt::format("{}: parameter {} is {}", op, title, name(p.dtype())),
                            "convert the module to f64 before it is checked");
        }
        for (const Kept& each : kept_) {
            if (each.parameter.same_as(p)) {
                throw ValueError(fmt::format("{}: parameter {} is given twice", op, title));
            }
        }
        // A buffer of its own: the one to put back must be untouched.
        slots_.push_back({title, p.value().clone(), natural_steps(p.value()), i, p});
        kept_.push_back({p, p.value(), p.grad()});
    }
    if (slots_.empty()) {
        throw ValueError(fmt::format("{}: nothing to check: no input is f32 or f64", op));
    }
    for (const Slot& slot : slots_) values_.push_back(slot.value);
}

Problem::~Problem() {
    for (const Kept& each : kept_) {
        Variable p = each.parameter;
        p.set_value(each.value);
        if (p.requires_grad()) p.set_grad(each.gradient);
    }
}

std::vector<Variable> Problem::call(std::span<const Variable> leaves, bool record) {
    std::vector<Variable> arguments = arguments_;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!slots_[i].captured.defined()) arguments[slots_[i].argument] = leaves[i];
    }
    const GradMode mode(record);
    try {
        std::vector<Variable> results = f_(arguments);
        check_results(results);
        return results;
    } catch (const std::exception& error) {
        throw Refusal{Verdict::invalid, GradFault::none,
                      fmt::format("the function threw: {}", error.what())};
    }
}

Recorded Problem::record() { return record(values_); }

Recorded Problem::record(std::span<const Tensor> values) {
    Recorded run;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const Slot& slot = slots_[i];
        run.leaves.push_back(slot.captured.defined() ? slot.captured
                                                     : parameter(values[i], slot.name));
        if (slot.captured.defined()) run.leaves.back().set_value(values[i]);
    }
    PrecisionWatch watch;
    {
        const Observing observing(watch);
        run.results = call(run.leaves, true);
    }
    if (!watch.op.empty()) {
        throw Refusal{Verdict::invalid, GradFault::none,
                      fmt::format("the function computes in f32 inside (its {}): gradients are "
                                  "checked in f64",
                                  watch.op)};
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (!detail::same_bits(run.leaves[i].value(), values[i])) {
            throw Refusal{Verdict::invalid, GradFault::none,
                          fmt::format("the function writes to {}", slots_[i].name)};
        }
    }
    std::vector<Shape> shapes;
    for (const Variable& y : run.results) shapes.push_back(y.shape());
    if (shapes_.empty()) {
        shapes_ = shapes;
        for (const Shape& shape : shapes) total_ += shape.numel();
    }
    return run;
}

Recorded Problem::record_again(const Recorded& run) {
    Recorded both = run;
    const std::vector<Variable> more = call(run.leaves, true);
    both.results.insert(both.results.end(), more.begin(), more.end());
    return both;
}

std::vector<double> Problem::evaluate(std::span<const Tensor> values) {
    const PausedObservers paused;
    std::vector<Variable> leaves;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        leaves.push_back(slots_[i].captured.defined() ? slots_[i].captured : Variable(values[i]));
        if (slots_[i].captured.defined()) leaves.back().set_value(values[i]);
    }
    const std::vector<Variable> results = call(leaves, false);
    std::vector<double> row;
    row.reserve(static_cast<std::size_t>(total_));
    for (const Variable& y : results) {
        const auto numbers = y.value().values<double>();
        row.insert(row.end(), numbers.begin(), numbers.end());
    }
    if (static_cast<std::int64_t>(row.size()) != total_) {
        throw Refusal{Verdict::invalid, GradFault::none,
                      fmt::format("the function gave {} numbers, then {}", total_, row.size())};
    }
    return row;
}

std::vector<double> Problem::evaluate(std::size_t slot, const Tensor& moved) {
    Tensor rest = std::exchange(values_[slot], moved);
    try {
        std::vector<double> row = evaluate(values_);
        values_[slot] = std::move(rest);
        return row;
    } catch (...) {
        values_[slot] = std::move(rest);
        throw;
    }
}

std::string Problem::place(std::int64_t result) const {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        if (result < shapes_[i].numel()) {
            const std::string index = to_string(index_of(result, shapes_[i]));
            return shapes_.size() == 1 ? fmt::format("at {}", index)
                                       : fmt::format("at {} of result {}", index, i);
        }
        result -= shapes_[i].numel();
    }
    return "nowhere";
}

Shape index_of(std::int64_t flat, const Shape& shape) {
    Shape index = shape;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    return index;
}

std::string number(double x) { return std::isnan(x) ? "nan" : fmt::format("{:.6g}", x); }

}  // namespace glassgrad::proof
