#include <glassgrad/training/trainer.hpp>

#include <fmt/format.h>

#include <cmath>

namespace glassgrad {

void validate(const TrainOptions& options) {
    const auto require = [](bool fits, std::string_view what, auto value, std::string_view rule) {
        if (!fits) throw ValueError(fmt::format("trainer: {} {} {}", what, value, rule));
    };
    constexpr std::string_view positive = "must be positive", not_negative = "must not be negative";
    // Dropout's position has 24 bits for the step and 12 for the micro-batch.
    require(options.steps >= 0 && options.steps < 1 << 24, "steps", options.steps,
            "must be 0 to 16777215");
    require(options.batch_size >= 1, "batch_size", options.batch_size, positive);
    const std::int64_t micro = options.micro_batch == 0 ? options.batch_size : options.micro_batch;
    require(micro >= 1 && options.batch_size % micro == 0, "micro_batch", micro,
            fmt::format("does not divide batch_size {}", options.batch_size));
    require(options.batch_size / micro <= 4096, "micro_batch", micro,
            "makes more than 4096 of a batch");
    require(options.micro_batches_per_pass >= 1, "micro_batches_per_pass",
            options.micro_batches_per_pass, positive);
    const std::int64_t warmup = options.warmup.value_or(0);
    require(warmup >= 0 && warmup <= options.steps, "warmup", warmup,
            fmt::format("is not within the {} steps", options.steps));
    require(std::isfinite(options.lr) && options.lr > 0, "lr", options.lr, positive);
    require(options.min_lr >= 0 && options.min_lr <= options.lr, "min_lr", options.min_lr,
            fmt::format("is not within 0 to lr {}", options.lr));
    require(options.adamw_lr > 0 && std::isfinite(options.adamw_lr), "adamw_lr", options.adamw_lr,
            positive);
    require(options.clip >= 0, "clip", options.clip, not_negative);
    require(options.clip_value >= 0, "clip_value", options.clip_value, not_negative);
    require(options.average_decay >= 0 && options.average_decay < 1, "average_decay",
            options.average_decay, "is outside 0 to 1");
    require(options.eval_every >= 0, "eval_every", options.eval_every, not_negative);
    require(options.eval_batches >= 1, "eval_batches", options.eval_batches, positive);
    require(options.patience >= 0, "patience", options.patience, not_negative);
    require(options.min_delta >= 0, "min_delta", options.min_delta, not_negative);
    require(options.eval_every > 0 || options.patience == 0, "patience", options.patience,
            "counts evaluations, and eval_every is 0");
    require(options.eval_every > 0 || options.schedule != LrSchedule::plateau, "eval_every",
            options.eval_every, "leaves nothing for a plateau to go by");
    require(options.sample_every >= 0, "sample_every", options.sample_every, not_negative);
    require(options.checkpoint_every >= 0, "checkpoint_every", options.checkpoint_every,
            not_negative);
}

}  // namespace glassgrad
