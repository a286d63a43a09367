#pragma once
// Learning rates over the steps of a run.

#include <cstdint>
#include <functional>
#include <vector>

namespace glassgrad {

/// The rate of step 0, 1, …: a function of the number alone, so a run goes on where it stopped
/// without a state. Each throws ValueError on counts or rates that make no sense.
using Schedule = std::function<double(std::int64_t step)>;

Schedule constant_schedule(double lr);

struct LinearScheduleOptions {
    double lr = 1e-3;        ///< after the warm-up
    double last = 0;         ///< at `steps` and after
    std::int64_t steps = 0;  ///< of the run
    std::int64_t warmup = 0;
};
/// Up from lr / (warmup + 1) in `warmup` steps, then down in a line.
Schedule linear_schedule(const LinearScheduleOptions& options);

struct CosineScheduleOptions {
    double lr = 1e-3;
    double last = 0;
    std::int64_t steps = 0;
    std::int64_t warmup = 0;
};
/// Up from lr / (warmup + 1) in `warmup` steps, then half a cosine down: nanoGPT's.
/// Source: Loshchilov and Hutter 2017, without restarts.
Schedule cosine_schedule(const CosineScheduleOptions& options);

struct OneCycleScheduleOptions {
    double max_lr = 1e-3;
    std::int64_t steps = 0;
    double up_share = 0.3;      ///< of the steps that go up
    double first_divisor = 25;  ///< it begins at max_lr / this
    double last_divisor = 1e4;  ///< it ends at the first rate / this
};
/// Half a cosine up, half a cosine down, as torch.optim.lr_scheduler.OneCycleLR.
/// Source: Smith and Topin 2018.
Schedule one_cycle_schedule(const OneCycleScheduleOptions& options);

struct StepScheduleOptions {
    double lr = 1e-3;
    std::int64_t every = 1;
    double factor = 0.1;
};
/// Times `factor` after each `every` steps, as torch's StepLR.
Schedule step_schedule(const StepScheduleOptions& options);

/// Times (step + 1) / (warmup + 1) in the first `warmup` steps.
Schedule warmed_up(Schedule schedule, std::int64_t warmup);

struct PlateauOptions {
    double factor = 0.1;
    std::int64_t patience = 10;  ///< evaluations without a better one that are borne
    double threshold = 1e-4;     ///< better is below best (1 - threshold)
    std::int64_t cooldown = 0;   ///< evaluations after a cut that are not counted
    double min_lr = 0;
};
/// Cuts a rate when a loss no longer falls, as torch's ReduceLROnPlateau with mode min. The one
/// schedule with a state.
class Plateau {
  public:
    struct State {
        double best;
        std::int64_t bad = 0;
        std::int64_t cooling = 0;

        friend bool operator==(const State&, const State&) = default;
    };

    explicit Plateau(const PlateauOptions& options = {});
    /// The rate after an evaluation with this loss; a NaN counts as not better.
    double next(double lr, double loss);
    const State& state() const noexcept { return state_; }
    void set_state(const State& state) noexcept { state_ = state; }

  private:
    const PlateauOptions options_;
    State state_;
};

struct LrFinderOptions {
    double first = 1e-7;
    double last = 1;
    std::int64_t steps = 100;
    double stop_factor = 4;  ///< the search ends where the smoothed loss is this times its smallest
    double smoothing = 0.9;
};
struct LrFinding {
    std::vector<double> rates;
    std::vector<double> losses;  ///< smoothed
    /// Where the loss falls fastest over log lr, before it is least: beyond, it falls only from
    /// where it has jumped to. 0 if it never falls.
    double suggestion = 0;
};
/// Raises the rate from step to step. `train` takes one step at a rate and returns its loss; the
/// caller keeps a copy of the weights. Source: Smith 2017.
LrFinding find_lr(const std::function<double(double lr)>& train,
                  const LrFinderOptions& options = {});

}  // namespace glassgrad
