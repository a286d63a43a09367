// What of a trainer is in a checkpoint.

#include <glassgrad/training/trainer.hpp>

#include <fmt/format.h>

namespace glassgrad {
namespace {

/// Muon's, or the only one, is `optimizer`.
std::string part_of(std::size_t optimizer) {
    return optimizer == 0 ? "optimizer" : "optimizer_rest";
}

Tensor count_of(std::int64_t value) { return from_span<std::int64_t>({&value, 1}, {}); }

/// The numbers of a part, or an error that says what is missing.
std::vector<double> numbers(const StateDict& part, std::string_view name, std::size_t count) {
    for (const auto& [each, value] : part) {
        if (each != name || static_cast<std::size_t>(value.numel()) != count) continue;
        const Tensor values = value.astype(f64);
        return {values.values<double>().begin(), values.values<double>().end()};
    }
    throw ValueError(
        fmt::format("trainer: the checkpoint has no trainer.{} of {} numbers", name, count),
        "it was not written by a trainer");
}

}  // namespace

Checkpoint Trainer::checkpoint() const {
    Checkpoint checkpoint;
    checkpoint.step = step_;
    checkpoint.add("model", model_.state_dict({.repeat_tied = false}));
    for (std::size_t i = 0; i < optimizers_.size(); ++i) {
        checkpoint.add(part_of(i), optimizers_[i]->state_dict());
    }
    if (average_) checkpoint.add("average", average_->state_dict());
    const EarlyStop::State& stop = early_stop_.state();
    const Plateau::State& plateau = plateau_.state();
    const auto bad = static_cast<double>(stop.bad);
    const std::vector<double> flat{plateau_lr_, plateau.best, static_cast<double>(plateau.bad),
                                   static_cast<double>(plateau.cooling)};
    checkpoint.add("trainer", {{"samples", count_of(samples_)},
                               {"early_stop", tensor({stop.best, bad}, f64)},
                               {"plateau", from_values(flat, {4}, f64)}});
    return checkpoint;
}

void Trainer::resume(const Checkpoint& checkpoint) {
    const StateDict own = checkpoint.part("trainer");
    const auto samples = static_cast<std::int64_t>(numbers(own, "samples", 1)[0]);
    const std::vector<double> stop = numbers(own, "early_stop", 2);
    const std::vector<double> plateau = numbers(own, "plateau", 4);
    const StateDict before = model_.state_dict();
    const StateDict average = average_ ? average_->state_dict() : StateDict();
    std::vector<StateDict> optimizers;
    for (const auto& each : optimizers_) optimizers.push_back(each->state_dict());
    try {
        model_.load_state_dict(checkpoint.part("model"));
        if (average_) average_->load_state_dict(checkpoint.part("average"));
        for (std::size_t i = 0; i < optimizers_.size(); ++i) {
            optimizers_[i]->load_state_dict(checkpoint.part(part_of(i)));
        }
    } catch (...) {
        model_.load_state_dict(before);
        if (average_) average_->load_state_dict(average);
        for (std::size_t i = 0; i < optimizers_.size(); ++i) {
            optimizers_[i]->load_state_dict(optimizers[i]);
        }
        throw;
    }
    step_ = checkpoint.step;
    samples_ = samples;
    early_stop_.set_state({.best = stop[0], .bad = static_cast<std::int64_t>(stop[1])});
    plateau_lr_ = plateau[0];
    plateau_.set_state({.best = plateau[1],
                        .bad = static_cast<std::int64_t>(plateau[2]),
                        .cooling = static_cast<std::int64_t>(plateau[3])});
}

StateDict trained_weights(const Checkpoint& checkpoint) {
    StateDict average = checkpoint.part("average");
    std::erase_if(average, [](const auto& each) { return each.first == "updates"; });
    return average.empty() ? checkpoint.part("model") : average;
}

}  // namespace glassgrad
