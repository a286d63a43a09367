#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace glassgrad {
namespace {

void require_rate(std::string_view schedule, std::string_view what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw ValueError(
        fmt::format("{}: {} {} must be finite and not negative", schedule, what, value));
}

void require_warmup(std::string_view schedule, std::int64_t steps, std::int64_t warmup) {
    if (warmup >= 0 && steps > warmup) return;
    throw ValueError(fmt::format("{}: {} steps with a warm-up of {}", schedule, steps, warmup),
                     "steps must be more than warmup, and warmup not negative");
}

/// From `from` at 0 to `to` at 1.
double half_cosine(double from, double to, double at) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * at));
}

template <class F>
Schedule warmed(double lr, std::int64_t warmup, const F& after) {
    return [=](std::int64_t step) {
        if (step < warmup) {
            return lr * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
        }
        return after(step);
    };
}

/// How much of the way after the warm-up is done, 0 to 1.
double progress(std::int64_t step, std::int64_t warmup, std::int64_t steps) {
    const auto done = static_cast<double>(step - warmup);
    return std::min(1.0, done / static_cast<double>(steps - warmup));
}

}  // namespace

Schedule constant_schedule(double lr) {
    require_rate("constant_schedule", "lr", lr);
    return [lr](std::int64_t) { return lr; };
}

Schedule linear_schedule(const LinearScheduleOptions& options) {
    require_rate("linear_schedule", "lr", options.lr);
    require_rate("linear_schedule", "last", options.last);
    require_warmup("linear_schedule", options.steps, options.warmup);
    return warmed(options.lr, options.warmup, [=](std::int64_t step) {
        const double at = progress(step, options.warmup, options.steps);
        return options.lr + (options.last - options.lr) * at;
    });
}

Schedule cosine_schedule(const CosineScheduleOptions& options) {
    require_rate("cosine_schedule", "lr", options.lr);
    require_rate("cosine_schedule", "last", options.last);
    require_warmup("cosine_schedule", options.steps, options.warmup);
    return warmed(options.lr, options.warmup, [=](std::int64_t step) {
        const double at = progress(step, options.warmup, options.steps);
        return half_cosine(options.lr, options.last, at);
    });
}

Schedule one_cycle_schedule(const OneCycleScheduleOptions& options) {
    require_rate("one_cycle_schedule", "max_lr", options.max_lr);
    if (options.steps < 1 || !(options.up_share >= 0 && options.up_share <= 1) ||
        !(options.first_divisor > 0) || !(options.last_divisor > 0)) {
        throw ValueError(
            fmt::format("one_cycle_schedule: {} steps, of which {} go up, from 1/{}, to 1/{} of it",
                        options.steps, options.up_share, options.first_divisor,
                        options.last_divisor),
            "there must be a step, the share lies in 0 to 1, divisors are positive");
    }
    return [=](std::int64_t step) {
        const double first = options.max_lr / options.first_divisor;
        const double top = options.up_share * static_cast<double>(options.steps) - 1;
        const auto end = static_cast<double>(options.steps - 1);
        const double now = std::min(static_cast<double>(step), end);
        if (now <= top && top > 0) return half_cosine(first, options.max_lr, now / top);
        const double at = end > top ? (now - top) / (end - top) : 1;
        return half_cosine(options.max_lr, first / options.last_divisor, at);
    };
}

Schedule step_schedule(const StepScheduleOptions& options) {
    require_rate("step_schedule", "lr", options.lr);
    require_rate("step_schedule", "factor", options.factor);
    if (options.every < 1) {
        throw ValueError(fmt::format("step_schedule: every {} steps", options.every));
    }
    return [=](std::int64_t step) {
        const std::int64_t cuts = step / options.every;
        return options.lr * std::pow(options.factor, static_cast<double>(cuts));
    };
}

Schedule warmed_up(Schedule schedule, std::int64_t warmup) {
    if (warmup < 0) throw ValueError(fmt::format("warmed_up: a warm-up of {} steps", warmup));
    return [schedule = std::move(schedule), warmup](std::int64_t step) {
        const double rate = schedule(step);
        if (step >= warmup) return rate;
        return rate * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
    };
}

Plateau::Plateau(const PlateauOptions& options)
    : options_(options), state_{.best = std::numeric_limits<double>::infinity()} {
    require_rate("plateau", "factor", options.factor);
    require_rate("plateau", "min_lr", options.min_lr);
    if (options.factor >= 1 || options.patience < 0 || options.cooldown < 0) {
        throw ValueError(fmt::format("plateau: factor {}, patience {}, cooldown {}", options.factor,
                                     options.patience, options.cooldown),
                         "the factor is below 1, the counts are not negative");
    }
}

double Plateau::next(double lr, double loss) {
    if (loss < state_.best * (1 - options_.threshold) ||
        (std::isinf(state_.best) && std::isfinite(loss))) {
        state_.best = loss;
        state_.bad = 0;
    } else {
        ++state_.bad;
    }
    if (state_.cooling > 0) {
        --state_.cooling;
        state_.bad = 0;
    }
    if (state_.bad <= options_.patience) return lr;
    state_.cooling = options_.cooldown;
    state_.bad = 0;
    const double cut = std::max(lr * options_.factor, options_.min_lr);
    return lr - cut > 1e-8 ? cut : lr;  // PyTorch's eps
}

LrFinding find_lr(const std::function<double(double lr)>& train, const LrFinderOptions& options) {
    if (!(options.first > 0) || !(options.last > options.first) || options.steps < 2 ||
        !(options.stop_factor > 1) || !(options.smoothing >= 0 && options.smoothing < 1)) {
        throw ValueError(fmt::format("find_lr: {} steps from {} to {}", options.steps,
                                     options.first, options.last),
                         "the rates must rise from above 0, in two steps at least");
    }
    LrFinding found;
    const double ratio = options.last / options.first;
    double average = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < options.steps; ++i) {
        const double share = static_cast<double>(i) / static_cast<double>(options.steps - 1);
        const double lr = options.first * std::pow(ratio, share);
        const double loss = train(lr);
        if (!std::isfinite(loss)) break;
        average = options.smoothing * average + (1 - options.smoothing) * loss;
        // Early averages lean towards 0.
        const double smooth =
            average / (1 - std::pow(options.smoothing, static_cast<double>(i + 1)));
        if (smooth > options.stop_factor * least) break;
        least = std::min(least, smooth);
        found.rates.push_back(lr);
        found.losses.push_back(smooth);
    }
    const auto last = static_cast<std::size_t>(
        std::min_element(found.losses.begin(), found.losses.end()) - found.losses.begin());
    double steepest = 0;
    for (std::size_t i = 1; i < std::min(last + 1, found.losses.size()); ++i) {
        const double slope = found.losses[i] - found.losses[i - 1];
        if (slope < steepest) {
            steepest = slope;
            found.suggestion = found.rates[i];
        }
    }
    return found;
}

}  // namespace glassgrad
