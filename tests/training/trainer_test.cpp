// The loop: the same bits whatever interrupts, cuts or watches it; it stops at what is no number.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/tensor/threads.hpp>
#include <glassgrad/training.hpp>

#include <cmath>
#include <cstring>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

constexpr std::int64_t vocabulary = 11;

/// A model, its data and its trainer, the same for the same options.
struct Run {
    explicit Run(const TrainOptions& options, double dropout = 0.1)
        : rng(5),
          model({.vocab_size = vocabulary,
                 .context_length = 8,
                 .d_model = 12,
                 .num_layers = 1,
                 .num_heads = 2,
                 .dropout = dropout},
                rng),
          trainer(model, TextBatches(tokens(), 7, 1), TextBatches(tokens(), 6, 2), options) {}

    static Tensor tokens() {
        std::vector<std::int64_t> ids;
        for (std::int64_t i = 0; i < 90; ++i) ids.push_back(i * i % 7 + i % 5);
        return from_span<std::int64_t>(ids, {90});
    }

    RandomState rng;
    Gpt model;
    Trainer trainer;
};

/// All that a run needs to go on, as bytes.
std::string bytes_of(const Trainer& trainer) {
    std::string all;
    const Checkpoint checkpoint = trainer.checkpoint();
    for (const auto& [name, value] : checkpoint.tensors) {
        const auto size = static_cast<std::size_t>(value.numel()) * item_size(value.dtype());
        all += name;
        all.append(reinterpret_cast<const char*>(value.bytes()), size);
    }
    return all;
}

TrainOptions small() {
    return {.steps = 20,
            .batch_size = 4,
            .micro_batch = 1,
            .lr = 1e-2,
            .warmup = 3,
            .clip = 0.5,
            .average_decay = 0.9,
            .eval_every = 4,
            .eval_batches = 2,
            .checkpoint_every = 6,
            .seed = 3};
}

/// The bytes that a whole run ends with.
std::string whole(const TrainOptions& options) {
    Run run(options);
    run.trainer.run();
    return bytes_of(run.trainer);
}

struct Log : Reporter {
    void on_step(const StepReport& report) override { steps.push_back(report); }
    void on_message(std::string_view line) override { lines.emplace_back(line); }
    void on_sample(std::int64_t step, std::string_view text) override {
        samples.push_back(std::to_string(step) + ' ' + std::string(text));
    }
    void on_end(const RunEnd& end) override { reason = end.reason; }

    std::vector<StepReport> steps;
    std::vector<std::string> lines, samples;
    RunEnd::Reason reason = RunEnd::Reason::failed;
};

}  // namespace

TEST_CASE("a run that was stopped and resumed ends with the bits of one that was not") {
    for (const LrSchedule schedule : {LrSchedule::cosine, LrSchedule::plateau}) {
        TrainOptions options = small();
        options.schedule = schedule;
        options.patience = 50;
        options.plateau.patience = 0;
        std::optional<Checkpoint> stopped;
        {
            Run first(options);
            const RunResult ended = first.trainer.run(
                {.save = [&](Checkpoint checkpoint,
                             const CheckpointSaveOptions&) { stopped = std::move(checkpoint); },
                 .stop = [&] { return first.trainer.steps_done() == 10; }});
            CHECK(ended.reason == RunEnd::Reason::interrupted);
            CHECK(ended.step == 10);
        }
        REQUIRE(stopped);
        CHECK(stopped->step == 10);
        Run second(options);
        second.trainer.resume(*stopped);
        Log seen;
        CHECK(second.trainer.run({.reporters = {&seen}}).reason == RunEnd::Reason::done);
        CHECK(bytes_of(second.trainer) == whole(options));
        CHECK(seen.steps.size() == 10);
        CHECK(seen.steps.front().step == 11);
        CHECK(seen.steps.front().tokens == 11 * 4 * 7);
    }
}

