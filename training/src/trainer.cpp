#include <glassgrad/autograd/anomaly.hpp>
#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/training/clip.hpp>
#include <glassgrad/training/gradient_tree.hpp>
#include <glassgrad/training/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace glassgrad {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 2;

Schedule make_schedule(const TrainOptions& options) {
    const std::int64_t steps = std::max<std::int64_t>(options.steps, 1);
    const std::int64_t warmup = options.warmup.value_or(options.steps / 20);
    switch (options.schedule) {
        case LrSchedule::linear:
            return linear_schedule(
                {.lr = options.lr, .last = options.min_lr, .steps = steps, .warmup = warmup});
        case LrSchedule::cosine:
            return cosine_schedule(
                {.lr = options.lr, .last = options.min_lr, .steps = steps, .warmup = warmup});
        case LrSchedule::one_cycle:
            return one_cycle_schedule({.max_lr = options.lr, .steps = steps});
        case LrSchedule::constant:
        case LrSchedule::plateau: break;
    }
    return constant_schedule(options.lr);
}

PlateauOptions plateau_options(const TrainOptions& options) {
    PlateauOptions plateau = options.plateau;
    plateau.min_lr = options.min_lr;
    return plateau;
}

TrainOptions checked(TrainOptions options) {
    if (options.micro_batch == 0) options.micro_batch = options.batch_size;
    validate(options);
    return options;
}

/// A NaN's sign means nothing and differs between machines.
std::string shown(double x) { return std::isnan(x) ? "NaN" : fmt::format("{}", x); }

/// The first bad number on a line.
std::string told(const AnomalyReport& report) {
    return fmt::format("{} in {} of {}{}, in the {} pass{}", report.nan ? "NaN" : "an infinity",
                       report.where, report.op, report.scope.empty() ? "" : " in " + report.scope,
                       report.pass == AnomalyReport::Pass::forward ? "forward" : "backward",
                       report.cause == AnomalyReport::Cause::made ? "" : ", which did not make it");
}

}  // namespace

Trainer::Trainer(CausalModel& model, TextBatches train, std::optional<TextBatches> validation,
                 const TrainOptions& options, std::unique_ptr<Optimizer> optimizer)
    : model_(model),
      train_(std::move(train)),
      validation_(std::move(validation)),
      options_(checked(options)),
      parameters_(model.parameters()),
      optimizer_(std::move(optimizer)),
      schedule_(make_schedule(options_)),
      plateau_(plateau_options(options_)),
      plateau_lr_(options_.lr),
      early_stop_({.patience = options_.patience == 0 ? never : options_.patience}),
      health_(model) {
    const std::int64_t longest =
        std::max(train_.context(), validation_ ? validation_->context() : 0);
    if (longest > model.context_length()) {
        throw ValueError(
            fmt::format("trainer: windows of {} tokens do not fit the model's context "
                        "of {}",
                        longest, model.context_length()));
    }
    if (optimizer_ == nullptr) {
        optimizer_ = std::make_unique<AdamW>(
            decay_matrices(model, options_.weight_decay),
            AdamOptions{.lr = options_.lr, .beta1 = options_.beta1, .beta2 = options_.beta2});
    }
    if (options_.average_decay > 0) average_.emplace(model, options_.average_decay);
}

double Trainer::lr() const {
    return options_.schedule == LrSchedule::plateau ? plateau_lr_ : schedule_(step_);
}

Variable Trainer::micro_loss(std::int64_t number) {
    seed_dropout(
        model_, options_.seed,
        (static_cast<std::uint64_t>(step_) << 40) + (static_cast<std::uint64_t>(number) << 28));
    const Batch batch =
        train_.batch(samples_ + number * options_.micro_batch, options_.micro_batch);
    return cross_entropy(model_(batch.inputs), Variable(batch.targets));
}

StepReport Trainer::step() {
    const auto begin = std::chrono::steady_clock::now();
    const double rate = lr();
    model_.train();
    optimizer_->zero_grad();

    GradientTree tree(parameters_);
    double loss = 0;
    while (tree.count() < micro_batches()) {
        const std::int64_t end =
            std::min(tree.count() + options_.micro_batches_per_pass, micro_batches());
        std::vector<Variable> losses;
        for (std::int64_t i = tree.count(); i < end; ++i) losses.push_back(micro_loss(i));
        for (const Variable& each : losses) {
            health_.check_reached(each);
            backward(each);
            loss += each.item();
            tree.add(tree.count());
        }
    }
    const auto count = static_cast<double>(micro_batches());
    loss /= count;
    tree.finish(1 / count);
    const double norm =
        options_.clip > 0 ? clip_grad_norm(parameters_, options_.clip) : grad_norm(parameters_);
    require_finite(loss, norm);

    optimizer_->set_lr(rate);
    optimizer_->step();
    optimizer_->zero_grad();
    if (average_) average_->update();
    ++step_;
    samples_ += options_.batch_size;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return {.step = step_,
            .steps = options_.steps,
            .tokens = samples_ * train_.context(),
            .loss = loss,
            .val_loss = {},
            .lr = rate,
            .grad_norm = norm,
            .seconds = seconds.count()};
}

