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
    const auto entropy = attention_entropy(run.model, tensor({{1, 2, 3, 4}}, i64));
    REQUIRE(entropy.size() == 1);
    CHECK(entropy[0].first == "blocks.0.self_attn");
    CHECK(entropy[0].second == Approx(1));
    Log seen;
    run.trainer.run({.reporters = {&seen}});
    REQUIRE(seen.lines.size() == 5);
    CHECK(seen.lines[0].starts_with("warning: one step moved '"));
    CHECK(seen.lines[0].ends_with("(0.1 % is usual): the learning rate may be too high"));
    CHECK(seen.lines[1] ==
          "warning: 'blocks.0.self_attn.q_proj.weight' has not moved since the run began");

    // The second block of two.
    RandomState rng(2);
    Gpt model({.vocab_size = vocabulary,
               .context_length = 8,
               .d_model = 12,
               .num_layers = 2,
               .num_heads = 2},
              rng);
    for (const char* name :
         {"blocks.1.self_attn.q_proj.weight", "blocks.1.self_attn.k_proj.weight"}) {
        model.parameter_at(name).mutable_value() = rng.randn({12, 12}, {.dtype = f32}) * 1e3;
    }
    Health health(model);
    health.check_attention(tensor({{1, 2, 3, 4}}, i64));
    health.check_attention(tensor({{1, 2, 3, 4}}, i64));
    const Variable apart = sum(q * q);
    health.check_reached(apart);
    const std::vector<std::string> found = health.take();
    REQUIRE(found.size() > 2);
    CHECK(found[0].starts_with(
        "warning: attention of 'blocks.1.self_attn' has collapsed: each token looks at one token "
        "only (entropy "));
    CHECK(found[1].starts_with("warning: 'embedding.weight' gets no gradient: "));
    CHECK(health.take().empty());
    CHECK(model.training());
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

TEST_CASE("every optimizer and schedule of the options trains, is resumed, and clips") {
    for (const OptimizerKind kind :
         {OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::lion, OptimizerKind::muon}) {
        TrainOptions options = small();
        options.optimizer = kind;
        options.schedule = kind == OptimizerKind::lion   ? LrSchedule::step
                           : kind == OptimizerKind::muon ? LrSchedule::one_cycle
                                                         : LrSchedule::linear;
        options.lr = kind == OptimizerKind::sgd ? 0.5 : 1e-2;
        options.step_every = 5;
        options.clip = kind == OptimizerKind::adam ? 0 : 1;
        options.clip_value = kind == OptimizerKind::adam ? 0.01 : 0;
        std::optional<Checkpoint> stopped;
        Run first(options, 0);
        const double start = first.trainer.step().loss;
        for (int i = 1; i < 8; ++i) first.trainer.step();
        const Checkpoint middle = first.trainer.checkpoint();
        CHECK(middle.part("optimizer_rest").empty() == (kind != OptimizerKind::muon));
        StepReport last;
        while (first.trainer.steps_done() < 20) last = first.trainer.step();
        CHECK(last.loss < 0.98 * start);
        Run second(options, 0);
        second.trainer.resume(middle);
        while (second.trainer.steps_done() < 20) second.trainer.step();
        CHECK(bytes_of(second.trainer) == bytes_of(first.trainer));
    }
}

TEST_CASE("Muon's share of a model are the matrices of its blocks") {
    Run run(small());
    const MuonGroups groups = muon_groups(run.model, 0.1);
    REQUIRE(groups.matrices.size() == 1);
    CHECK(groups.matrices[0].weight_decay == 0.1);
    CHECK(groups.matrices[0].parameters.size() == 6);
    for (const auto& [name, value] : groups.matrices[0].parameters) {
        CHECK(name.starts_with("blocks.0."));
    }
    REQUIRE(groups.rest.size() == 2);
    CHECK(groups.rest[0].parameters.size() == 2);  // embeddings, one of them the head as well
}