TEST_CASE("passes, threads and samples change no bit of a run") {
    const TrainOptions options = small();
    const std::string expected = whole(options);
    for (const std::int64_t passes : {2, 4}) {
        TrainOptions other = options;
        other.micro_batches_per_pass = passes;
        CHECK(whole(other) == expected);
    }
    const int threads = num_threads();
    set_num_threads(threads == 1 ? 2 : 1);
    CHECK(whole(options) == expected);
    set_num_threads(threads);

    TrainOptions other = options;
    other.sample_every = 3;
    Run run(other);
    Log seen;
    run.trainer.run(
        {.reporters = {&seen}, .sample = [&] {
             const Generation text = generate(run.model, {{1, 2}}, {.max_tokens = 5})[0];
             return std::to_string(text.tokens.size());
         }});
    CHECK(bytes_of(run.trainer) == expected);
    CHECK(seen.samples == std::vector<std::string>{"3 5", "6 5", "9 5", "12 5", "15 5", "18 5"});
    // Another seed drops other elements.
    other.seed = 4;
    CHECK(whole(other) != expected);
}

TEST_CASE("a run learns, validates, keeps the best and stops early") {
    TrainOptions options = small();
    options.steps = 60;
    options.schedule = LrSchedule::constant;
    options.warmup = 0;
    options.average_decay = 0;
    Run run(options, 0);
    Log seen;
    std::vector<std::string> saved;
    const double before = run.trainer.evaluate();
    const RunResult ended = run.trainer.run(
        {.reporters = {&seen},
         .save = [&](const Checkpoint& checkpoint, const CheckpointSaveOptions& save) {
             if (save.best) saved.push_back(std::to_string(checkpoint.step));
         }});
    CHECK(before == Approx(std::log(vocabulary)).epsilon(0.05));
    CHECK(ended.best_loss < 0.75 * before);
    CHECK(seen.reason == RunEnd::Reason::done);
    REQUIRE_FALSE(saved.empty());
    CHECK(saved.front() == "4");
    CHECK(seen.steps[3].val_loss.has_value());
    CHECK_FALSE(seen.steps[4].val_loss.has_value());
    CHECK(seen.steps.back().loss < seen.steps.front().loss);
    CHECK(run.model.training());

    // With a rate of nearly 0 nothing gets better any more.
    options.lr = 1e-12;
    options.min_lr = 0;
    options.patience = 2;
    options.weight_decay = 0;
    Run still(options, 0);
    const RunResult early = still.trainer.run();
    CHECK(early.reason == RunEnd::Reason::early_stop);
    CHECK(early.step < 60);
}

TEST_CASE("a run stops at a number that is none, and names the op") {
    Run run(small(), 0);
    run.trainer.step();
    const Tensor large = full({12, 12}, 1e30);
    run.model.parameter_at("blocks.0.self_attn.q_proj.weight").mutable_value() = large;
    run.model.parameter_at("blocks.0.self_attn.k_proj.weight").mutable_value() = large;
    const std::string before = bytes_of(run.trainer);
    CHECK(text_of<DivergedError>([&] { run.trainer.step(); }) ==
          "trainer: the loss of step 2 is NaN: an infinity in its result of attention_scores in "
          "blocks.0.self_attn, in the forward pass; a smaller learning rate or clipping may help");
    CHECK(bytes_of(run.trainer) == before);
    Log seen;
    bool saved = false;
    const RunResult ended = run.trainer.run(
        {.reporters = {&seen},
         .save = [&](const Checkpoint&, const CheckpointSaveOptions&) { saved = true; }});
    CHECK(ended.reason == RunEnd::Reason::diverged);
    CHECK(seen.reason == RunEnd::Reason::diverged);
    CHECK(ended.step == 1);
    CHECK_FALSE(saved);

    run.model.parameter_at("norm.bias").mutable_value() = full({12}, NAN);
    CHECK(text_of<DivergedError>([&] { run.trainer.step(); }) ==
          "trainer: 'norm.bias' is no longer finite after step 1; a smaller learning rate or "
          "clipping may help");
}

