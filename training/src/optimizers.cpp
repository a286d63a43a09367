#include <glassgrad/layers/embedding.hpp>
#include <glassgrad/tensor/detail/updates.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/optimizers.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace glassgrad {
namespace {

/// All parameters of a model in one group.
std::vector<ParameterGroup> all_of(const Module& model, double weight_decay) {
    std::vector<ParameterGroup> groups = decay_matrices(model, weight_decay);
    if (groups.size() < 2) {
        for (ParameterGroup& group : groups) group.weight_decay = weight_decay;
        return groups;
    }
    // In the order of the model.
    ParameterGroup all{.parameters = {}, .weight_decay = weight_decay};
    std::vector<std::pair<std::string, Variable>> named = model.named_parameters();
    for (const auto& entry : named) {
        for (const ParameterGroup& group : groups) {
            const auto same = [&](const auto& each) { return each.first == entry.first; };
            if (std::any_of(group.parameters.begin(), group.parameters.end(), same)) {
                all.parameters.push_back(entry);
            }
        }
    }
    return {all};
}

void require_share(std::string_view op, std::string_view what, double value) {
    if (value >= 0 && value < 1) return;
    throw ValueError(fmt::format("{}: {} {} is outside 0 to 1", op, what, value));
}

SgdOptions checked(const SgdOptions& options) {
    require_share("sgd", "momentum", options.momentum);
    if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
        throw ValueError("sgd: Nesterov's form needs a momentum and no dampening");
    }
    return options;
}

AdamOptions checked(std::string_view op, const AdamOptions& options) {
    require_share(op, "beta1", options.beta1);
    require_share(op, "beta2", options.beta2);
    if (!(options.eps >= 0)) {
        throw ValueError(fmt::format("{}: eps {} must not be negative", op, options.eps));
    }
    return options;
}

LionOptions checked(const LionOptions& options) {
    require_share("lion", "beta1", options.beta1);
    require_share("lion", "beta2", options.beta2);
    return options;
}

std::vector<std::string> momentum_names(const SgdOptions& options) {
    if (options.momentum == 0) return {};
    return {"momentum_buffer"};
}

}  // namespace

SGD::SGD(const Module& model, const SgdOptions& options)
    : SGD(all_of(model, options.weight_decay), options) {}
SGD::SGD(std::vector<ParameterGroup> groups, const SgdOptions& options)
    : Optimizer("sgd", std::move(groups), options.lr, momentum_names(options)),
      options_(checked(options)) {}

void SGD::update(Slot& slot, const Step& step) {
    Tensor none;
    detail::sgd_update(*slot.value, step.gradient, slot.state.empty() ? none : slot.state[0],
                       {.grad_scale = step.grad_scale,
                        .lr = step.lr,
                        .momentum = options_.momentum,
                        .dampening = options_.dampening,
                        .weight_decay = step.weight_decay,
                        .nesterov = options_.nesterov,
                        .first = slot.updates == 1});
}

Adam::Adam(const Module& model, const AdamOptions& options)
    : Adam(all_of(model, options.weight_decay), options) {}
Adam::Adam(std::vector<ParameterGroup> groups, const AdamOptions& options)
    : Adam("adam", std::move(groups), options, false) {}
Adam::Adam(std::string op, std::vector<ParameterGroup> groups, const AdamOptions& options,
           bool decoupled)
    : Optimizer(std::move(op), std::move(groups), options.lr, {"exp_avg", "exp_avg_sq"}),
      options_(checked(op_, options)),
      decoupled_(decoupled) {}

void Adam::update(Slot& slot, const Step& step) {
    if (slot.updates != corrected_) {
        // For a large n these are 1, and for a small one they are computed without loss.
        const auto n = static_cast<double>(slot.updates);
        correction1_ = -std::expm1(n * std::log(options_.beta1));
        correction2_ = -std::expm1(n * std::log(options_.beta2));
        corrected_ = slot.updates;
    }
    detail::adam_update(*slot.value, step.gradient, slot.state[0], slot.state[1],
                        {.grad_scale = step.grad_scale,
                         .lr = step.lr,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .eps = options_.eps,
                         .weight_decay = step.weight_decay,
                         .decoupled = decoupled_,
                         .correction1 = correction1_,
                         .correction2 = correction2_});
}

