#pragma once

#include <glassgrad/layers/layer.hpp>
#include <glassgrad/tensor/counter_rng.hpp>
#include <glassgrad/tensor/random.hpp>

namespace glassgrad {

/// In training, elements are 0 with probability p and the others divided by 1 - p; in evaluation x
/// passes unchanged. As torch.nn.Dropout.
class Dropout : public Layer {
  public:
    /// The seed of its numbers is drawn from `rng`, whatever p is, so that a model starts from the
    /// same weights with and without dropout. Throws ValueError unless 0 <= p <= 1.
    Dropout(double p, RandomState& rng);

    Variable operator()(const Variable& x) const override;

    /// 0 in evaluation.
    double active_p() const noexcept { return training() ? p : 0; }
    /// What the next call draws from. A call moves it on; so one model trains in one thread.
    CounterRng& rng() const noexcept { return rng_; }

    const double p;

  private:
    mutable CounterRng rng_;
};

/// Gives every Dropout of `model` numbers of its own that depend on `seed`, its place among them
/// and `position` only. Called before each step with a position that depends on the step, such as
/// step << 40, it makes a run that can be taken up at any step.
void seed_dropout(Module& model, std::uint64_t seed, std::uint64_t position = 0);

}  // namespace glassgrad
