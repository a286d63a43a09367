#pragma once
// What a run of training tells about itself. The library prints nothing: whoever wants a progress
// line, a log or a curve gives the run reporters.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {

/// A finished step.
struct StepReport {
    std::int64_t step = 0;           ///< finished steps, this one among them
    std::int64_t steps = 0;          ///< of the whole run
    std::int64_t tokens = 0;         ///< that the run has trained on so far
    double loss = 0;                 ///< mean of the step's batch
    std::optional<double> val_loss;  ///< where the step was followed by a validation
    double lr = 0;
    double grad_norm = 0;  ///< before clipping
    double seconds = 0;    ///< that this step took, validation and saving left out
};

/// What is known before the first step: names and values, in the order to show them.
struct RunHeader {
    std::vector<std::pair<std::string, std::string>> facts;

    RunHeader& add(std::string name, std::string value) {
        facts.emplace_back(std::move(name), std::move(value));
        return *this;
    }
};

/// How a run came to its end.
struct RunEnd {
    enum class Reason { done, early_stop, interrupted, diverged, failed };
    Reason reason = Reason::done;
    std::int64_t step = 0;    ///< finished steps
    std::string_view detail;  ///< one line for people: what went wrong, how to resume
};

/// Gets what happens in a run, in order, in the thread that trains. What it throws ends the run.
class Reporter {
  public:
    Reporter() = default;
    virtual ~Reporter() = default;
    Reporter(const Reporter&) = delete;
    Reporter& operator=(const Reporter&) = delete;

    /// `first_step`: the steps that a resumed run has finished before, 0 in a new one.
    virtual void on_start(const RunHeader& header, std::int64_t first_step) {
        (void)header, (void)first_step;
    }
    virtual void on_step(const StepReport& report) { (void)report; }
    /// Before the checkpoint of these finished steps is written: what was reported so far should be
    /// on disk, or a resumed run has a gap.
    virtual void on_save(std::int64_t step) { (void)step; }
    /// A text that the model wrote after `step` steps.
    virtual void on_sample(std::int64_t step, std::string_view text) { (void)step, (void)text; }
    /// A line for people: a checkpoint was saved, a parameter never moves.
    virtual void on_message(std::string_view line) { (void)line; }
    virtual void on_end(const RunEnd& end) { (void)end; }
};

}  // namespace glassgrad
