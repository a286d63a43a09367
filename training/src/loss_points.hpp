#pragma once
// What a loss curve shows, before anything is drawn.

#include "plot_axis.hpp"

#include <glassgrad/training/metrics.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace glassgrad::detail {

struct LossPoint {
    double step;
    double loss;
};

struct LossPoints {
    std::vector<LossPoint> train;   ///< finite ones
    std::vector<LossPoint> smooth;  ///< moving average; empty for short runs
    std::vector<LossPoint> validation;
    std::vector<std::int64_t> not_finite;  ///< steps
    std::optional<LossPoint> best;         ///< of validation
    PlotAxis steps;
    PlotAxis loss;

    bool empty() const noexcept { return train.empty() && validation.empty(); }
};

/// With axes of about so many ticks.
LossPoints loss_points(std::span<const Metrics> rows, int step_ticks, int loss_ticks);

/// At most 2 `parts` points that look the same: the lowest and the highest of each part.
std::vector<LossPoint> thinned(const std::vector<LossPoint>& points, std::size_t parts);

}  // namespace glassgrad::detail
