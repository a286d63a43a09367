#pragma once
// The texts that `ProgressLine` shows, as functions of what they show.

#include <glassgrad/training/report.hpp>

#include <span>

namespace glassgrad {

struct TextStyle {
    int width = 80;  ///< columns of the terminal; a line stays below it and so never wraps
    bool utf8 = true;
    bool color = false;
};

/// What a line shows.
struct Progress {
    std::int64_t step = 0;
    std::int64_t steps = 0;  ///< 0: no end is known, and no bar is shown
    double loss = 0;
    std::optional<double> val_loss;
    double lr = 0;
    double grad_norm = 0;
    std::optional<double> tokens_per_s;
    std::optional<double> seconds_left;
    std::vector<double> losses;  ///< means over equal parts of the run so far
};

/// `step 420/1000 ━━━━━━━━━━╸───────────── 42% loss 1.873 val 1.951 lr 2.8e-4 ‖g‖ 0.71 12.4k tok/s
/// eta 1m12s ▇▅▄▃▂▂▁▁` in one line. Where there is no room, the bar becomes shorter, then the
/// sparkline goes, then the bar; then the line is cut.
std::string progress_bar_text(const Progress& progress, const TextStyle& style);

/// The same for a file or a pipe: of any width, in ASCII, without a bar.
std::string progress_line_text(const Progress& progress);

/// A character for each value, from the lowest to the highest; `!` for what isn't finite.
std::string sparkline(std::span<const double> values, const TextStyle& style);

/// `45s`, `1m12s`, `2h05m`, `3d04h`.
std::string duration_text(double seconds);

/// A line for each fact, the values below each other. Lines of a value stay together.
std::string header_text(const RunHeader& header, const TextStyle& style);

/// `stopped early after 700 steps: detail`
std::string end_text(const RunEnd& end);

/// The text as a terminal may get it from a model: control characters, which could move the cursor
/// or worse, become `?`, all but line breaks and tabs; so does what is no UTF-8, and without UTF-8
/// what is no ASCII.
std::string printable(std::string_view text, const TextStyle& style);

/// The rate of recent steps. The first three are left out: they fill caches and pools.
class StepRate {
  public:
    void add(const StepReport& report);

    /// Medians of the last 32 steps; none before the fourth step.
    std::optional<double> tokens_per_s() const;
    std::optional<double> seconds_per_step() const;

  private:
    std::int64_t seen_ = 0;
    std::int64_t tokens_ = 0;
    std::vector<double> rates_;
    std::vector<double> seconds_;
};

/// The losses of a run of any length as means over at most 16 equal parts.
class LossHistory {
  public:
    void add(double loss);
    std::vector<double> means() const;

  private:
    std::vector<double> means_;
    std::int64_t stride_ = 1;  ///< steps in a part
    double sum_ = 0;
    std::int64_t count_ = 0;
};

}  // namespace glassgrad
