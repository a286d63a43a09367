#include <glassgrad/layers/module.hpp>
#include <glassgrad/tensor/detail/same_bits.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
    return prefix.empty() ? name : prefix + '.' + name;
}

template <class Names>
std::string list(const Names& names) {
    return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

bool holds(const std::vector<Variable>& variables, const Variable& x) {
    return std::any_of(variables.begin(), variables.end(),
                       [&](const Variable& each) { return each.same_as(x); });
}

}  // namespace

void Module::require_free(std::string_view name) const {
    if (name.empty() || name.find('.') != std::string_view::npos) {
        throw ValueError(
            fmt::format("register: '{}' is not a name: it is empty or has a dot", name));
    }
    const auto same = [&](const auto& entry) { return entry.first == name; };
    if (std::any_of(parameters_.begin(), parameters_.end(), same) ||
        std::any_of(children_.begin(), children_.end(), same)) {
        throw ValueError(fmt::format("register: the name '{}' is taken in this module", name));
    }
}

Variable Module::register_parameter(std::string_view name, Tensor value) {
    require_free(name);
    Variable fresh = parameter(std::move(value), name);
    parameters_.emplace_back(name, fresh);
    return fresh;
}

void Module::register_parameter(std::string_view name, const Variable& shared) {
    require_free(name);
    if (!shared.defined()) {
        throw ValueError(fmt::format("register: the parameter '{}' is undefined", name));
    }
    parameters_.emplace_back(name, shared);
}

void Module::register_module(std::string_view name, Module& child) {
    require_free(name);
    children_.emplace_back(name, &child);
    child.name_ = name;
}

void Module::register_parts_of(Module& inner) {
    for (const auto& [name, value] : inner.parameters_) register_parameter(name, value);
    for (const auto& [name, child] : inner.children_) register_module(name, *child);
}

void Module::collect(const std::string& prefix,
                     std::vector<std::pair<std::string, Variable>>& out) const {
    for (const auto& [name, value] : parameters_) out.emplace_back(join(prefix, name), value);
    for (const auto& [name, child] : children_) child->collect(join(prefix, name), out);
}

void Module::collect(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out) {
    out.emplace_back(prefix, this);
    for (const auto& [name, child] : children_) child->collect(join(prefix, name), out);
}

std::vector<std::pair<std::string, Variable>> Module::named_parameters() const {
    std::vector<std::pair<std::string, Variable>> all;
    collect("", all);
    return all;
}

std::vector<Variable> Module::parameters() const {
    std::vector<Variable> unique;
    for (const auto& [name, value] : named_parameters()) {
        if (!holds(unique, value)) unique.push_back(value);
    }
    return unique;
}

std::vector<std::pair<std::string, Module*>> Module::named_modules() {
    std::vector<std::pair<std::string, Module*>> all;
    collect("", all);
    return all;
}

Variable Module::parameter_at(std::string_view path) const {
    std::vector<std::string> names;
    for (const auto& [name, value] : named_parameters()) {
        if (name == path) return value;
        names.push_back(name);
    }
    throw ValueError(fmt::format("parameter_at: there is no parameter '{}'", path),
                     "there are: " + list(names));
}

void Module::set_training(bool training) {
    for (const auto& [name, module] : named_modules()) module->training_ = training;
}
void Module::train() { set_training(true); }
void Module::eval() { set_training(false); }

StateDict Module::state_dict(const StateOptions& options) const {
    StateDict state;
    std::vector<Variable> seen;
    for (const auto& [name, value] : named_parameters()) {
        if (!options.repeat_tied) {
            if (holds(seen, value)) continue;
            seen.push_back(value);
        }
        state.emplace_back(name, value.value());
    }
    return state;
}

