#pragma once
// Optimizers: what turns gradients into updates of parameters, in place.

#include <glassgrad/layers/module.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace glassgrad {

/// Parameters that are updated alike.
struct ParameterGroup {
    std::vector<std::pair<std::string, Variable>> parameters;
    double weight_decay = 0;
    double lr_scale = 1;  ///< times the optimizer's rate
};

/// All parameters of a model that are not frozen, in two groups: matrices, and tensors of more
/// axes, with `weight_decay`; vectors (biases, norms) without, as GPT-2 and nanoGPT do it.
std::vector<ParameterGroup> decay_matrices(const Module& model, double weight_decay);

struct StepOptions {
    /// Of all gradients as they are read, which stay as they are: what `clip_grad_norm` does,
    /// without a pass of its own, when it is `clip_scale(norm, max_norm)`.
    double grad_scale = 1;
};

/// Base of the optimizers.
///
/// A step reads each parameter's gradient and writes its value. A parameter without a gradient is
/// left as it is, its state too. A step that throws has changed nothing: all is checked, and all
/// memory taken, before the first write. The state is taken for a parameter when it is first
/// updated.
class Optimizer {
  public:
    virtual ~Optimizer() = default;
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;

    /// Updates all parameters from their gradients. Throws ValueError unless the scale is finite
    /// and not negative.
    void step(const StepOptions& options = {});
    /// Forgets the gradients.
    void zero_grad();

    double lr() const noexcept { return lr_; }
    /// Throws ValueError unless it is finite and not negative.
    void set_lr(double lr);
    /// Steps taken.
    std::int64_t steps() const noexcept { return steps_; }
    const std::vector<ParameterGroup>& groups() const noexcept { return groups_; }

    /// All that the next steps depend on beside the parameters and the rate: `steps`, and
    /// `<state>.<parameter>` such as `exp_avg.head.weight`.
    StateDict state_dict() const;
    /// The inverse. Throws ValueError that lists what is missing, unexpected or of another shape or
    /// type; nothing is changed then.
    void load_state_dict(const StateDict& state);

  protected:
    /// What belongs to one parameter.
    struct Slot {
        std::string name;
        Variable parameter;
        std::size_t group;
        std::int64_t updates = 0;
        /// One for each state name, zeros before the first update; undefined before that.
        std::vector<Tensor> state = {};
        Tensor direction = {};    ///< within a step
        Tensor* value = nullptr;  ///< the parameter's, which is nobody else's; within a step
    };

    /// `op` is what errors call the optimizer. Throws ValueError on no parameters, one that is
    /// listed twice, a bad rate, decay or scale; GraphError on one that wants no gradient.
    Optimizer(std::string op, std::vector<ParameterGroup> groups, double lr,
              std::vector<std::string> state_names);

    struct Step {
        const Tensor& gradient;
        double grad_scale;
        const Tensor& direction;  ///< what `direction` gave
        double lr;
        double weight_decay;
    };

    /// Throws ValueError or ShapeError when a slot cannot be updated at all.
    virtual void check(const Slot&) const {}
    /// What takes memory to compute, before anything is written.
    virtual Tensor direction(const Slot&, const Tensor& /*gradient*/, double /*grad_scale*/) const {
        return {};
    }
    /// Writes. Memory is taken, shapes and types are right: doesn't throw.
    virtual void update(Slot& slot, const Step& step) = 0;

    const std::string op_;

  private:
    std::vector<ParameterGroup> groups_;
    std::vector<Slot> slots_;
    std::vector<std::string> state_names_;
    double lr_;
    std::int64_t steps_ = 0;
};

}  // namespace glassgrad
