#pragma once
// Variable: a tensor together with where it came from. Handles are cheap and share one state, so
// an optimizer's update is seen by every holder of a parameter.

#include <glassgrad/tensor/tensor.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

namespace glassgrad {

class Variable;

namespace detail {

struct Node;
void dispose(Node* node) noexcept;
using NodePtr = Counted<Node>;

struct VariableState {
    VariableState(Tensor&& tensor, NodePtr&& origin, std::int64_t number);
    ~VariableState();

    Counter references{1};
    std::int64_t id;
    Tensor value;
    NodePtr node;  ///< null when no gradient is wanted
    std::string name;
    bool frozen = false;  ///< a leaf as a graph keeps it: nobody may write to it
    /// The frozen copy of a leaf, while its value stays as it is; owned.
    std::atomic<VariableState*> kept{nullptr};
};
void dispose(VariableState* state) noexcept;

/// Numbers that grow with creation: a result always has a larger one than its inputs.
std::int64_t next_id() noexcept;

}  // namespace detail

/// Called with the whole gradient of a Variable; returns another to replace it, or an undefined
/// one to leave it.
using GradientHook = std::function<Variable(const Variable& gradient)>;

class Variable {
  public:
    /// Undefined.
    Variable() noexcept = default;
    /// A constant: no gradient is computed for it.
    Variable(Tensor value);
    /// Takes the state of a record made by `record`.
    Variable(Tensor&& value, detail::NodePtr node, std::int64_t id);

    bool defined() const noexcept { return static_cast<bool>(state_); }
    /// Throws ValueError when undefined, as do the accessors below.
    const Tensor& value() const { return state().value; }
    const Shape& shape() const { return value().shape(); }
    DType dtype() const { return value().dtype(); }
    int rank() const { return value().rank(); }
    std::int64_t numel() const { return value().numel(); }
    std::int64_t size(std::int64_t axis) const { return value().size(axis); }
    double item() const { return value().item(); }

    bool requires_grad() const noexcept { return state_ && state_->node; }
    /// True for constants and parameters: not the result of a recorded op.
    bool is_leaf() const noexcept;
    /// Name of the op that made it; empty for a leaf.
    std::string_view op() const noexcept;
    /// Grows with creation; stays with the value through saving for backward.
    std::int64_t id() const { return state().id; }

    const std::string& name() const { return state().name; }
    /// Names it for errors, gradient reports and traces; returns itself.
    Variable& set_name(std::string_view name);

    /// The gradient summed up by `backward`, undefined before: of parameters, and of results
    /// after `retain_grad`. Undefined means no path; zeros mean a path with derivative zero.
    Tensor grad() const;
    bool has_grad() const { return grad().defined(); }
    /// Replaces the gradient; throws ShapeError or TypeError unless it fits the value.
    void set_grad(Tensor gradient);
    void zero_grad();
    /// Keeps the gradient of a result, too. Throws GraphError when it requires none.
    void retain_grad();
    /// Throws GraphError when no gradient is wanted. Returns a number for `remove_hook`.
    std::int64_t register_hook(GradientHook hook);
    void remove_hook(std::int64_t number);

    /// Asks for gradients of a leaf, or no more. Throws TypeError unless floating, GraphError on
    /// a result of an op.
    void set_requires_grad(bool wanted);
    /// Another value for a leaf, of the same shape and type; graphs made before keep the old one.
    void set_value(Tensor value);
    /// The value of a leaf, for updates in place. Throws GraphError on a result of an op, whose
    /// gradient would be lost.
    Tensor& mutable_value();

    /// The same value as a constant.
    Variable detach() const;
    /// The same value, id and path for gradients, which later updates of a leaf do not reach:
    /// what a graph saves.
    Variable kept() const { return state().node && !is_leaf() ? *this : kept_leaf(); }

    const detail::NodePtr& node() const { return state().node; }
    bool same_as(const Variable& other) const noexcept {
        return state_.get() == other.state_.get();
    }

  private:
    detail::VariableState& state() const {
        if (!state_) throw_undefined();
        return *state_;
    }
    [[noreturn]] static void throw_undefined();
    void require_leaf(std::string_view op) const;
    Variable kept_leaf() const;
    void forget_kept() noexcept;

    detail::Counted<detail::VariableState> state_;
};

/// A leaf that gradients are wanted for. Throws TypeError unless `value` is f32 or f64.
Variable parameter(Tensor value, std::string_view name = {});

/// `name` if it has one, else what it is: `result 2 of matmul`, `input`, `constant`.
std::string describe(const Variable& x);

std::ostream& operator<<(std::ostream& out, const Variable& x);

}  // namespace glassgrad