void Module::load_state_dict(const StateDict& state, const LoadOptions& options) {
    struct Update {
        Variable target;
        Tensor value;
        std::string name;
    };
    const auto targets = named_parameters();
    std::vector<std::string> problems;
    std::vector<std::pair<std::string, Variable>> missing;
    std::vector<Update> updates;
    for (const auto& [name, target] : targets) {
        const auto same = [&wanted = name](const auto& entry) { return entry.first == wanted; };
        const auto found = std::find_if(state.begin(), state.end(), same);
        if (found == state.end()) {
            missing.emplace_back(name, target);
            continue;
        }
        const Tensor& value = found->second;
        const auto tied = std::find_if(
            updates.begin(), updates.end(),
            [&each = target](const Update& update) { return update.target.same_as(each); });
        if (!value.defined()) {
            problems.push_back(name + " is undefined");
        } else if (value.shape() != target.shape() || value.dtype() != target.dtype()) {
            problems.push_back(fmt::format("{} is {} {}, the module has {} {}", name,
                                           glassgrad::name(value.dtype()), to_string(value.shape()),
                                           glassgrad::name(target.dtype()),
                                           to_string(target.shape())));
        } else if (tied == updates.end()) {
            updates.push_back({target, value, name});
        } else if (!detail::same_bits(tied->value, value)) {
            problems.push_back(fmt::format("{} and {} are one tensor here, but have two values",
                                           tied->name, name));
        }
    }
    for (const auto& [name, target] : missing) {
        const auto same = [&each = target](const Update& update) {
            return update.target.same_as(each);
        };
        if (options.strict && std::none_of(updates.begin(), updates.end(), same)) {
            problems.push_back("missing " + name);
        }
    }
    for (std::size_t i = 0; i < state.size(); ++i) {
        const std::string& name = state[i].first;
        const auto same = [&](const auto& entry) { return entry.first == name; };
        if (options.strict && std::none_of(targets.begin(), targets.end(), same)) {
            problems.push_back("unexpected " + name);
        }
        if (std::any_of(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(i), same)) {
            problems.push_back("repeated " + name);
        }
    }
    if (!problems.empty()) {
        throw ValueError(fmt::format("load_state_dict: {}", fmt::join(problems, "; ")),
                         "nothing was loaded");
    }
    for (Update& update : updates) update.target.set_value(update.value);
}

void Module::zero_grad() {
    for (Variable& each : parameters()) each.zero_grad();
}

void Module::to(DType dtype) {
    if (!is_floating(dtype)) {
        throw TypeError(
            fmt::format("to: parameters are f32 or f64, not {}", glassgrad::name(dtype)));
    }
    for (Variable& each : parameters()) {
        if (each.dtype() == dtype) continue;
        const bool wanted = each.requires_grad();
        // A leaf of another type has another node; graphs made before keep the old one.
        each.set_requires_grad(false);
        each.mutable_value() = each.value().astype(dtype);
        each.set_requires_grad(wanted);
    }
}

void Module::set_requires_grad(bool wanted) {
    for (Variable& each : parameters()) each.set_requires_grad(wanted);
}

std::int64_t Module::hook_point(std::string_view point, PointHook hook) {
    const std::vector<std::string> names = point_names();
    if (std::find(names.begin(), names.end(), point) == names.end()) {
        throw ValueError(fmt::format("hook_point: there is no point '{}'", point),
                         "there are: " + list(names));
    }
    if (!hook) throw ValueError(fmt::format("hook_point: the hook of '{}' is empty", point));
    hooks_.push_back({++hook_count_, std::string(point), std::move(hook)});
    return hook_count_;
}

void Module::remove_point_hook(std::int64_t number) {
    std::erase_if(hooks_, [&](const Hook& hook) { return hook.number == number; });
}

Variable Module::point(std::string_view name, Variable value) const {
    value.set_name(name);
    if (hooks_.empty()) return value;
    const std::vector<Hook> hooks = hooks_;  // a hook may remove itself
    for (const Hook& hook : hooks) {
        if (hook.point != name) continue;
        Variable replacement = hook.call(value);
        if (!replacement.defined()) continue;
        if (replacement.shape() != value.shape() || replacement.dtype() != value.dtype()) {
            throw ShapeError(fmt::format("hook of '{}': returned {} {}, the point is {} {}", name,
                                         glassgrad::name(replacement.dtype()),
                                         to_string(replacement.shape()),
                                         glassgrad::name(value.dtype()), to_string(value.shape())));
        }
        value = std::move(replacement);
    }
    return value;
}

}  // namespace glassgrad
