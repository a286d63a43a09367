#include <glassgrad/autograd/gradcheck.hpp>

#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "gradcheck_report.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

namespace glassgrad {
namespace {

using proof::Problem;
using proof::Recorded;
using proof::Refusal;

GradcheckReport run_check(std::string_view op, Problem& problem, const GradcheckOptions& options,
                          bool second) {
    const Recorded run = problem.record();
    std::vector<Tensor> values;
    for (const proof::Slot& slot : problem.slots()) values.push_back(slot.value);
    const std::vector<double> base = problem.evaluate(values);
    proof::check_function(problem, run, base, second);

    const std::vector<proof::Cotangent> cotangents =
        proof::make_cotangents(problem.total(), options);
    const std::vector<proof::Gradients> gradients =
        proof::analytic_gradients(problem, run, cotangents);
    const std::vector<proof::Breach> breaches =
        proof::check_promises(problem, run, cotangents, gradients);
    const std::vector<double> noise = proof::measure_noise(problem, base);

    const proof::Setting setting{problem, options, cotangents, base, noise};
    std::vector<proof::Table> tables;
    for (std::size_t s = 0; s < problem.slots().size(); ++s) {
        tables.push_back(proof::compare(setting, s, gradients[s]));
    }
    GradcheckReport report = proof::report_on(op, setting, tables, breaches, second);
    for (const detail::NodePtr& node : proof::other_leaves(run)) {
        report.unchecked.push_back(
            fmt::format("a parameter of shape {} that the function reads; list it in .parameters",
                        to_string(node->shape())));
    }
    proof::write_text(op, report);
    return report;
}

proof::Function single(const CheckedFunction& f) {
    return [f](std::span<const Variable> inputs) { return std::vector<Variable>{f(inputs)}; };
}

/// x..., v -> the gradients of vᵀ f(x...), of the floating inputs and the parameters.
proof::Function derivative_of(const CheckedFunction& f, std::vector<Variable> parameters) {
    std::erase_if(parameters, [](const Variable& p) { return !p.requires_grad(); });
    return [f, parameters = std::move(parameters)](std::span<const Variable> given) {
        const bool record = grad_enabled();
        const GradMode mode(true);
        std::vector<Variable> inputs(given.begin(), given.end() - 1);
        std::vector<Variable> wanted;
        for (Variable& x : inputs) {
            if (!is_floating(x.dtype())) continue;
            if (!x.requires_grad()) x = parameter(x.value(), x.name());
            wanted.push_back(x);
        }
        wanted.insert(wanted.end(), parameters.begin(), parameters.end());
        const Variable y = f(inputs);
        std::vector<Variable> gradients(wanted.size());
        if (y.requires_grad()) {
            try {
                gradients = grad(
                    {y}, wanted,
                    {.grad_outputs = {given.back()}, .create_graph = record, .allow_unused = true});
            } catch (const std::exception& error) {
                throw Refusal{Verdict::failed, GradFault::threw,
                              fmt::format("the first backward pass threw: {}", error.what())};
            }
        }
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            if (!gradients[i].defined()) gradients[i] = Variable(zeros_like(wanted[i].value()));
        }
        return gradients;
    };
}

}  // namespace

GradcheckReport gradcheck(const CheckedFunction& f, const std::vector<Variable>& inputs,
                          const GradcheckOptions& options) {
    Problem problem("gradcheck", single(f), inputs, options.parameters);
    try {
        return run_check("gradcheck", problem, options, false);
    } catch (const Refusal& refusal) {
        return proof::report_on("gradcheck", refusal);
    }
}

GradcheckReport gradgradcheck(const CheckedFunction& f, const std::vector<Variable>& inputs,
                              const GradcheckOptions& options) {
    try {
        Shape shape;
        {
            Problem first("gradgradcheck", single(f), inputs, options.parameters);
            first.record();
            shape = first.shapes().front();
        }
        proof::Draw draw(options.seed + 104729);
        std::vector<double> weights;
        for (std::int64_t i = 0; i < shape.numel(); ++i) weights.push_back(draw.weight());
        std::vector<Variable> all = inputs;
        all.emplace_back(from_values(weights, shape, f64));
        all.back().set_name("cotangent");
        Problem problem("gradgradcheck", derivative_of(f, options.parameters), all,
                        options.parameters);
        return run_check("gradgradcheck", problem, options, true);
    } catch (const Refusal& refusal) {
        return proof::report_on("gradgradcheck", refusal);
    }
}

}  // namespace glassgrad
