#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/stopping.hpp>

#include <fmt/format.h>

namespace glassgrad {

EarlyStop::EarlyStop(const EarlyStopOptions& options) : options_(options) {
    if (options.patience < 0 || !(options.min_delta >= 0)) {
        throw ValueError(
            fmt::format("early_stop: patience {} and min_delta {} must not be negative",
                        options.patience, options.min_delta));
    }
}

bool EarlyStop::next(double loss) noexcept {
    if (improves(loss)) {
        state_.best = loss;
        state_.bad = 0;
        return false;
    }
    return ++state_.bad > options_.patience;
}

}  // namespace glassgrad
