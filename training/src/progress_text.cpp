#include <glassgrad/training/progress_text.hpp>

#include <glassgrad/tensor/detail/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad {
namespace {

constexpr std::string_view dim = "\x1b[2m";
constexpr std::string_view cyan = "\x1b[36m";
constexpr std::string_view plain = "\x1b[0m";

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// Every character that is shown here is one column wide.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string_view first_columns(std::string_view text, std::size_t count) {
    std::size_t at = 0;
    for (; at < text.size(); ++at) {
        if (begins_character(text[at]) && count-- == 0) break;
    }
    return text.substr(0, at);
}

/// A line in pieces, each with its colour.
class Line {
  public:
    void add(std::string text, std::string_view color = {}) {
        pieces_.push_back({std::move(text), color});
    }
    /// `label value`, behind a blank.
    void field(std::string_view label, std::string value) {
        if (!pieces_.empty()) add(" ");
        if (!label.empty()) add(fmt::format("{} ", label), dim);
        add(std::move(value));
    }
    std::size_t width() const {
        std::size_t sum = 0;
        for (const Piece& piece : pieces_) sum += columns(piece.text);
        return sum;
    }
    std::string text(std::size_t width, bool color) const {
        std::string out;
        for (const Piece& piece : pieces_) {
            const std::string_view shown = first_columns(piece.text, width);
            width -= columns(shown);
            const bool colored = color && !piece.color.empty() && !shown.empty();
            if (colored) out += piece.color;
            out += shown;
            if (colored) out += plain;
        }
        return out;
    }

  private:
    struct Piece {
        std::string text;
        std::string_view color;
    };
    std::vector<Piece> pieces_;
};

/// Two digits and an exponent without padding: 2.8e-4.
std::string scientific(double x) {
    std::string text = fmt::format("{:.1e}", x);
    const std::size_t e = text.find('e');
    if (e == text.npos) return text;  // nan, inf
    std::size_t digit = e + 1;
    if (text[digit] == '+') text.erase(digit, 1);
    if (text[digit] == '-') ++digit;
    while (digit + 1 < text.size() && text[digit] == '0') text.erase(digit, 1);
    return text;
}

std::string loss_text(double x) { return fmt::format("{:#.4g}", x); }
std::string lr_text(double x) { return x == 0 ? "0" : scientific(x); }
std::string norm_text(double x) {
    return x == 0 || (x >= 0.01 && x < 1000) || !std::isfinite(x) ? fmt::format("{:.2f}", x)
                                                                  : scientific(x);
}

std::string rate_text(double x) {
    if (!(x >= 999.5)) return fmt::format("{:.0f} tok/s", x);
    if (x < 999'950) return fmt::format("{:.1f}k tok/s", x / 1e3);
    return fmt::format("{:.1f}M tok/s", x / 1e6);
}

std::string step_text(const Progress& progress) {
    if (progress.steps <= 0) return fmt::format("{}", progress.step);
    return fmt::format("{}/{}", progress.step, progress.steps);
}

void add_bar(Line& line, double share, int width, bool utf8) {
    const int halves = static_cast<int>(share * 2 * width);
    const int full = halves / 2;
    const int half = halves % 2;
    std::string done;
    std::string left;
    for (int i = 0; i < full; ++i) done += utf8 ? "━" : "#";
    if (half != 0) done += utf8 ? "╸" : ">";
    for (int i = full + half; i < width; ++i) left += utf8 ? "─" : "-";
    line.add(utf8 ? " " : " [");
    line.add(std::move(done), cyan);
    line.add(std::move(left), dim);
    line.add(utf8 ? "" : "]");
}

void add_fields(Line& line, const Progress& progress, bool utf8) {
    line.field("loss", loss_text(progress.loss));
    if (progress.val_loss) line.field("val", loss_text(*progress.val_loss));
    line.field("lr", lr_text(progress.lr));
    line.field(utf8 ? "‖g‖" : "norm", norm_text(progress.grad_norm));
    if (progress.tokens_per_s) line.field("", rate_text(*progress.tokens_per_s));
    if (progress.seconds_left) line.field("eta", duration_text(*progress.seconds_left));
}

Line bar_line(const Progress& progress, const TextStyle& style, int bar, bool spark) {
    Line line;
    line.field("step", step_text(progress));
    if (progress.steps > 0 && bar > 0) {
        const double share = std::clamp(
            static_cast<double>(progress.step) / static_cast<double>(progress.steps), 0.0, 1.0);
        add_bar(line, share, bar, style.utf8);
        line.field("", fmt::format("{}%", static_cast<int>(share * 100)));
    }
    add_fields(line, progress, style.utf8);
    if (spark && progress.losses.size() > 1) {
        line.add(" ");
        line.add(sparkline(progress.losses, style), cyan);
    }
    return line;
}

}  // namespace

