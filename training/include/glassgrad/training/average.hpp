#pragma once

#include <glassgrad/layers/module.hpp>

#include <vector>

namespace glassgrad {

/// Exponential moving average of a model's weights: after each step, average = decay average + (1 -
/// decay) weight. With a warm-up the decay of step n is at most (1 + n) / (10 + n), so that the
/// start is forgotten.
class WeightAverage {
  public:
    /// Starts as the weights are. Throws ValueError unless 0 <= decay < 1.
    explicit WeightAverage(const Module& model, double decay = 0.999);

    void update();
    /// Puts the averages in the model and keeps its weights; the next call puts them back.
    void swap();
    bool swapped() const noexcept { return swapped_; }

    /// `updates`, and the averages under the parameters' names. Throws GraphError while swapped.
    StateDict state_dict() const;
    /// Throws ValueError that lists what doesn't fit; nothing is changed then.
    void load_state_dict(const StateDict& state);

  private:
    std::vector<std::pair<std::string, Variable>> parameters_;
    std::vector<Tensor> averages_;
    double decay_;
    std::int64_t updates_ = 0;
    bool swapped_ = false;
};

}  // namespace glassgrad
