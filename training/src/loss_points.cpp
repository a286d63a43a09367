#include "loss_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad::detail {
namespace {

constexpr std::size_t shortest_smoothed = 50;
constexpr double logarithmic_from = 30;
constexpr double largest_loss = 1e300;  // so that an axis has room beyond it; larger is as infinite

/// An exponential average over about a fiftieth of the run, from both sides, so that it neither
/// lags behind nor hurries ahead.
std::vector<LossPoint> smoothed(const std::vector<LossPoint>& points) {
    if (points.size() < shortest_smoothed) return {};
    const double keep = 1 - 1 / (static_cast<double>(points.size()) / 100 + 1);
    std::vector<LossPoint> out = points;
    std::vector<double> weights(points.size(), 1);
    const auto pass = [&](auto index) {
        double sum = 0;
        double weight = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            out[index(i)].loss += sum;
            weights[index(i)] += weight;
            sum = keep * (sum + points[index(i)].loss);
            weight = keep * (weight + 1);
        }
    };
    pass([](std::size_t i) { return i; });
    pass([&](std::size_t i) { return points.size() - 1 - i; });
    for (std::size_t i = 0; i < out.size(); ++i) out[i].loss /= weights[i];
    return out;
}

}  // namespace

LossPoints loss_points(std::span<const Metrics> rows, int step_ticks, int loss_ticks) {
    LossPoints out;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    const auto add = [&](std::vector<LossPoint>& points, std::int64_t step, double loss) {
        if (!(std::abs(loss) <= largest_loss)) return false;
        points.push_back({static_cast<double>(step), loss});
        low = std::min(low, loss);
        high = std::max(high, loss);
        return true;
    };
    for (const Metrics& row : rows) {
        bool finite = add(out.train, row.step, row.loss);
        if (row.val_loss && !add(out.validation, row.step, *row.val_loss)) finite = false;
        if (!finite) out.not_finite.push_back(row.step);
    }
    for (const LossPoint& point : out.validation) {
        if (!out.best || point.loss < out.best->loss) out.best = point;
    }
    if (out.empty()) return out;
    out.smooth = smoothed(out.train);
    const auto first = static_cast<double>(rows.front().step);
    out.steps =
        linear_axis(first <= 1 ? 0 : first, static_cast<double>(rows.back().step), step_ticks);
    if (low > 0 && high / low >= logarithmic_from) {
        out.loss = logarithmic_axis(low / 1.1, high * 1.1, loss_ticks);
    } else {
        const double room = (high / 2 - low / 2) * 0.1;
        // No room below a loss that comes close to 0, where nothing can be.
        const double bottom = low >= 0 && low - room < 0 ? 0 : low - room;
        out.loss =
            linear_axis(high > low ? bottom : low, high > low ? high + room : high, loss_ticks);
    }
    return out;
}

std::vector<LossPoint> thinned(const std::vector<LossPoint>& points, std::size_t parts) {
    if (points.size() <= 2 * parts) return points;
    std::vector<LossPoint> out;
    for (std::size_t part = 0; part < parts; ++part) {
        const auto begin =
            points.begin() + static_cast<std::ptrdiff_t>(points.size() * part / parts);
        const auto end =
            points.begin() + static_cast<std::ptrdiff_t>(points.size() * (part + 1) / parts);
        const auto less = [](const LossPoint& a, const LossPoint& b) { return a.loss < b.loss; };
        const auto [lowest, highest] = std::minmax_element(begin, end, less);
        out.push_back(*std::min(lowest, highest));
        if (lowest != highest) out.push_back(*std::max(lowest, highest));
    }
    return out;
}

}  // namespace glassgrad::detail
