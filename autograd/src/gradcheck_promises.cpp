// What every backward pass promises, whatever its numbers are.

#include "gradcheck_analytic.hpp"

#include <glassgrad/autograd/node.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace glassgrad::proof {
namespace {

Tensor or_zeros(const Variable& gradient, const Slot& slot) {
    return gradient.defined() ? gradient.value() : zeros_like(slot.value);
}

double largest_of(const Tensor& x) {
    double largest = 0;
    for (const double each : x.values<double>()) largest = std::max(largest, std::abs(each));
    return largest;
}

/// Where two tensors differ by more than `allowed`; -1 if nowhere.
std::int64_t difference(const Tensor& a, const Tensor& b, double allowed) {
    for (std::int64_t i = 0; i < a.numel(); ++i) {
        const double x = a.data<double>()[i];
        const double y = b.data<double>()[i];
        if (x == y || (std::isnan(x) && std::isnan(y))) continue;
        if (!(std::abs(x - y) <= allowed)) return i;
    }
    return -1;
}

/// Collects what is broken, one sentence a promise and slot.
class Breaches {
  public:
    explicit Breaches(const Problem& problem) : problem_(problem) {}

    void expect(std::size_t slot, GradFault fault, std::string_view what, const Tensor& got,
                const Tensor& wanted, double allowed = 0) {
        const Slot& at = problem_.slots()[slot];
        const std::int64_t i = difference(wanted, got, allowed);
        if (i < 0) return;
        add(slot, fault,
            fmt::format("{} at {}: {}, not {}", what, to_string(index_of(i, at.value.shape())),
                        number(got.data<double>()[i]), number(wanted.data<double>()[i])));
    }
    void add(std::size_t slot, GradFault fault, std::string text) {
        list_.push_back({slot, fault, std::move(text)});
    }
    std::vector<Breach> take() { return std::move(list_); }

  private:
    const Problem& problem_;
    std::vector<Breach> list_;
};

/// Leaves infinities in the blocks that the pool hands out next.
void poison_pool(const Problem& problem) {
    std::vector<Tensor> poison;
    const auto add = [&](std::int64_t elements) {
        for (int i = 0; i < 4; ++i) {
            poison.push_back(full({elements}, std::numeric_limits<double>::infinity(), f64));
        }
    };
    for (std::int64_t elements = 1; elements <= 4096; elements *= 2) add(elements);
    for (const Slot& slot : problem.slots()) add(slot.value.numel());
    for (const Shape& shape : problem.shapes()) add(shape.numel());
}

/// What the terms of a gradient may come to: the results over the slot's natural step.
double size_of_terms(const Recorded& run, const Slot& slot) {
    double results = 0;
    for (const Variable& y : run.results) results += largest_of(y.value());
    double step = 0;
    for (const double each : slot.scale) step = std::max(step, each);
    return step > 0 ? results / step : 0;
}

/// One graph with v - 2 w, and a graph of two calls on the same leaves, one with v, one with w.
void check_sums(Problem& problem, const Recorded& run, const Cotangent& v, const Cotangent& w,
                std::span<const Gradients> gradients, Breaches& breaches) {
    Cotangent mixed = v;
    for (std::size_t i = 0; i < mixed.weights.size(); ++i) mixed.weights[i] -= 2 * w.weights[i];
    Cotangent both = v;
    both.weights.insert(both.weights.end(), w.weights.begin(), w.weights.end());
    const std::vector<Variable> of_v = sweep(problem, run, v, {.retain_graph = true});
    const std::vector<Variable> of_w = sweep(problem, run, w, {.retain_graph = true});
    const std::vector<Variable> of_mixed = sweep(problem, run, mixed, {.retain_graph = true});
    const std::vector<Variable> of_both =
        sweep(problem, problem.record_again(run), both, {.retain_graph = true});
    for (std::size_t s = 0; s < of_v.size(); ++s) {
        const Slot& slot = problem.slots()[s];
        const Tensor a = or_zeros(of_v[s], slot);
        const Tensor b = or_zeros(of_w[s], slot);
        // What is not linear is off by as much as the gradients are; all else is for gradients
        // that are nothing but the rounding of their terms.
        const double allowed =
            1e-3 * std::max(largest_of(a), largest_of(b)) + 1e-13 * size_of_terms(run, slot) +
            16 * std::max(largest_of(gradients[s].noise[0]), largest_of(gradients[s].noise[1]));
        breaches.expect(s, GradFault::not_linear, "cotangents v, w and v - 2 w do not add up",
                        or_zeros(of_mixed[s], slot), a - scale(b, 2), allowed);
        breaches.expect(s, GradFault::accumulation,
                        "used by two calls in one graph, it did not get the sum of both gradients",
                        or_zeros(of_both[s], slot), a + b, allowed);
    }
}

/// Puts the gradients of unlisted leaves back, which backward() adds to.
class KeptGradients {
  public:
    explicit KeptGradients(const Recorded& run) {
        for (const detail::NodePtr& node : other_leaves(run)) {
            kept_.emplace_back(node, node->extra ? node->extra->grad : Tensor());
        }
    }
    ~KeptGradients() {
        for (const auto& [node, gradient] : kept_) {
            if (node->extra) node->extra->grad = gradient;
        }
    }
    KeptGradients(const KeptGradients&) = delete;
    KeptGradients& operator=(const KeptGradients&) = delete;