TEST_CASE("a search for a rate leaves a run as it was") {
    const TrainOptions options = small();
    Run run(options);
    run.trainer.step();
    const std::string before = bytes_of(run.trainer);
    const LrFinding found = run.trainer.find_lr({.first = 1e-5, .last = 10, .steps = 30});
    CHECK(found.suggestion > 1e-4);
    CHECK(found.suggestion < 10);
    CHECK(bytes_of(run.trainer) == before);
    run.trainer.run();
    CHECK(bytes_of(run.trainer) == whole(options));
}

TEST_CASE("the mean loss of a text takes each window once, however they are cut") {
    Run run(small());
    const TextBatches all(Run::tokens(), 7, 0, {.stride = 7, .shuffle = false});
    double sum = 0;
    for (std::int64_t i = 0; i < all.windows(); ++i) {
        const Batch batch = all.batch(i, 1);
        run.model.eval();
        sum += cross_entropy(run.model(batch.inputs), Variable(batch.targets)).item();
    }
    run.model.train();
    for (const std::int64_t size : {1, 5, 100}) {
        CHECK(mean_loss(run.model, all, size) ==
              Approx(sum / static_cast<double>(all.windows())).epsilon(1e-6));
    }
    CHECK(run.model.training());
    CHECK(text_of<ValueError>([&] { mean_loss(run.model, all, 0); }) ==
          "mean_loss: batch_size 0 must be positive");
}

TEST_CASE("a text comes piece by piece in whole characters, and is the same") {
    RandomState rng(3);
    // Bytes: no character of more than one byte is one token.
    const BpeTokenizer tokenizer = BpeTokenizer::train("\xC3\xA4", 256);
    Llama model({.vocab_size = 256,
                 .context_length = 8,
                 .d_model = 8,
                 .num_layers = 1,
                 .num_heads = 2,
                 .num_kv_heads = 1,
                 .d_ff = 16},
                rng);
    std::string text;
    std::vector<std::string> pieces;
    std::int64_t tokens = 0;
    const GenerateOptions options{
        .max_tokens = 200, .seed = 9, .on_token = [&](const GeneratedToken&) { ++tokens; }};
    const std::string whole = continue_text(model, tokenizer, "\xC3\xA4", options);
    CHECK(whole.size() == 200);
    CHECK(continue_text(model, tokenizer, "\xC3\xA4", options,
                        [&](std::string_view piece) { pieces.emplace_back(piece); }) == whole);
    CHECK(tokens == 400);
    for (const std::string& each : pieces) text += each;
    CHECK(text == whole);
    // No character of two bytes is cut.
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        const auto end = static_cast<unsigned char>(pieces[i].back());
        const auto next = static_cast<unsigned char>(pieces[i + 1].front());
        CHECK_FALSE((end >= 0xC0 && end < 0xF8 && next >= 0x80 && next < 0xC0));
    }
    CHECK(pieces.size() > 50);
    CHECK(pieces.size() < 200);

    // The model and its tokenizer come back out of a checkpoint.
    Checkpoint checkpoint;
    checkpoint.add("model", model.state_dict({.repeat_tied = false}));
    add_text_model(checkpoint, model, tokenizer);
    const TextModel made = text_model(checkpoint);
    CHECK(continue_text(*made.model, *made.tokenizer, "\xC3\xA4", {.max_tokens = 200, .seed = 9}) ==
          whole);
    // A configuration takes no more memory than the file has weights for.
    const std::string config = checkpoint.metadata[0].second;
    for (const auto& [from, to] : {std::pair(R"("d_ff":16)", R"("d_ff":2000000000)"),
                                   {R"("num_layers":1)", R"("num_layers":2000000000)"},
                                   {R"("d_model":8)", R"("d_model":2000000000)"}}) {
        std::string larger = config;
        larger.replace(larger.find(from), std::string_view(from).size(), to);
        checkpoint.metadata[0].second = larger;
        CHECK_THAT(text_of<FileError>([&] { text_model(checkpoint); }),
                   Catch::Matchers::Contains(" numbers in 12 tensors are less than the "
                                             "configuration of "));
    }
    checkpoint.metadata[0].second = R"({"architecture":"encoder"})";
    CHECK(text_of<FileError>([&] { text_model(checkpoint); }) ==
          "text_model: the checkpoint is of 'encoder', which continues no text; models of texts "
          "are gpt and llama");
}
