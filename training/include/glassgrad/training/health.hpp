#pragma once
// Signs that a run does not do what it should, as lines for people.

#include <glassgrad/layers/models/causal_model.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace glassgrad {

/// Entropy of each attention's weights that a call of the model runs through, by the path of its
/// layer, as a share of what it could be: 1 when each token looks at all it sees alike, 0 when at
/// one only. Mean over heads and tokens that see at least two. One call, in evaluation mode and
/// without recording.
std::vector<std::pair<std::string, double>> attention_entropy(CausalModel& model,
                                                              const Tensor& ids);

/// Watches a run. Each warning is given once.
class Health {
  public:
    explicit Health(CausalModel& model) : model_(&model) {}

    /// After the first loss of a run, before its graph goes: parameters that it does not reach.
    void check_reached(const Variable& loss);
    /// Keeps the weights as they are: before the first step, and before one that is looked at.
    void keep();
    /// After some steps: weights that are what they were when the run began.
    void check_moved();
    /// After one step since `keep`: weights that moved by more than a tenth of their norm.
    void check_ratio();
    /// Attention that looks at one token only, in any block.
    void check_attention(const Tensor& ids);

    /// What was found since the last call.
    std::vector<std::string> take() { return std::exchange(found_, {}); }

  private:
    void warn(const std::string& about, std::string text);

    CausalModel* model_;
    StateDict first_;  ///< empty once it was looked at
    StateDict kept_;
    bool reached_ = false;
    bool looked_ = false;
    std::set<std::string> told_;
    std::vector<std::string> found_;
};

}  // namespace glassgrad
