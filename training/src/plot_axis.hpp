#pragma once
// One axis of a plot: its range, its ticks and their texts.

#include <string>
#include <vector>

namespace glassgrad::detail {

struct PlotAxis {
    double low = 0;
    double high = 1;
    bool logarithmic = false;
    std::vector<double> ticks;  ///< within the range

    /// 0 at the low end, 1 at the high one.
    double place(double x) const;
    std::string text(double tick) const;

    double spacing = 1;  ///< of the ticks of a linear axis
};

/// An axis that holds low to high, both finite, and has about `ticks` ticks at 1, 2 or 5 times a
/// power of ten.
PlotAxis linear_axis(double low, double high, int ticks);
/// For positive ends, best when they are far from each other.
PlotAxis logarithmic_axis(double low, double high, int ticks);

}  // namespace glassgrad::detail
