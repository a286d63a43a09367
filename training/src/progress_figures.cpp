#include <glassgrad/training/progress_text.hpp>

#include <algorithm>

namespace glassgrad {
namespace {

constexpr std::size_t rate_window = 32;
constexpr std::int64_t steps_left_out = 3;
constexpr std::size_t most_parts = 16;

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

void remember(std::vector<double>& values, double value) {
    if (values.size() == rate_window) values.erase(values.begin());
    values.push_back(value);
}

}  // namespace

void StepRate::add(const StepReport& report) {
    const auto tokens = static_cast<double>(report.tokens - tokens_);
    tokens_ = report.tokens;
    if (++seen_ <= steps_left_out || !(report.seconds > 0)) return;
    remember(rates_, tokens / report.seconds);
    remember(seconds_, report.seconds);
}

std::optional<double> StepRate::tokens_per_s() const {
    if (rates_.empty()) return std::nullopt;
    return median(rates_);
}

std::optional<double> StepRate::seconds_per_step() const {
    if (seconds_.empty()) return std::nullopt;
    return median(seconds_);
}

void LossHistory::add(double loss) {
    sum_ += loss;
    if (++count_ < stride_) return;
    if (means_.size() == most_parts) {
        for (std::size_t i = 0; i < most_parts / 2; ++i) {
            means_[i] = (means_[2 * i] + means_[2 * i + 1]) / 2;
        }
        means_.resize(most_parts / 2);
        stride_ *= 2;
        if (count_ < stride_) return;
    }
    means_.push_back(sum_ / static_cast<double>(count_));
    sum_ = 0;
    count_ = 0;
}

std::vector<double> LossHistory::means() const {
    std::vector<double> all = means_;
    if (count_ > 0 && all.size() < most_parts) all.push_back(sum_ / static_cast<double>(count_));
    return all;
}

}  // namespace glassgrad