  private:
    std::vector<std::pair<detail::NodePtr, Tensor>> kept_;
};

/// backward() into leaves, against the gradients of grad().
void check_accumulation(const Problem& problem, const Recorded& run, const Cotangent& cotangent,
                        const std::vector<Variable>& wanted, Breaches& breaches) {
    const Variable& y = run.results.front();
    if (run.results.size() != 1 || !y.requires_grad()) return;
    const KeptGradients kept(run);
    for (Variable leaf : run.leaves) {
        leaf.set_grad(full(leaf.shape(), std::numeric_limits<double>::infinity(), f64));
        leaf.zero_grad();
    }
    const Tensor gradient = from_values(cotangent.weights, y.shape(), f64);
    poison_pool(problem);
    backward(y, {.gradient = gradient, .retain_graph = true});
    const auto expect = [&](std::string_view what, double times) {
        for (std::size_t s = 0; s < run.leaves.size(); ++s) {
            if (!wanted[s].defined()) continue;
            const Tensor got = run.leaves[s].grad();
            if (!got.defined()) {
                breaches.add(s, GradFault::accumulation, "backward() left no gradient");
            } else {
                breaches.expect(s, GradFault::accumulation, what, got,
                                scale(wanted[s].value(), times));
            }
        }
    };
    expect("backward() into a leaf without gradient did not give the gradient", 1);
    backward(y, {.gradient = gradient, .retain_graph = true});
    expect("a second backward() did not add as much again", 2);
    for (Variable leaf : run.leaves) leaf.zero_grad();
}

void check_types(const Problem& problem, const std::vector<Variable>& gradients) {
    for (std::size_t s = 0; s < gradients.size(); ++s) {
        const Slot& slot = problem.slots()[s];
        if (!gradients[s].defined()) continue;
        const Tensor& gradient = gradients[s].value();
        if (gradient.shape() == slot.value.shape() && gradient.dtype() == f64) continue;
        throw Refusal{
            Verdict::failed, GradFault::wrong_type,
            fmt::format("the gradient of {} {} is {} {}", slot.name, to_string(slot.value.shape()),
                        name(gradient.dtype()), to_string(gradient.shape()))};
    }
}

}  // namespace

std::vector<Breach> check_promises(Problem& problem, const Recorded& run,
                                   std::span<const Cotangent> cotangents,
                                   std::span<const Gradients> gradients) {
    Breaches breaches(problem);
    if (cotangents.empty()) return {};
    const Cotangent& v = cotangents.front();
    const std::vector<Variable> first = sweep(problem, run, v, {.retain_graph = true});
    check_types(problem, first);
    const std::vector<Variable> second = sweep(problem, run, v, {.retain_graph = true});
    const Recorded anew = problem.record();
    const std::vector<Variable> third = sweep(problem, anew, v, {.retain_graph = true});

    const Cotangent nothing{std::vector<double>(v.weights.size(), 0.0), -1};
    const std::vector<Variable> zero = sweep(problem, run, nothing, {.retain_graph = true});
    for (std::size_t s = 0; s < first.size(); ++s) {
        const Slot& slot = problem.slots()[s];
        const Tensor wanted = or_zeros(first[s], slot);
        breaches.expect(s, GradFault::not_repeatable,
                        "a second pass over one graph gave other bits", or_zeros(second[s], slot),
                        wanted);
        breaches.expect(s, GradFault::not_repeatable, "a pass over a new graph gave other bits",
                        or_zeros(third[s], slot), wanted);
        breaches.expect(s, GradFault::not_linear, "a cotangent of zeros gave a gradient",
                        or_zeros(zero[s], slot), zeros_like(slot.value));
    }
    if (cotangents.size() > 1 && cotangents[1].hot < 0) {
        check_sums(problem, run, v, cotangents[1], gradients, breaches);
    }
    check_accumulation(problem, anew, v, first, breaches);
    return breaches.take();
}

}  // namespace glassgrad::proof
