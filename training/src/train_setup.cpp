#include "train_setup.hpp"

#include <algorithm>

namespace glassgrad::detail {

Schedule make_schedule(const TrainOptions& options) {
    const std::int64_t steps = std::max<std::int64_t>(options.steps, 1);
    const std::int64_t warmup = options.warmup.value_or(0);
    switch (options.schedule) {
        case LrSchedule::linear:
            return linear_schedule({.lr = options.lr,
                                    .last = options.min_lr,
                                    .steps = steps,
                                    .warmup = options.warmup.value_or(options.steps / 20)});
        case LrSchedule::cosine:
            return cosine_schedule({.lr = options.lr,
                                    .last = options.min_lr,
                                    .steps = steps,
                                    .warmup = options.warmup.value_or(options.steps / 20)});
        case LrSchedule::one_cycle:
            return one_cycle_schedule({.max_lr = options.lr,
                                       .steps = steps,
                                       .up_share = options.up_share,
                                       .first_divisor = options.first_divisor,
                                       .last_divisor = options.last_divisor});
        case LrSchedule::step:
            return warmed_up(
                step_schedule(
                    {.lr = options.lr, .every = options.step_every, .factor = options.step_factor}),
                warmup);
        case LrSchedule::plateau: return warmed_up(constant_schedule(1), warmup);
        case LrSchedule::constant: break;
    }
    return warmed_up(constant_schedule(options.lr), warmup);
}

PlateauOptions plateau_options(const TrainOptions& options) {
    PlateauOptions plateau = options.plateau;
    plateau.min_lr = options.min_lr;
    return plateau;
}

std::vector<std::unique_ptr<Optimizer>> make_optimizers(Module& model,
                                                        const TrainOptions& options) {
    std::vector<std::unique_ptr<Optimizer>> made;
    const AdamOptions adam{
        .lr = options.lr, .beta1 = options.beta1, .beta2 = options.beta2, .eps = options.eps};
    const auto groups = [&] { return decay_matrices(model, options.weight_decay); };
    switch (options.optimizer) {
        case OptimizerKind::adamw: made.push_back(std::make_unique<AdamW>(groups(), adam)); break;
        case OptimizerKind::adam: made.push_back(std::make_unique<Adam>(groups(), adam)); break;
        case OptimizerKind::sgd:
            made.push_back(std::make_unique<SGD>(
                groups(),
                SgdOptions{
                    .lr = options.lr, .momentum = options.momentum, .nesterov = options.nesterov}));
            break;
        case OptimizerKind::lion:
            made.push_back(std::make_unique<Lion>(
                groups(),
                LionOptions{.lr = options.lr, .beta1 = options.beta1, .beta2 = options.beta2}));
            break;
        case OptimizerKind::muon: {
            MuonGroups parts = muon_groups(model, options.weight_decay);
            if (!parts.matrices.empty()) {
                made.push_back(std::make_unique<Muon>(std::move(parts.matrices),
                                                      MuonOptions{.lr = options.lr,
                                                                  .momentum = options.momentum,
                                                                  .nesterov = options.nesterov}));
            }
            for (ParameterGroup& group : parts.rest) {
                group.lr_scale = options.adamw_lr / options.lr;
            }
            if (!parts.rest.empty()) {
                made.push_back(std::make_unique<AdamW>(std::move(parts.rest), adam));
            }
            break;
        }
    }
    return made;
}

}  // namespace glassgrad::detail
