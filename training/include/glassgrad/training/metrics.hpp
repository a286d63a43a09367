#pragma once
// The figures of a run, a line of JSON for each step.

#include <glassgrad/training/report.hpp>

#include <memory>
#include <vector>

namespace glassgrad {

namespace detail {
class AppendFile;
}

/// A line of the log.
struct Metrics {
    std::int64_t step = 0;
    std::int64_t tokens = 0;
    double loss = 0;
    std::optional<double> val_loss;
    double lr = 0;
    double grad_norm = 0;
    double tokens_per_s = 0;  ///< of this step; 0 where no time was measured
    double seconds = 0;

    friend bool operator==(const Metrics&, const Metrics&) = default;
};

/// One JSON object, without an end of line: `{"step":1,"tokens":768,"loss":4.2,…}`. `val_loss` is
/// left out where there is none; what isn't finite is one of the texts NaN, Infinity, -Infinity.
std::string to_json(const Metrics& metrics);

/// The lines of a log. Members that it doesn't know are skipped; a last line that has no end yet,
/// as a killed run leaves it, is left out.
/// Throws FileError, with line and column, for anything else that is no such log, and where a step
/// isn't beyond the one before it.
std::vector<Metrics> read_metrics(const std::string& path);

/// Writes each step as a line of JSON (JSON Lines), at once, so that nothing is lost when the
/// process is killed, and synced before each checkpoint.
///
/// A run that resumes after n steps keeps the lines up to n and cuts all others, half ones and
/// unreadable ones among them, in one piece: the log has neither doubles nor gaps, as if the run
/// had never stopped. A new run begins with an empty log. Throws FileError.
class MetricsLog : public Reporter {
  public:
    explicit MetricsLog(std::string path);
    ~MetricsLog() override;

    const std::string& path() const noexcept { return path_; }

    void on_start(const RunHeader& header, std::int64_t first_step) override;
    /// Without a start, the first step reported is where the run resumes.
    void on_step(const StepReport& report) override;
    void on_save(std::int64_t step) override;

  private:
    void begin(std::int64_t first_step);

    std::string path_;
    std::unique_ptr<detail::AppendFile> file_;
    std::optional<std::int64_t> tokens_;  ///< up to the step before, where it is known
};

}  // namespace glassgrad
