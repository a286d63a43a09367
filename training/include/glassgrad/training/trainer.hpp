#pragma once
// The loop: batches, micro-batches, gradients, updates, validation, checkpoints.

#include <glassgrad/layers/models/causal_model.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/average.hpp>
#include <glassgrad/training/checkpoint.hpp>
#include <glassgrad/training/dataset.hpp>
#include <glassgrad/training/health.hpp>
#include <glassgrad/training/optimizers.hpp>
#include <glassgrad/training/report.hpp>
#include <glassgrad/training/schedule.hpp>
#include <glassgrad/training/stopping.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace glassgrad {

enum class LrSchedule { constant, linear, cosine, one_cycle, step, plateau };
/// muon: Muon for the matrices that `muon_groups` gives it, and AdamW for the rest.
enum class OptimizerKind { adamw, adam, sgd, lion, muon };

/// nanoGPT's setting for a CPU, where it has one.
struct TrainOptions {
    std::int64_t steps = 2000;
    std::int64_t batch_size = 12;
    std::int64_t micro_batch = 0;  ///< samples in one; divides batch_size; 0: batch_size
    /// Micro-batches that are computed forward before they are computed backward: costs memory,
    /// changes no bit.
    std::int64_t micro_batches_per_pass = 1;

    LrSchedule schedule = LrSchedule::cosine;
    double lr = 1e-3;
    double min_lr = 1e-4;  ///< at the end of linear and cosine; of a plateau, the smallest
    /// Steps; not given: a twentieth of all for linear and cosine, else none. one_cycle has its
    /// own.
    std::optional<std::int64_t> warmup = {};
    double up_share = 0.3, first_divisor = 25, last_divisor = 1e4;  ///< of one_cycle
    std::int64_t step_every = 500;                                  ///< of step
    double step_factor = 0.5;
    PlateauOptions plateau = {.factor = 0.5, .patience = 3};  ///< its min_lr is the one above

    OptimizerKind optimizer = OptimizerKind::adamw;
    double beta1 = 0.9;  ///< of adamw, adam, lion, and of muon's AdamW; as are the next two
    double beta2 = 0.99;
    double eps = 1e-8;
    double momentum = 0.9;  ///< of sgd and muon
    bool nesterov = false;
    double adamw_lr = 1e-3;     ///< of muon's AdamW where `lr` is Muon's: they rise and fall alike
    double weight_decay = 0.1;  ///< of matrices only
    double clip = 1;            ///< of the gradients' norm; 0: none
    double clip_value = 0;      ///< of each element of a gradient, before the norm; 0: none
    double average_decay = 0;   ///< of the moving average of weights; 0: none

    std::int64_t eval_every = 250;  ///< steps; 0: never. As well after the last step
    std::int64_t eval_batches = 20;
    std::int64_t patience = 0;  ///< evaluations without a better one that are borne; 0: all
    double min_delta = 0;       ///< better is below the best by more than this
    std::int64_t sample_every = 0;
    std::int64_t checkpoint_every = 250;  ///< 0: the best and the last one only
    std::uint64_t seed = 0;               ///< of dropout
};
/// Throws ValueError that names what is out of range or does not fit.
void validate(const TrainOptions& options);

/// A loss, a gradient's norm or a weight that is no number. The model is as before the step.
class DivergedError : public Error {
    using Error::Error;
};

/// What a run does beside its steps; each may be left out.
struct RunCalls {
    std::vector<Reporter*> reporters = {};
    RunHeader header = {};
    /// Where a checkpoint goes: the trainer's tensors, to which the caller adds metadata.
    std::function<void(Checkpoint checkpoint, const CheckpointSaveOptions& options)> save = {};
    std::function<std::string()> sample = {};  ///< a text by the model as it is
    std::function<bool()> stop = {};           ///< asked after each step
};

struct RunResult {
    RunEnd::Reason reason = RunEnd::Reason::done;
    std::int64_t step = 0;    ///< finished steps
    double best_loss = 0;     ///< of all evaluations; infinity without one
    std::string detail = {};  ///< of a run that diverged
};

/// Trains a model that continues texts.
///
/// Which samples a step takes and what dropout drops are functions of seed, step and sample, the
/// gradient is summed over a fixed tree (GradientTree), and all else that a step depends on is in
/// `checkpoint`: a run that was stopped and resumed ends with the bits of one that was not. A step,
/// written by hand:
///
///     GradientTree tree(model.parameters());
///     for (std::int64_t i = 0; i < micro_batches; ++i) {
///         seed_dropout(model, seed, (step << 40) + (i << 28));
///         const Batch batch = train.batch((step * micro_batches + i) * size, size);
///         backward(cross_entropy(model(batch.inputs), Variable(batch.targets)));
///         tree.add(i);
///     }
///     tree.finish(1.0 / micro_batches);
///     optimizer.set_lr(schedule(step));
///     optimizer.step({.grad_scale = clip_scale(grad_norm(model.parameters()), 1)});
///     optimizer.zero_grad();
class Trainer {
  public:
    /// The optimizer of the options with decay on matrices, unless one is given. The model must
    /// outlive the trainer. Throws ValueError as `validate`, and when the windows are longer than
    /// the model's context.
    Trainer(CausalModel& model, TextBatches train, std::optional<TextBatches> validation,
            const TrainOptions& options, std::unique_ptr<Optimizer> optimizer = nullptr);

    /// The search for a rate by steps of this run, after which all is as it was before.
    LrFinding find_lr(const LrFinderOptions& options = {});

    /// One step: loss, gradient, update. Throws DivergedError that names the op which made the
    /// first bad number; nothing is changed then.
    StepReport step();
    /// Mean loss of the same validation batches each time, in evaluation mode and without
    /// recording; of the averaged weights, if there are such. Throws ValueError without validation.
    double evaluate();
    /// Steps to the last, with all that falls due between them. A run that diverges saves nothing
    /// any more.
    RunResult run(const RunCalls& calls = {});

    /// Parameters, optimizer, average, early stop, plateau, position: no metadata.
    Checkpoint checkpoint() const;
    /// Goes on from there. Throws ValueError on what doesn't fit; nothing is changed then.
    void resume(const Checkpoint& checkpoint);

    std::int64_t steps_done() const noexcept { return step_; }
    double best_loss() const noexcept { return early_stop_.state().best; }

  private:
    double lr() const;
    StepReport step_at(double rate);
    void zero_grad();
    std::int64_t micro_batches() const { return options_.batch_size / options_.micro_batch; }
    Variable micro_loss(std::int64_t number);
    void require_finite(double loss, double norm);
    void require_finite_weights() const;
    bool due(std::int64_t every) const { return every > 0 && step_ % every == 0; }

    CausalModel& model_;
    TextBatches train_;
    std::optional<TextBatches> validation_;
    TrainOptions options_;
    std::vector<Variable> parameters_;
    std::vector<std::unique_ptr<Optimizer>> optimizers_;
    Schedule schedule_;
    Plateau plateau_;
    double plateau_lr_;
    EarlyStop early_stop_;
    std::optional<WeightAverage> average_;
    Health health_;
    std::int64_t step_ = 0;
    std::int64_t samples_ = 0;
};

/// Mean loss of each window of `batches` once, `batch_size` at a time, in evaluation mode and
/// without recording.
double mean_loss(CausalModel& model, const TextBatches& batches, std::int64_t batch_size = 32);

/// The weights of a trainer's checkpoint to use a model with: the averaged ones, if there are such.
StateDict trained_weights(const Checkpoint& checkpoint);

}  // namespace glassgrad