void Trainer::require_finite(double loss, double norm) {
    if (std::isfinite(loss) && std::isfinite(norm)) return;
    optimizer_->zero_grad();
    require_finite_weights();
    std::string cause = "no op made it: it is the sum of what ops gave";
    {
        // The same numbers once more, with somebody watching.
        const AnomalyMode watch({.on_anomaly = OnAnomaly::collect, .limit = 1});
        for (std::int64_t i = 0; i < micro_batches() && watch->reports().empty(); ++i) {
            optimizer_->zero_grad();
            backward(micro_loss(i));
        }
        if (!watch->reports().empty()) cause = told(watch->reports().front());
    }
    optimizer_->zero_grad();
    throw DivergedError(fmt::format("trainer: {} of step {} is {}: {}",
                                    std::isfinite(loss) ? "the gradient's norm" : "the loss",
                                    step_ + 1, shown(std::isfinite(loss) ? norm : loss), cause),
                        "a smaller learning rate or clipping may help");
}

void Trainer::require_finite_weights() const {
    for (const auto& [name, value] : model_.named_parameters()) {
        if (detail::all_finite(value.value())) continue;
        throw DivergedError(
            fmt::format("trainer: '{}' is no longer finite after step {}", name, step_),
            "a smaller learning rate or clipping may help");
    }
}

double Trainer::evaluate() {
    if (!validation_) throw ValueError("trainer: evaluate: there is no text to validate on");
    struct Restore {
        Trainer& trainer;
        bool training;
        ~Restore() {
            if (trainer.average_) trainer.average_->swap();
            if (training) trainer.model_.train();
        }
    };
    if (average_) average_->swap();
    const Restore restore{*this, model_.training()};
    const NoGrad no_grad;
    model_.eval();
    double sum = 0;
    for (std::int64_t i = 0; i < options_.eval_batches; ++i) {
        const Batch batch = validation_->batch(i * options_.batch_size, options_.batch_size);
        sum += cross_entropy(model_(batch.inputs), Variable(batch.targets)).item();
    }
    return sum / static_cast<double>(options_.eval_batches);
}

RunResult Trainer::run(const RunCalls& calls) {
    const auto tell = [&](const auto& what) {
        for (Reporter* each : calls.reporters) what(*each);
    };
    RunResult result;
    tell([&](Reporter& each) { each.on_start(calls.header, step_); });
    try {
        health_.keep();
        bool stop = step_ >= options_.steps;
        while (!stop) {
            const bool looks =
                validation_ && options_.eval_every > 0 &&
                ((step_ + 1) % options_.eval_every == 0 || step_ + 1 == options_.steps);
            if (looks) health_.keep();
            StepReport report = step();

            CheckpointSaveOptions save;
            if (looks) {
                const double loss = evaluate();
                if (!std::isfinite(loss)) {
                    throw DivergedError(
                        fmt::format("trainer: the validation loss after step {} is {}", step_,
                                    shown(loss)),
                        "the training loss is finite: look at what only validation does");
                }
                report.val_loss = loss;
                save.best = early_stop_.improves(loss);
                if (early_stop_.next(loss) && step_ < options_.steps) {
                    result.reason = RunEnd::Reason::early_stop;
                    stop = true;
                }
                plateau_lr_ = plateau_.next(plateau_lr_, loss);
                health_.check_ratio();
                health_.check_moved();
                health_.check_attention(validation_->batch(0, 1).inputs);
            }
            tell([&](Reporter& each) { each.on_step(report); });
            for (const std::string& line : health_.take()) {
                tell([&](Reporter& each) { each.on_message(line); });
            }
            if (calls.sample && due(options_.sample_every)) {
                const std::string text = calls.sample();
                tell([&](Reporter& each) { each.on_sample(step_, text); });
            }
            if (step_ >= options_.steps) {
                stop = true;
            } else if (!stop && calls.stop && calls.stop()) {
                result.reason = RunEnd::Reason::interrupted;
                stop = true;
            }
            if (calls.save && (stop || save.best || due(options_.checkpoint_every))) {
                require_finite_weights();
                tell([&](Reporter& each) { each.on_save(step_); });
                calls.save(checkpoint(), save);
            }
        }
    } catch (const DivergedError& error) {
        result.reason = RunEnd::Reason::diverged;
        result.detail = error.what();
    }
    result.step = step_;
    result.best_loss = best_loss();
    tell([&](Reporter& each) {
        each.on_end({.reason = result.reason, .step = step_, .detail = result.detail});
    });
    return result;
}

}  // namespace glassgrad
