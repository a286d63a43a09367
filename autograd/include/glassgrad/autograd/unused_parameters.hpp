#pragma once
// Parameters that no gradient reaches, and where their paths end.

#include <glassgrad/autograd/observer.hpp>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace glassgrad {

/// Keeps who read what, while an `Observing` of it lives: for `unused_parameters`, which can then
/// say where a path ended. It holds the values of all results that it sees.
class UsageTracker final : public Observer {
  public:
    void on_forward(const ForwardEvent& event) override;
    void clear();

    /// One op that read a value.
    struct Use {
        std::string op;
        std::string scope;
        std::int64_t result;  ///< id() of its result
        bool recorded;        ///< the result requires a gradient
        bool cut;             ///< it read a constant with the same elements: detach() or value()
    };
    /// The ops that read the value with this id.
    const std::vector<Use>& uses(std::int64_t id) const;
    /// id() of the first Variable that was seen with the buffer of `value`; 0 if none was.
    std::int64_t owner(const Tensor& value) const;

  private:
    std::unordered_map<std::int64_t, std::vector<Use>> uses_;
    std::unordered_map<const void*, std::int64_t> owners_;  // id of the value in a buffer
    std::vector<Tensor> held_;                              // so that no buffer is used again
};

struct UnusedParameter {
    std::string name;    ///< `W_Q`, or what it is when it has no name
    std::string reason;  ///< where its path to the result ends
};

/// Those of `parameters` that y's graph does not reach, so that a backward pass of y gives them no
/// gradient; a gradient of zeros is one. May be called before or after that pass, as long as y
/// lives. With the tracker that watched the forward pass, a reason names the op at which the path
/// ended, and how. Costs nothing when it is not called.
/// Throws ValueError for an undefined variable.
std::vector<UnusedParameter> unused_parameters(const Variable& y,
                                               const std::vector<Variable>& parameters,
                                               const UsageTracker* tracker = nullptr);
/// The same under given names.
std::vector<UnusedParameter> unused_parameters(
    const Variable& y, const std::vector<std::pair<std::string, Variable>>& parameters,
    const UsageTracker* tracker = nullptr);

/// `unused parameters:` and a line each, or that there are none.
std::string to_string(const std::vector<UnusedParameter>& unused);

}  // namespace glassgrad
