#include "plot_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace glassgrad::detail {

double PlotAxis::place(double x) const {
    if (logarithmic) {
        return (std::log(x) - std::log(low)) / (std::log(high) - std::log(low));
    }
    return (x / 2 - low / 2) / (high / 2 - low / 2);
}

std::string PlotAxis::text(double tick) const {
    const double size = std::max(std::abs(low), std::abs(high));
    if (logarithmic) return fmt::format("{:.4g}", tick);
    if (size >= 1e9 || (size < 1e-3 && size > 0)) return fmt::format("{:.3g}", tick);
    if (size >= 1e6 && spacing >= 1e5) return fmt::format("{:g}M", tick / 1e6);
    if (size >= 1e5 && spacing >= 100) return fmt::format("{:g}k", tick / 1e3);
    const int digits = std::clamp(static_cast<int>(-std::floor(std::log10(spacing) + 1e-9)), 0, 9);
    return fmt::format("{:.{}f}", tick, digits);
}

PlotAxis linear_axis(double low, double high, int ticks) {
    if (!(high > low)) {
        const double room = low == 0 ? 1 : std::abs(low) / 10;
        low -= room;
        high += room;
    }
    PlotAxis axis{.low = low, .high = high, .logarithmic = false, .ticks = {}};
    const double raw = (high / 2 - low / 2) / ticks * 2;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    const double part = raw / power;
    axis.spacing = power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
    const double first = std::ceil(low / axis.spacing - 1e-9);
    for (int i = 0; i <= 2 * ticks; ++i) {
        const double tick = (first + i) * axis.spacing;
        if (tick > high + axis.spacing * 1e-9) break;
        axis.ticks.push_back(tick == 0 ? 0 : tick);
    }
    return axis;
}

PlotAxis logarithmic_axis(double low, double high, int ticks) {
    PlotAxis axis{.low = low, .high = high, .logarithmic = true, .ticks = {}};
    const int first = static_cast<int>(std::floor(std::log10(low)));
    const int last = static_cast<int>(std::ceil(std::log10(high)));
    // Powers of ten alone, or some of them, where there are many.
    const int every = std::max((last - first + ticks - 1) / ticks, 1);
    const bool between = 3 * (last - first) <= 2 * ticks;
    for (int power = first; power <= last; ++power) {
        if ((power - first) % every != 0) continue;
        for (const double digit : {1.0, 2.0, 5.0}) {
            const double tick = digit * std::pow(10.0, power);
            if ((digit == 1 || between) && tick >= low && tick <= high) axis.ticks.push_back(tick);
        }
    }
    return axis;
}

}  // namespace glassgrad::detail
