#include <glassgrad/training/loss_curve.hpp>

#include "append_file.hpp"
#include "loss_points.hpp"

#include <glassgrad/tensor/detail/text.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {
namespace {

using detail::LossPoint;
using detail::LossPoints;

constexpr double width = 760;
constexpr double height = 420;
constexpr double left = 68;
constexpr double right = width - 24;
constexpr double top = 64;
constexpr double bottom = height - 56;
constexpr std::size_t most_parts = 600;
constexpr std::size_t most_marks = 60;

// One class around all, so that inline it leaves the page's own styles alone.
constexpr std::string_view style = R"(<style>
.loss-curve{--paper:#fff;--ink:#1f2328;--soft:#59636e;--grid:#e4e7eb;--train:#2563b8;--val:#c2410c;--bad:#b42318;background:var(--paper);font-family:system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){.loss-curve{--paper:#14181d;--ink:#e6e9ed;--soft:#a3adb8;--grid:#2a3139;--train:#6cabf5;--val:#f5935a;--bad:#ff8379}}
.loss-curve text{font-size:13px;fill:var(--soft);font-variant-numeric:tabular-nums}
.loss-curve .title{font-size:17px;font-weight:600;fill:var(--ink)}
.loss-curve .legend{fill:var(--ink)}
.loss-curve .grid{stroke:var(--grid);stroke-width:1}
.loss-curve .axis{stroke:var(--soft);stroke-width:1;fill:none}
.loss-curve polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}
.loss-curve .raw{stroke:var(--train);stroke-width:1;stroke-opacity:.35}
.loss-curve .train{stroke:var(--train);stroke-width:2}
.loss-curve .val{stroke:var(--val);stroke-width:2}
.loss-curve .dot{fill:var(--val);stroke:var(--paper);stroke-width:1}
.loss-curve .bad{stroke:var(--bad);stroke-width:2}
</style>
)";

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : detail::repair_utf8(text)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '&')
            out += "&amp;";
        else if (c == '<')
            out += "&lt;";
        else if (c == '>')
            out += "&gt;";
        else if (c == '"')
            out += "&quot;";
        else if (byte >= 0x20 || c == '\n' || c == '\t')
            out += c;
    }
    return out;
}

class Drawing {
  public:
    explicit Drawing(const LossPoints& points) : points_(points) {}

    double x(double step) const { return left + points_.steps.place(step) * (right - left); }
    double y(double loss) const { return bottom - points_.loss.place(loss) * (bottom - top); }

    template <class... Args>
    void add(fmt::format_string<Args...> text, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), text, std::forward<Args>(args)...);
        out_ += '\n';
    }

    void axes() {
        for (const double tick : points_.loss.ticks) {
            add(R"(<line class="grid" x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"/>)", left,
                y(tick), right, y(tick));
            add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>)", left - 9,
                y(tick) + 4.5, points_.loss.text(tick));
        }
        add(R"(<path class="axis" d="M{0:.1f} {1:.1f}V{2:.1f}H{3:.1f}"/>)", left, top, bottom,
            right);
        for (const double tick : points_.steps.ticks) {
            add(R"(<path class="axis" d="M{:.1f} {:.1f}v5"/>)", x(tick), bottom);
            add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>)", x(tick),
                bottom + 21, points_.steps.text(tick));
        }
        add(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="middle">step</text>)", (left + right) / 2,
            height - 12);
        add(R"svg(<text transform="translate(18 {:.1f}) rotate(-90)" text-anchor="middle">loss{}</text>)svg",
            (top + bottom) / 2, points_.loss.logarithmic ? " (logarithmic)" : "");
    }

    void curve(std::string_view kind, const std::vector<LossPoint>& all) {
        if (all.empty()) return;
        out_ += fmt::format(R"(<polyline class="{}" points=")", kind);
        for (const LossPoint& point : detail::thinned(all, most_parts)) {
            out_ += fmt::format("{:.1f},{:.1f} ", x(point.step), y(point.loss));
        }
        out_.back() = '"';
        out_ += "/>\n";
    }

    void validation() {
        curve("val", points_.validation);
        if (points_.validation.size() > most_marks) return;
        for (const LossPoint& point : points_.validation) {
            add(R"(<circle class="dot" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>step {:.0f}: {:.4g}</title></circle>)",
                x(point.step), y(point.loss), point.step, point.loss);
        }
    }

    void not_finite() {
        const std::size_t shown = std::min(points_.not_finite.size(), most_marks);
        for (std::size_t i = 0; i < shown; ++i) {
            const auto step = static_cast<double>(points_.not_finite[i]);
            add(R"(<path class="bad" d="M{:.1f} {:.1f}l8 8m0 -8l-8 8"><title>step {}: not finite</title></path>)",
                x(step) - 4, top, points_.not_finite[i]);
        }
    }

    void legend() {
        double at = left;
        const auto entry = [&](std::string_view kind, const std::string& text) {
            add(R"(<polyline class="{}" points="{:.1f},46 {:.1f},46"/>)", kind, at, at + 22);
            add(R"(<text class="legend" x="{:.1f}" y="50.5">{}</text>)", at + 29, text);
            at += 29 + 7.4 * static_cast<double>(text.size()) + 22;
        };
        if (!points_.train.empty()) {
            const auto& curve = points_.smooth.empty() ? points_.train : points_.smooth;
            entry("train", fmt::format("training {:.4g}", curve.back().loss));
        }
        if (points_.best) {
            entry("val", fmt::format("validation {:.4g}, best {:.4g} at step {:.0f}",
                                     points_.validation.back().loss, points_.best->loss,
                                     points_.best->step));
        }
    }

    std::string take() { return std::move(out_); }

  private:
    const LossPoints& points_;
    std::string out_;
};

}  // namespace

std::string loss_curve_svg(std::span<const Metrics> rows, const LossCurveOptions& options) {
    const LossPoints points = detail::loss_points(rows, 8, 7);
    const std::string title = escaped(options.title);
    Drawing drawing(points);
    drawing.add(
        R"(<svg xmlns="http://www.w3.org/2000/svg" class="loss-curve" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" aria-label="{2}">)",
        width, height, title);
    drawing.add("{}<rect width=\"{}\" height=\"{}\" fill=\"var(--paper)\"/>", style, width, height);
    drawing.add(R"(<text class="title" x="{}" y="26">{}</text>)", left, title);
    if (points.empty()) {
        drawing.add(R"(<text x="{}" y="{}">{}</text>)", left, top,
                    rows.empty() ? "no steps yet" : "no loss is finite");
    } else {
        drawing.axes();
        drawing.curve(points.smooth.empty() ? "train" : "raw", points.train);
        drawing.curve("train", points.smooth);
        drawing.validation();
        drawing.not_finite();
        drawing.legend();
    }
    return drawing.take() + "</svg>\n";
}

void write_loss_curve(const std::string& path, std::span<const Metrics> rows,
                      const LossCurveOptions& options) {
    detail::replace_file("write_loss_curve", path, loss_curve_svg(rows, options));
}

}  // namespace glassgrad
