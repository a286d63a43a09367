#pragma once
// When a run is to end before its last step.

#include <string>

namespace glassgrad {

/// Turns signals into a flag that a loop looks at after each step.
///
///     Ctrl-C, SIGTERM     finish the step, save, end with status 130 or 143; a second one ends
///                         the process with that status at once, which no file minds
///     SIGUSR1, stop file  finish the step, save, end with status 0
///
/// SIGINT or SIGTERM that is ignored stays so (nohup). The handlers before come back in the
/// destructor. One object at a time: throws ValueError on a second one.
class StopSignals {
  public:
    /// `stop_file`, such as `RUN/stop`, asks for a stop when it is there; none if it is empty.
    explicit StopSignals(std::string stop_file = {});
    ~StopSignals();
    StopSignals(const StopSignals&) = delete;
    StopSignals& operator=(const StopSignals&) = delete;

    /// True once a stop is asked for. Removes the stop file, which so asks once.
    bool requested();
    /// 130, 143, or 0.
    int exit_status() const noexcept;

  private:
    std::string stop_file_;
    bool by_file_ = false;
};

}  // namespace glassgrad
