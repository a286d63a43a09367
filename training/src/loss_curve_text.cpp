#include <glassgrad/training/loss_curve.hpp>

#include "loss_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace glassgrad {
namespace {

using detail::LossPoint;
using detail::LossPoints;

/// Points over characters: of Braille 2 by 4 in each, of ASCII one.
class Canvas {
  public:
    Canvas(int columns, int lines, bool braille)
        : columns_(columns),
          lines_(lines),
          braille_(braille),
          cells_(static_cast<std::size_t>(columns * lines)) {}

    int width() const { return braille_ ? 2 * columns_ : columns_; }
    int height() const { return braille_ ? 4 * lines_ : lines_; }

    /// `y` counts upwards.
    void set(int x, int y) {
        const int down = height() - 1 - y;
        if (!braille_) {
            cell(x, down) = 1;
            return;
        }
        // The bits of U+2800 and on: three rows, left before right, then the fourth.
        constexpr unsigned bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
        cell(x / 2, down / 4) |= bits[down % 4][x % 2];
    }
    /// A mark that fills the character.
    void mark(int x, int y) {
        const int down = height() - 1 - y;
        (braille_ ? cell(x / 2, down / 4) : cell(x, down)) |= marked;
    }

    std::string line(int index) const {
        std::string out;
        for (int x = 0; x < columns_; ++x) {
            const unsigned bits = cells_[static_cast<std::size_t>(index * columns_ + x)];
            if ((bits & marked) != 0) {
                out += braille_ ? "●" : "o";
            } else if (bits == 0) {
                out += ' ';
            } else if (braille_) {
                out += {'\xE2', static_cast<char>(0xA0 + (bits >> 6)),
                        static_cast<char>(0x80 + (bits & 0x3F))};
            } else {
                out += '*';
            }
        }
        return out.substr(0, out.find_last_not_of(' ') + 1);
    }

  private:
    static constexpr unsigned marked = 0x100;

    unsigned& cell(int x, int y) { return cells_[static_cast<std::size_t>(y * columns_ + x)]; }

    int columns_;
    int lines_;
    bool braille_;
    std::vector<unsigned> cells_;
};

int pixel(double share, int size) {
    return std::clamp(static_cast<int>(std::lround(share * (size - 1))), 0, size - 1);
}

void draw(Canvas& canvas, const LossPoints& points) {
    const auto x = [&](const LossPoint& p) {
        return pixel(points.steps.place(p.step), canvas.width());
    };
    const auto y = [&](const LossPoint& p) {
        return pixel(points.loss.place(p.loss), canvas.height());
    };
    const auto& curve = points.smooth.empty() ? points.train : points.smooth;
    for (std::size_t i = 0; i < curve.size(); ++i) {
        const int x1 = x(curve[i]);
        const int y1 = y(curve[i]);
        const int x0 = i > 0 ? x(curve[i - 1]) : x1;
        const int y0 = i > 0 ? y(curve[i - 1]) : y1;
        const int count = std::max({x1 - x0, std::abs(y1 - y0), 1});
        for (int k = 0; k <= count; ++k) {
            canvas.set(x0 + (x1 - x0) * k / count, y0 + (y1 - y0) * k / count);
        }
    }
    for (const LossPoint& p : points.validation) canvas.mark(x(p), y(p));
}

std::string legend(const LossPoints& points, bool utf8) {
    std::string out;
    const auto& curve = points.smooth.empty() ? points.train : points.smooth;
    if (!curve.empty()) {
        out += fmt::format("{} training {:.4g}", utf8 ? "⠒" : "*", curve.back().loss);
    }
    if (points.best) {
        out += fmt::format("{}{} validation {:.4g}, best {:.4g} at {:.0f}",
                           out.empty() ? "" : "   ", utf8 ? "●" : "o",
                           points.validation.back().loss, points.best->loss, points.best->step);
    }
    if (!points.not_finite.empty()) {
        out += fmt::format("   not finite: {}", points.not_finite.size());
    }
    return out;
}

}  // namespace

std::string loss_curve_text(std::span<const Metrics> rows, const LossTextOptions& options) {
    const int lines = std::max(options.height, 6) - 3;
    const int all_columns = std::max(options.width, 24);
    const LossPoints points = detail::loss_points(rows, all_columns / 12, std::max(lines / 2, 2));
    if (points.empty()) return rows.empty() ? "no steps yet\n" : "no loss is finite\n";

    std::vector<std::string> labels(static_cast<std::size_t>(lines));
    std::size_t label_width = 0;
    for (const double tick : points.loss.ticks) {
        std::string text = points.loss.text(tick);
        label_width = std::max(label_width, text.size());
        const int line = lines - 1 - pixel(points.loss.place(tick), lines);
        labels[static_cast<std::size_t>(line)] = std::move(text);
    }
    const int columns = std::max(all_columns - static_cast<int>(label_width) - 2, 8);
    Canvas canvas(columns, lines, options.utf8);
    draw(canvas, points);

    std::string out;
    for (int line = 0; line < lines; ++line) {
        const std::string& label = labels[static_cast<std::size_t>(line)];
        out += fmt::format("{:>{}} ", label, label_width);
        out += options.utf8 ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+");
        out += canvas.line(line) + "\n";
    }
    // Each text below its step, where it doesn't touch the one before it.
    std::string scale;
    for (const double tick : points.steps.ticks) {
        const std::string text = points.steps.text(tick);
        const int size = static_cast<int>(text.size());
        const int middle =
            static_cast<int>(label_width) + 2 + pixel(points.steps.place(tick), columns);
        const int begin = std::clamp(middle - size / 2, 0, std::max(all_columns - size, 0));
        if (!scale.empty() && static_cast<std::size_t>(begin) <= scale.size()) continue;
        scale.resize(static_cast<std::size_t>(begin), ' ');
        scale += text;
    }
    out += std::string(label_width + 1, ' ') + (options.utf8 ? "└" : "+");
    for (int i = 0; i < columns; ++i) out += options.utf8 ? "─" : "-";
    return out + "\n" + scale + "\n" + legend(points, options.utf8) + "\n";
}

}  // namespace glassgrad