TEST_CASE(
    "a run warns of weights that rest, jump, or are out of reach, and of collapsed attention") {
    TrainOptions options = small();
    options.schedule = LrSchedule::constant;
    options.lr = 0.5;
    options.min_lr = 0;
    options.weight_decay = 0;
    Run run(options, 0);
    const std::string attention = "blocks.0.self_attn.";
    Variable q = run.model.parameter_at(attention + "q_proj.weight");
    q.mutable_value() = zeros({12, 12});
    run.model.parameter_at(attention + "k_proj.weight").mutable_value() = zeros({12, 12});
    CHECK(*attention_entropy(run.model, tensor({{1, 2, 3, 4}}, i64)) == Approx(1));
    Log seen;
    run.trainer.run({.reporters = {&seen}});
    REQUIRE(seen.lines.size() == 5);
    CHECK(seen.lines[0].starts_with("warning: one step moved '"));
    CHECK(seen.lines[0].ends_with("(0.1 % is usual): the learning rate may be too high"));
    CHECK(seen.lines[1] ==
          "warning: 'blocks.0.self_attn.q_proj.weight' has not moved since the run began");

    RandomState rng(2);
    q.mutable_value() = rng.randn({12, 12}, {.dtype = f32}) * 1e4;
    run.model.parameter_at(attention + "k_proj.weight").mutable_value() =
        rng.randn({12, 12}, {.dtype = f32});
    Health health(run.model);
    health.check_attention(tensor({{1, 2, 3, 4}}, i64));
    health.check_attention(tensor({{1, 2, 3, 4}}, i64));
    const Variable apart = sum(q * q);
    health.check_reached(apart);
    const std::vector<std::string> found = health.take();
    REQUIRE(found.size() > 2);
    CHECK(found[0].starts_with("warning: attention of the first block has collapsed"));
    CHECK(found[1].starts_with("warning: 'embedding.weight' gets no gradient: "));
    CHECK(health.take().empty());
    CHECK(run.model.training());
}

TEST_CASE("a validation loss that is no number ends the run") {
    Run run(small(), 0);
    run.model.hook_point("logits", [&](const Variable& logits) {
        return run.model.training() ? Variable() : logits * Variable(full({}, NAN));
    });
    const RunResult ended = run.trainer.run();
    CHECK(ended.reason == RunEnd::Reason::diverged);
    CHECK(ended.detail ==
          "trainer: the validation loss after step 4 is NaN; the training loss is finite: look at "
          "what only validation does");
}

TEST_CASE("a trainer refuses what makes no sense") {
    const auto text = [](TrainOptions options) {
        return text_of<ValueError>([&] { Run{options}; });
    };
    TrainOptions options = small();
    options.micro_batch = 3;
    CHECK(text(options) == "trainer: micro_batch 3 does not divide batch_size 4");
    options = small();
    options.warmup = 21;
    CHECK(text(options) == "trainer: warmup 21 is not within the 20 steps");
    options = small();
    options.lr = NAN;
    CHECK(text(options) == "trainer: lr nan must be positive");
    options = small();
    Run run(options);
    Checkpoint checkpoint = run.trainer.checkpoint();
    std::erase_if(checkpoint.tensors, [](const auto& each) {
        return each.first == "optimizer.steps" || each.first == "model.norm.bias";
    });
    const std::string before = bytes_of(run.trainer);
    CHECK(text_of<ValueError>([&] { run.trainer.resume(checkpoint); }) ==
          "load_state_dict: missing norm.bias; nothing was loaded");
    CHECK(bytes_of(run.trainer) == before);
    CHECK(text_of<ValueError>([&] { run.trainer.resume({}); }) ==
          "trainer: the checkpoint has no trainer.samples of 1 numbers; it was not written by a "
          "trainer");
}
