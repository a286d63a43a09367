#include <glassgrad/training/progress.hpp>

#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace glassgrad {
namespace {

constexpr double seconds_between_draws = 0.1;

using Mode = ProgressOptions::Mode;
using Color = ProgressOptions::Color;

bool contains_utf8(std::string_view locale) {
    std::string letters;
    for (const char c : locale) {
        if (c != '-') letters += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return letters.find("utf8") != letters.npos;
}

double steady_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// False when nobody will ever read there again. A SIGPIPE that it causes reaches no handler.
bool write_quietly(int descriptor, std::string_view text) {
    sigset_t pipe;
    sigset_t pending;
    sigset_t before;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    int error = 0;
    while (!text.empty() && error == 0) {
        const ssize_t done = ::write(descriptor, text.data(), text.size());
        if (done >= 0) {
            text.remove_prefix(static_cast<std::size_t>(done));
        } else if (errno != EINTR) {
            error = errno;
        }
    }
    if (error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
        const timespec at_once{};
        while (sigtimedwait(&pipe, nullptr, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return error != EPIPE && error != EBADF && error != EIO;
}

}  // namespace

Terminal terminal_of(bool is_terminal, const std::function<const char*(const char*)>& variable) {
    const auto value = [&](const char* name) {
        const char* text = variable(name);
        return std::string_view(text == nullptr ? "" : text);
    };
    Terminal terminal;
    terminal.is_terminal = is_terminal;
    terminal.dumb = value("TERM").empty() || value("TERM") == "dumb";
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        if (value(name).empty()) continue;
        terminal.utf8 = contains_utf8(value(name));
        break;
    }
    terminal.no_color = !value("NO_COLOR").empty();
    terminal.force_color = !value("CLICOLOR_FORCE").empty() && value("CLICOLOR_FORCE") != "0";
    return terminal;
}

ProgressLine::ProgressLine(const ProgressOptions& options) : options_(options) {
    if (options.log_every < 1) {
        throw ValueError(
            fmt::format("ProgressLine: log_every is {}, it must be at least 1", options.log_every));
    }
    terminal_ = options.terminal ? *options.terminal
                                 : terminal_of(::isatty(options.descriptor) == 1, ::getenv);
    if (options_.mode == Mode::automatic) {
        options_.mode = terminal_.is_terminal && !terminal_.dumb ? Mode::bar : Mode::lines;
    }
    if (!options_.clock) options_.clock = steady_seconds;
    color_ = options_.color == Color::always;
    if (options_.color == Color::automatic && !terminal_.no_color) {
        color_ = terminal_.force_color || (terminal_.is_terminal && !terminal_.dumb);
    }
    // A file that is opened later may get the number of a descriptor that is closed now.
    dead_ = ::fcntl(options.descriptor, F_GETFD) < 0;
}

ProgressLine::~ProgressLine() {
    if (drawn_ > 0) write("\n");
}

TextStyle ProgressLine::style() const {
    // A file takes any text; how it is shown is for its readers to say.
    TextStyle style{.utf8 = terminal_.utf8 || !terminal_.is_terminal, .color = color_};
    winsize size{};
    if (options_.width) {
        style.width = *options_.width;
    } else if (::ioctl(options_.descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        style.width = size.ws_col;
    }
    return style;
}

Progress ProgressLine::progress(const StepReport& report) const {
    Progress out{.step = report.step,
                 .steps = report.steps,
                 .loss = report.loss,
                 .val_loss = val_loss_,
                 .lr = report.lr,
                 .grad_norm = report.grad_norm,
                 .tokens_per_s = rate_.tokens_per_s(),
                 .seconds_left = {},
                 .losses = losses_.means()};
    const auto seconds = rate_.seconds_per_step();
    if (seconds && report.steps > report.step) {
        out.seconds_left = *seconds * static_cast<double>(report.steps - report.step);
    }
    return out;
}

void ProgressLine::write(std::string_view text) {
    if (!dead_) dead_ = !write_quietly(options_.descriptor, text);
}

/// Blanks, not an escape, so that the simplest terminal understands it.
std::string ProgressLine::erased() const {
    return drawn_ == 0 ? "" : "\r" + std::string(drawn_, ' ') + "\r";
}

void ProgressLine::write_lines(std::string_view text) {
    if (options_.quiet) return;
    const bool redraw = drawn_ > 0;
    std::string out = erased();
    out += text;
    if (!out.ends_with('\n')) out += '\n';
    write(out);
    drawn_ = 0;
    if (redraw) draw();
}

void ProgressLine::draw() {
    TextStyle style = this->style();
    style.utf8 = terminal_.utf8 && !terminal_.dumb;
    const std::string text = progress_bar_text(progress(*last_), style);
    style.color = false;
    const std::string bare = progress_bar_text(progress(*last_), style);
    const auto columns =
        static_cast<std::size_t>(std::count_if(bare.begin(), bare.end(), [](char c) {
            return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
        }));
    std::string out = "\r" + text;
    // No more than the window holds, should it have become narrower.
    const auto room = static_cast<std::size_t>(std::max(style.width - 1, 1));
    if (std::min(drawn_, room) > columns) out.append(std::min(drawn_, room) - columns, ' ');
    write(out);
    drawn_ = columns;
    drawn_at_ = options_.clock();
}

void ProgressLine::on_start(const RunHeader& header, std::int64_t first_step) {
    std::string text = header_text(header, style());
    if (first_step > 0) text += fmt::format("resumed after step {}\n", first_step);
    if (!text.empty()) write_lines(text);
}

void ProgressLine::on_step(const StepReport& report) {
    rate_.add(report);
    losses_.add(report.loss);
    if (report.val_loss) val_loss_ = report.val_loss;
    last_ = report;
    const bool first = std::exchange(first_, false);
    const bool last = report.step == report.steps;
    if (options_.quiet || dead_) return;
    if (options_.mode == Mode::bar) {
        if (last || !drawn_at_ || options_.clock() - *drawn_at_ >= seconds_between_draws) draw();
    } else if (options_.mode == Mode::lines) {
        if (!first && !last && !report.val_loss && report.step % options_.log_every != 0) return;
        Progress shown = progress(report);
        shown.val_loss = report.val_loss;
        write_lines(progress_line_text(shown));
    }
}

void ProgressLine::on_sample(std::int64_t step, std::string_view text) {
    std::string out = fmt::format("sample after step {}:\n", step);
    const std::string shown = printable(text, style());
    for (std::size_t begin = 0; begin < shown.size();) {
        const std::size_t end = std::min(shown.find('\n', begin), shown.size());
        out += "  " + shown.substr(begin, end - begin) + "\n";
        begin = end + 1;
    }
    write_lines(out);
}

void ProgressLine::on_message(std::string_view line) { write_lines(printable(line, style())); }

void ProgressLine::on_end(const RunEnd& end) {
    if (drawn_ > 0 && last_) draw();
    if (drawn_ > 0) write("\n");
    drawn_ = 0;
    const bool bad = end.reason == RunEnd::Reason::diverged || end.reason == RunEnd::Reason::failed;
    if (!options_.quiet || bad) write(printable(end_text(end), style()) + "\n");
}

}  // namespace glassgrad
