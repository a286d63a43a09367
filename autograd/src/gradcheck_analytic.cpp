#include "gradcheck_analytic.hpp"

#include <glassgrad/autograd/node.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <utility>

namespace glassgrad::proof {
namespace {

std::vector<double> weights_of(const Cotangent& cotangent, std::int64_t results) {
    if (cotangent.hot < 0) return cotangent.weights;
    std::vector<double> weights(static_cast<std::size_t>(results), 0.0);
    weights[static_cast<std::size_t>(cotangent.hot)] = 1;
    return weights;
}

}  // namespace

std::vector<Cotangent> make_cotangents(std::int64_t results, const GradcheckOptions& options) {
    std::vector<Cotangent> list;
    if (results == 0) return {Cotangent()};
    Draw draw(options.seed);
    for (int k = 0; k < std::max(options.cotangents, 1); ++k) {
        Cotangent each;
        for (std::int64_t i = 0; i < results; ++i) each.weights.push_back(draw.weight());
        list.push_back(std::move(each));
    }
    const bool all = results <= options.full_results;
    const std::int64_t count = all ? results : std::min<std::int64_t>(options.samples, results);
    for (std::int64_t i = 0; i < count; ++i) list.push_back({{}, all ? i : draw.below(results)});
    return list;
}

std::vector<Variable> sweep(const Problem& problem, const Recorded& run, const Cotangent& cotangent,
                            GradOptions options) {
    const std::vector<double> weights = weights_of(cotangent, problem.total());
    std::vector<Variable> outputs;
    std::size_t begin = 0;
    options.grad_outputs.clear();
    for (const Variable& y : run.results) {
        const auto count = static_cast<std::size_t>(y.numel());
        if (y.requires_grad()) {
            outputs.push_back(y);
            options.grad_outputs.emplace_back(
                from_values(std::span(weights).subspan(begin, count), y.shape(), f64));
        }
        begin += count;
    }
    if (outputs.empty()) return std::vector<Variable>(run.leaves.size());
    options.allow_unused = true;
    try {
        return grad(outputs, run.leaves, options);
    } catch (const std::exception& error) {
        throw Refusal{Verdict::failed, GradFault::threw,
                      fmt::format("the backward pass threw: {}", error.what())};
    }
}

namespace {

/// All slots' values with each number off by a few units in the last place; zeros stay.
std::vector<Tensor> rounded_otherwise(const Problem& problem, Draw& draw) {
    std::vector<Tensor> values;
    for (const Slot& slot : problem.slots()) {
        Tensor value = slot.value.clone();
        auto* out = value.mutable_data<double>();
        for (std::int64_t i = 0; i < value.numel(); ++i) out[i] *= 1 + draw.weight() * 0x1p-51;
        values.push_back(std::move(value));
    }
    return values;
}

void add_noise(const Problem& problem, const Recorded& moved, std::span<const Cotangent> cotangents,
               std::vector<Gradients>& gradients) {
    for (std::size_t k = 0; k < cotangents.size(); ++k) {
        const std::vector<Variable> found =
            sweep(problem, moved, cotangents[k], {.retain_graph = true});
        for (std::size_t s = 0; s < found.size(); ++s) {
            if (!found[s].defined()) continue;
            const auto* other = found[s].value().data<double>();
            const auto* row = gradients[s].rows[k].data<double>();
            auto* noise = gradients[s].noise[k].mutable_data<double>();
            for (std::int64_t i = 0; i < gradients[s].rows[k].numel(); ++i) {
                const double difference = std::abs(other[i] - row[i]);
                if (std::isfinite(difference)) noise[i] = std::max(noise[i], difference);
            }
        }
    }
}

}  // namespace

std::vector<Gradients> analytic_gradients(Problem& problem, const Recorded& run,
                                          std::span<const Cotangent> cotangents) {
    std::vector<Gradients> gradients(problem.slots().size());
    for (const Cotangent& cotangent : cotangents) {
        const std::vector<Variable> found = sweep(problem, run, cotangent, {.retain_graph = true});
        for (std::size_t s = 0; s < found.size(); ++s) {
            const Tensor zero = zeros_like(problem.slots()[s].value);
            gradients[s].rows.push_back(found[s].defined() ? found[s].value() : zero);
            gradients[s].noise.push_back(zero);
        }
    }
    Draw draw(17);
    for (int repeat = 0; repeat < 4; ++repeat) {
        add_noise(problem, problem.record(rounded_otherwise(problem, draw)), cotangents, gradients);
    }
    return gradients;
}

std::vector<detail::NodePtr> other_leaves(const Recorded& run) {
    std::unordered_set<const detail::Node*> seen;
    std::vector<detail::NodePtr> waiting, found;
    for (const Variable& leaf : run.leaves) seen.insert(leaf.node().get());
    const auto visit = [&](const detail::NodePtr& node) {
        if (node && seen.insert(node.get()).second) waiting.push_back(node);
    };
    for (const Variable& y : run.results) visit(y.node());
    while (!waiting.empty()) {
        const detail::NodePtr node = std::move(waiting.back());
        waiting.pop_back();
        if (node->is_leaf) found.push_back(node);
        for (const detail::NodePtr& input : node->inputs()) visit(input);
    }
    return found;
}

}  // namespace glassgrad::proof
