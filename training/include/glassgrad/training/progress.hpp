#pragma once

#include <glassgrad/training/progress_text.hpp>

#include <functional>

namespace glassgrad {

/// What is known of the terminal behind a descriptor.
struct Terminal {
    bool is_terminal = false;
    bool dumb = false;         ///< TERM is unset, empty or `dumb`
    bool utf8 = false;         ///< by LC_ALL, LC_CTYPE or LANG, the first that is set
    bool no_color = false;     ///< NO_COLOR
    bool force_color = false;  ///< CLICOLOR_FORCE
};

/// `variable` gives the environment's value of a name, or nullptr.
Terminal terminal_of(bool is_terminal, const std::function<const char*(const char*)>& variable);

struct ProgressOptions {
    /// bar: a line that is redrawn; lines: one every `log_every` steps; none: no steps.
    /// automatic: a bar on a terminal that isn't dumb, lines elsewhere.
    enum class Mode { automatic, bar, lines, none };
    /// automatic: on a terminal, with NO_COLOR off everywhere, with CLICOLOR_FORCE on everywhere.
    enum class Color { automatic, always, never };

    Mode mode = Mode::automatic;
    Color color = Color::automatic;
    bool quiet = false;  ///< nothing but a bad end
    std::int64_t log_every = 10;
    int descriptor = 2;
    /// Instead of what the system says.
    std::optional<Terminal> terminal = {};
    /// Columns, instead of the terminal's own, which is asked each time.
    std::optional<int> width = {};
    /// Seconds of a clock that never goes back, instead of the system's.
    std::function<double()> clock = {};
};

/// Shows a run to people on standard error: its facts, then a line that is redrawn at most ten
/// times a second, or plain lines without `\r` and colours where nobody watches.
///
/// Rate and time left are medians of recent steps, the first ones left out. Nothing that goes wrong
/// with the output ends the run: where the descriptor was closed, or the pipe's reader is gone,
/// there is silence, and no SIGPIPE.
class ProgressLine : public Reporter {
  public:
    /// Throws ValueError if log_every is below 1.
    explicit ProgressLine(const ProgressOptions& options = {});
    /// Ends the line.
    ~ProgressLine() override;

    void on_start(const RunHeader& header, std::int64_t first_step) override;
    void on_step(const StepReport& report) override;
    void on_sample(std::int64_t step, std::string_view text) override;
    void on_message(std::string_view line) override;
    void on_end(const RunEnd& end) override;

  private:
    TextStyle style() const;
    Progress progress(const StepReport& report) const;
    void write(std::string_view text);
    /// Whole lines, above the one that is redrawn.
    void write_lines(std::string_view text);
    void draw();
    std::string erased() const;

    ProgressOptions options_;
    Terminal terminal_;
    bool color_ = false;
    bool dead_ = false;

    StepRate rate_;
    LossHistory losses_;
    std::optional<double> val_loss_;
    std::optional<StepReport> last_;
    std::optional<double> drawn_at_;
    std::size_t drawn_ = 0;  ///< columns to clear
    bool first_ = true;
};

}  // namespace glassgrad