std::string progress_bar_text(const Progress& progress, const TextStyle& style) {
    const auto room = static_cast<std::size_t>(std::max(style.width - 1, 1));
    struct Layout {
        int bar;
        bool spark;
    };
    Line line;
    for (const Layout& layout :
         {Layout{24, true}, {12, true}, {12, false}, {6, false}, {0, false}}) {
        line = bar_line(progress, style, layout.bar, layout.spark);
        if (line.width() <= room) break;
    }
    return line.text(room, style.color);
}

std::string progress_line_text(const Progress& progress) {
    Line line;
    line.field("step", step_text(progress));
    add_fields(line, progress, false);
    return line.text(line.width(), false);
}

std::string sparkline(std::span<const double> values, const TextStyle& style) {
    constexpr std::string_view blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    constexpr std::string_view ascii = "_.:-=+*#";
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const double x : values) {
        if (!std::isfinite(x)) continue;
        low = std::min(low, x);
        high = std::max(high, x);
    }
    std::string out;
    for (const double x : values) {
        if (!std::isfinite(x)) {
            out += '!';
            continue;
        }
        // Halves, since the difference of two finite values may not be finite.
        const double share = high > low ? (x / 2 - low / 2) / (high / 2 - low / 2) : 0;
        const auto level = static_cast<std::size_t>(std::clamp(std::lround(share * 7), 0L, 7L));
        if (style.utf8) {
            out += blocks[level];
        } else {
            out += ascii[level];
        }
    }
    return out;
}

std::string duration_text(double seconds) {
    if (!(seconds < 3.2e9)) return "?";  // a century, or NaN
    const auto s = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
    if (s < 60) return fmt::format("{}s", s);
    if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
    if (s < 86400) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
    return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

std::string header_text(const RunHeader& header, const TextStyle& style) {
    std::size_t longest = 0;
    for (const auto& fact : header.facts) longest = std::max(longest, columns(fact.first));
    std::string out;
    for (const auto& fact : header.facts) {
        std::string_view value = fact.second;
        bool first = true;
        do {
            const std::size_t end = std::min(value.find('\n'), value.size());
            const std::string name = first ? printable(fact.first, style) : "";
            if (style.color) out += dim;
            out += name;
            if (style.color) out += plain;
            out.append(longest - std::min(longest, columns(name)) + 2, ' ');
            out += printable(value.substr(0, end), style);
            out += '\n';
            value.remove_prefix(std::min(end + 1, value.size()));
            first = false;
        } while (!value.empty());
    }
    return out;
}

std::string end_text(const RunEnd& end) {
    const std::string_view how[] = {"done", "stopped early", "interrupted", "diverged", "failed"};
    return fmt::format("{} after {} step{}{}{}", how[static_cast<int>(end.reason)], end.step,
                       end.step == 1 ? "" : "s", end.detail.empty() ? "" : ": ", end.detail);
}

std::string printable(std::string_view text, const TextStyle& style) {
    std::string out;
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text[0]);
        std::size_t size = byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
        size = std::min(size, text.size());
        const std::string_view one = text.substr(0, size);
        if (byte < 0x80) {
            const bool shown = (byte >= 0x20 && byte != 0x7F) || byte == '\n' || byte == '\t';
            out += shown ? text[0] : '?';
        } else if (detail::find_invalid_utf8(one) != one.npos) {
            out += '?';
            size = 1;
        } else if (!style.utf8 || (byte == 0xC2 && static_cast<unsigned char>(one[1]) < 0xA0)) {
            out += '?';  // U+0080 to U+009F are controls as well
        } else {
            out += one;
        }
        text.remove_prefix(size);
    }
    return out;
}

}  // namespace glassgrad
