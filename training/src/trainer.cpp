#include <glassgrad/training/trainer.hpp>

#include "train_setup.hpp"

#include <glassgrad/autograd/anomaly.hpp>
#include <glassgrad/autograd/engine.hpp>
#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/training/clip.hpp>
#include <glassgrad/training/gradient_tree.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace glassgrad {
namespace {

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max() / 2;

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
      schedule_(detail::make_schedule(options_)),
      plateau_(detail::plateau_options(options_)),
      plateau_lr_(options_.lr),
      early_stop_({.patience = options_.patience == 0 ? never : options_.patience,
                   .min_delta = options_.min_delta}),
      health_(model) {
    const std::int64_t longest =
        std::max(train_.context(), validation_ ? validation_->context() : 0);
    if (longest > model.context_length()) {
        throw ValueError(
            fmt::format("trainer: windows of {} tokens do not fit the model's context "
                        "of {}",
                        longest, model.context_length()));
    }
    if (optimizer == nullptr) {
        optimizers_ = detail::make_optimizers(model, options_);
    } else {
        optimizers_.push_back(std::move(optimizer));
    }
    if (options_.average_decay > 0) average_.emplace(model, options_.average_decay);
}

double Trainer::lr() const {
    const double rate = schedule_(step_);
    return options_.schedule == LrSchedule::plateau ? plateau_lr_ * rate : rate;
}

void Trainer::zero_grad() {
    for (const auto& each : optimizers_) each->zero_grad();
}

Variable Trainer::micro_loss(std::int64_t number) {
    seed_dropout(
        model_, options_.seed,
        (static_cast<std::uint64_t>(step_) << 40) + (static_cast<std::uint64_t>(number) << 28));
    const Batch batch =
        train_.batch(samples_ + number * options_.micro_batch, options_.micro_batch);
    return cross_entropy(model_(batch.inputs), Variable(batch.targets));
}

StepReport Trainer::step() { return step_at(lr()); }

LrFinding Trainer::find_lr(const LrFinderOptions& options) {
    const Checkpoint before = checkpoint();
    const auto restore = [&] {
        zero_grad();
        resume(before);
    };
    try {
        LrFinding found = glassgrad::find_lr(
            [&](double rate) {
                try {
                    return step_at(rate).loss;
                } catch (const DivergedError&) {
                    return std::numeric_limits<double>::quiet_NaN();
                }
            },
            options);
        restore();
        return found;
    } catch (...) {
        restore();
        throw;
    }
}

StepReport Trainer::step_at(double rate) {
    const auto begin = std::chrono::steady_clock::now();
    model_.train();
    zero_grad();

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
    if (options_.clip_value > 0) clip_grad_value(parameters_, options_.clip_value);
    const double norm = grad_norm(parameters_);
    require_finite(loss, norm);

    const double grad_scale = options_.clip > 0 ? clip_scale(norm, options_.clip) : 1;
    for (const auto& each : optimizers_) {
        each->set_lr(rate);
        each->step({.grad_scale = grad_scale});
    }
    zero_grad();
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
    zero_grad();
    require_finite_weights();
    std::string cause = "no op made it: it is the sum of what ops gave";
    {
        // The same numbers once more, with somebody watching.
        const AnomalyMode watch({.on_anomaly = OnAnomaly::collect, .limit = 1});
        for (std::int64_t i = 0; i < micro_batches() && watch->reports().empty(); ++i) {
            zero_grad();
            backward(micro_loss(i));
        }
        if (!watch->reports().empty()) cause = told(watch->reports().front());
    }
    zero_grad();
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