AdamW::AdamW(const Module& model, const AdamOptions& options)
    : AdamW(all_of(model, options.weight_decay), options) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamOptions& options)
    : Adam("adamw", std::move(groups), options, true) {}

Lion::Lion(const Module& model, const LionOptions& options)
    : Lion(all_of(model, options.weight_decay), options) {}
Lion::Lion(std::vector<ParameterGroup> groups, const LionOptions& options)
    : Optimizer("lion", std::move(groups), options.lr, {"exp_avg"}), options_(checked(options)) {}

void Lion::update(Slot& slot, const Step& step) {
    detail::lion_update(*slot.value, step.gradient, slot.state[0],
                        {.grad_scale = step.grad_scale,
                         .lr = step.lr,
                         .beta1 = options_.beta1,
                         .beta2 = options_.beta2,
                         .weight_decay = step.weight_decay});
}

Muon::Muon(std::vector<ParameterGroup> groups, const MuonOptions& options)
    : Optimizer("muon", std::move(groups), options.lr, {"momentum_buffer"}), options_(options) {
    require_share("muon", "momentum", options.momentum);
    if (options.iterations < 1) {
        throw ValueError(fmt::format("muon: {} iterations, there must be one", options.iterations));
    }
}

void Muon::check(const Slot& slot) const {
    if (slot.parameter.rank() == 2) return;
    throw ShapeError(
        fmt::format("muon: '{}' {} is not a matrix", slot.name, to_string(slot.parameter.shape())),
        "give vectors to AdamW");
}

Tensor Muon::orthogonal(const Tensor& matrix, std::int64_t iterations) {
    // Jordan's quintic: steep at 0, within 0.7 to 1.2 where singular values end.
    constexpr double a = 3.4445;
    constexpr double b = -4.7750;
    constexpr double c = 2.0315;
    const bool tall = matrix.shape()[0] > matrix.shape()[1];
    const double size = norm(matrix).item();
    Tensor x = scale(tall ? transpose(matrix) : matrix, 1 / (size + 1e-7));
    for (std::int64_t i = 0; i < iterations; ++i) {
        const Tensor gram = matmul(x, x, {.transpose_b = true});
        const Tensor bend = scale(gram, b) + scale(matmul(gram, gram), c);
        x = scale(x, a) + matmul(bend, x);
    }
    return tall ? transpose(x) : x;
}

Tensor Muon::direction(const Slot& slot, const Tensor& gradient, double grad_scale) const {
    const double rest = (1 - options_.momentum) * grad_scale;
    Tensor mean = scale(gradient, rest);
    if (slot.updates > 0) mean = scale(slot.state[0], options_.momentum) + mean;
    if (options_.nesterov) mean = scale(gradient, rest) + scale(mean, options_.momentum);
    return orthogonal(mean, options_.iterations);
}

void Muon::update(Slot& slot, const Step& step) {
    const Shape& shape = slot.parameter.shape();
    const double ratio = static_cast<double>(shape[0]) / static_cast<double>(shape[1]);
    detail::blend(slot.state[0], options_.momentum, step.gradient,
                  (1 - options_.momentum) * step.grad_scale);
    detail::blend(*slot.value, 1 - step.lr * step.weight_decay, step.direction,
                  -step.lr * std::sqrt(std::max(1.0, ratio)));
}

MuonGroups muon_groups(Module& model, double weight_decay) {
    std::vector<Variable> apart;
    for (const auto& [name, module] : model.named_modules()) {
        if (const auto* embedding = dynamic_cast<const Embedding*>(module)) {
            apart.push_back(embedding->weight);
        } else if (name == "head" || name.ends_with(".head")) {
            for (const Variable& each : module->parameters()) apart.push_back(each);
        }
    }
    MuonGroups split;
    for (ParameterGroup& group : decay_matrices(model, weight_decay)) {
        ParameterGroup matrices{.parameters = {}, .weight_decay = group.weight_decay};
        std::erase_if(group.parameters, [&](const auto& each) {
            const auto same = [&](const Variable& x) { return x.same_as(each.second); };
            if (each.second.rank() != 2 || std::any_of(apart.begin(), apart.end(), same)) {
                return false;
            }
            matrices.parameters.push_back(each);
            return true;
        });
        if (!matrices.parameters.empty()) split.matrices.push_back(std::move(matrices));
        if (!group.parameters.empty()) split.rest.push_back(std::move(group));
    }
    return split;
}

}  // namespace glassgrad
