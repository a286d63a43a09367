#pragma once
// What a trainer is put together from, as its options say.

#include <glassgrad/training/trainer.hpp>

namespace glassgrad::detail {

/// The rate over the steps; of a plateau, the share of its rate.
Schedule make_schedule(const TrainOptions& options);
PlateauOptions plateau_options(const TrainOptions& options);
/// One, or Muon and the AdamW beside it.
std::vector<std::unique_ptr<Optimizer>> make_optimizers(Module& model, const TrainOptions& options);

}  // namespace glassgrad::detail
