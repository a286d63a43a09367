#pragma once

#include <cstdint>
#include <limits>

namespace glassgrad {

struct EarlyStopOptions {
    std::int64_t patience = 5;  ///< evaluations without a better one that are borne
    double min_delta = 0;       ///< better is below best - min_delta
};

/// Says when a loss has stopped falling.
class EarlyStop {
  public:
    struct State {
        double best = std::numeric_limits<double>::infinity();
        std::int64_t bad = 0;

        friend bool operator==(const State&, const State&) = default;
    };

    /// Throws ValueError on a negative patience or min_delta.
    explicit EarlyStop(const EarlyStopOptions& options = {});

    /// True when this loss is the best so far; a NaN never is.
    bool improves(double loss) const noexcept { return loss < state_.best - options_.min_delta; }
    /// Notes an evaluation; true when it is time to stop.
    bool next(double loss) noexcept;

    const State& state() const noexcept { return state_; }
    void set_state(const State& state) noexcept { state_ = state; }

  private:
    const EarlyStopOptions options_;
    State state_;
};

}  // namespace glassgrad
