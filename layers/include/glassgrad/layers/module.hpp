#pragma once
// Module: parameters and submodules under dotted names, and the named points of a computation
// that users ask for, hook and trace.

#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/scope.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {

/// Values of all parameters by dotted name, in the order of registration.
using StateDict = std::vector<std::pair<std::string, Tensor>>;

struct StateOptions {
    bool repeat_tied = true;  ///< a tensor with several names under each of them, else the first
};

struct LoadOptions {
    bool strict = true;  ///< missing and unexpected names are errors
};

/// Called with the value at a named point; returns another to use instead, or an undefined one to
/// leave it.
using PointHook = std::function<Variable(const Variable& value)>;

/// Base of layers and models. A module registers its parts in its constructor and stays where it
/// is: parents point at their children, so modules are neither copied nor moved.
class Module {
  public:
    Module() = default;
    virtual ~Module() = default;
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    /// Parameters of this module and all below, as `blocks.1.attention.W_Q`. A tensor registered
    /// under two names is listed under both.
    std::vector<std::pair<std::string, Variable>> named_parameters() const;
    /// Each parameter once.
    std::vector<Variable> parameters() const;
    /// This module (under the empty name) and all below.
    std::vector<std::pair<std::string, Module*>> named_modules();
    /// The part with a dotted name. Throws ValueError that lists the names there are.
    Variable parameter_at(std::string_view path) const;

    /// Sets this module and all below to training or evaluation.
    void train();
    void eval();
    bool training() const noexcept { return training_; }

    StateDict state_dict(const StateOptions& options = {}) const;
    /// Takes values by name. First checks everything and throws ValueError that lists every
    /// missing, unexpected and misfitting name; then sets, so that a failure changes nothing. A
    /// tensor with several names may come under one of them, or under more with the same values.
    void load_state_dict(const StateDict& state, const LoadOptions& options = {});

    /// Forgets the gradients of all parameters.
    void zero_grad();
    /// Converts all parameters in place to f32 or f64, and forgets their gradients.
    void to(DType dtype);
    /// Freezes or unfreezes all parameters.
    void set_requires_grad(bool wanted);

    /// Names of the points of this module, in the order of computation; none by default.
    virtual std::vector<std::string> point_names() const { return {}; }
    /// Calls `hook` whenever the point is computed. Throws ValueError, with the names there are,
    /// when the module has no such point. Returns a number for `remove_point_hook`.
    std::int64_t hook_point(std::string_view point, PointHook hook);
    void remove_point_hook(std::int64_t number);

  protected:
    /// A new parameter of this module. Throws ValueError on an empty, dotted or used name.
    Variable register_parameter(std::string_view name, Tensor value);
    /// Another name for a parameter that exists (tied weights).
    void register_parameter(std::string_view name, const Variable& shared);
    /// `child` must outlive this module or be a member of it.
    void register_module(std::string_view name, Module& child);
    /// The parts of `inner`, which is made already, as parts of this module, under their own names
    /// and without one for `inner` itself.
    void register_parts_of(Module& inner);

    /// Opens the scope of this module's name; held while its computation runs.
    Scope enter() const { return Scope(name_); }
    /// Whether a hook waits at a point of this module.
    bool hooked() const noexcept { return !hooks_.empty(); }
    /// Gives `value` its name and passes it through the hooks of that point.
    Variable point(std::string_view name, Variable value) const;

  private:
    struct Hook {
        std::int64_t number;
        std::string point;
        PointHook call;
    };
    void require_free(std::string_view name) const;
    void collect(const std::string& prefix,
                 std::vector<std::pair<std::string, Variable>>& out) const;
    void collect(const std::string& prefix, std::vector<std::pair<std::string, Module*>>& out);
    void set_training(bool training);

    std::string name_;
    std::vector<std::pair<std::string, Variable>> parameters_;
    std::vector<std::pair<std::string, Module*>> children_;
    std::vector<Hook> hooks_;
    std::int64_t hook_count_ = 0;
    bool training_ = true;
};

}  // namespace glassgrad
