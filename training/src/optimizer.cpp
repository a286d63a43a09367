#include <glassgrad/autograd/node.hpp>
#include <glassgrad/tensor/detail/updates.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>
#include <glassgrad/training/optimizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace glassgrad {
namespace {

void require_size(std::string_view op, std::string_view what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw ValueError(fmt::format("{}: {} {} must be finite and not negative", op, what, value));
}

}  // namespace

std::vector<ParameterGroup> decay_matrices(const Module& model, double weight_decay) {
    std::vector<ParameterGroup> groups(2);
    groups[0].weight_decay = weight_decay;
    std::vector<Variable> seen;
    for (const auto& [name, value] : model.named_parameters()) {
        const auto same = [&each = value](const Variable& x) { return x.same_as(each); };
        if (!value.requires_grad() || std::any_of(seen.begin(), seen.end(), same)) continue;
        seen.push_back(value);
        groups[value.rank() >= 2 ? 0 : 1].parameters.emplace_back(name, value);
    }
    std::erase_if(groups, [](const ParameterGroup& group) { return group.parameters.empty(); });
    return groups;
}

Optimizer::Optimizer(std::string op, std::vector<ParameterGroup> groups, double lr,
                     std::vector<std::string> state_names)
    : op_(std::move(op)),
      groups_(std::move(groups)),
      state_names_(std::move(state_names)),
      lr_(lr) {
    require_size(op_, "lr", lr);
    std::set<std::string> names;
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        require_size(op_, "weight_decay", groups_[g].weight_decay);
        require_size(op_, "lr_scale", groups_[g].lr_scale);
        for (const auto& [name, value] : groups_[g].parameters) {
            const auto same = [&each = value](const Slot& slot) {
                return slot.parameter.same_as(each);
            };
            if (!names.insert(name).second || std::any_of(slots_.begin(), slots_.end(), same)) {
                throw ValueError(fmt::format("{}: the parameter '{}' is listed twice", op_, name));
            }
            if (!value.defined() || !value.requires_grad() || !value.is_leaf()) {
                throw GraphError(
                    fmt::format("{}: '{}' is no parameter that wants a gradient", op_, name));
            }
            slots_.push_back({name, value, g, 0, std::vector<Tensor>(state_names_.size())});
        }
    }
    if (slots_.empty()) {
        throw ValueError(fmt::format("{}: there are no parameters to update", op_),
                         "frozen ones are left out");
    }
}

void Optimizer::set_lr(double lr) {
    require_size(op_, "lr", lr);
    lr_ = lr;
}

void Optimizer::zero_grad() {
    for (Slot& slot : slots_) slot.parameter.zero_grad();
}

void Optimizer::step(const StepOptions& options) {
    require_size(op_, "grad_scale", options.grad_scale);
    const auto for_each = [&](const auto& f) {
        for (Slot& slot : slots_) {
            if (const Tensor* gradient = detail::gradient_of(slot.parameter)) f(slot, *gradient);
        }
    };
    for_each([&](Slot& slot, const Tensor& gradient) {
        check(slot);
        for (Tensor& state : slot.state) {
            if (!state.defined()) state = zeros(gradient.shape(), gradient.dtype());
        }
        Tensor found = direction(slot, gradient, options.grad_scale);
        if (found.defined() || slot.direction.defined()) slot.direction = std::move(found);
    });
    // What others hold is copied here, so that no write has to.
    for_each([](Slot& slot, const Tensor&) {
        slot.value = &slot.parameter.mutable_value();
        detail::own(*slot.value);
        for (Tensor& state : slot.state) detail::own(state);
    });
    for_each([&](Slot& slot, const Tensor& gradient) {
        ++slot.updates;
        const ParameterGroup& group = groups_[slot.group];
        update(slot, {.gradient = gradient,
                      .grad_scale = options.grad_scale,
                      .direction = slot.direction,
                      .lr = lr_ * group.lr_scale,
                      .weight_decay = group.weight_decay});
        if (slot.direction.defined()) slot.direction = Tensor();
    });
    ++steps_;
}

StateDict Optimizer::state_dict() const {
    StateDict state;
    state.emplace_back("steps", full({}, static_cast<double>(steps_), i64));
    for (const Slot& slot : slots_) {
        state.emplace_back("updates." + slot.name,
                           full({}, static_cast<double>(slot.updates), i64));
        if (slot.updates == 0) continue;
        for (std::size_t i = 0; i < state_names_.size(); ++i) {
            if (!slot.state[i].defined()) continue;
            state.emplace_back(state_names_[i] + '.' + slot.name, slot.state[i]);
        }
    }
    return state;
}

void Optimizer::load_state_dict(const StateDict& state) {
    std::vector<std::string> problems;
    std::set<std::string> used;
    const auto take = [&](const std::string& name, const Shape& shape, DType dtype) {
        const auto found = std::find_if(state.begin(), state.end(),
                                        [&](const auto& entry) { return entry.first == name; });
        if (found == state.end()) {
            problems.push_back("missing " + name);
            return Tensor();
        }
        used.insert(name);
        const Tensor& value = found->second;
        if (!value.defined() || value.shape() != shape || value.dtype() != dtype) {
            problems.push_back(fmt::format(
                "{} is {}, not {} {}", name,
                value.defined()
                    ? fmt::format("{} {}", glassgrad::name(value.dtype()), to_string(value.shape()))
                    : "undefined",
                glassgrad::name(dtype), to_string(shape)));
            return Tensor();
        }
        return value;
    };
    const auto count = [&](const std::string& name) {
        const Tensor value = take(name, {}, i64);
        const std::int64_t n = value.defined() ? value.values<std::int64_t>()[0] : 0;
        if (n < 0) problems.push_back(fmt::format("{} is {}", name, n));
        return n;
    };
    std::vector<Slot> loaded = slots_;
    const std::int64_t steps = count("steps");
    for (Slot& slot : loaded) {
        slot.updates = count("updates." + slot.name);
        for (std::size_t i = 0; i < state_names_.size(); ++i) {
            slot.state[i] = slot.updates > 0 ? take(state_names_[i] + '.' + slot.name,
                                                    slot.parameter.shape(), slot.parameter.dtype())
                                             : Tensor();
        }
    }
    for (const auto& [name, value] : state) {
        if (!used.contains(name)) problems.push_back("unexpected " + name);
    }
    if (!problems.empty()) {
        throw ValueError(fmt::format("{}: load_state_dict: {}", op_, fmt::join(problems, "; ")),
                         "nothing was loaded");
    }
    slots_ = std::move(loaded);
    steps_ = steps;
}

}  // namespace glassgrad
