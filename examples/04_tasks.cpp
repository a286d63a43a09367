// Three tasks that a transformer of two layers learns in minutes: to copy a sequence, to reverse
// it, to add two numbers. The questions of the test are never trained on; an answer counts only if
// every symbol of it is right.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

struct Settings {
    std::int64_t steps = 0;  ///< 0: as many as the task needs
    std::int64_t batch = 64;
    std::int64_t width = 64;
    std::int64_t tests = 2000;
    double lr = 2e-3;
    std::int64_t seed = 1;
};

/// Exact answers, in percent, of `count` questions of the test.
double exact(const Gpt& model, const Task& task, std::int64_t count) {
    const NoGrad no_grad;
    std::int64_t right = 0;
    for (std::int64_t first = 0; first < count; first += 250) {
        const std::int64_t part = std::min<std::int64_t>(250, count - first);
        const Batch test = task.batch(first, part, TaskSplit::test);
        right += count_exact(model(test.inputs).value(), test.targets);
    }
    return 100. * static_cast<double>(right) / static_cast<double>(count);
}

/// What the model writes after the question of test sample n.
std::string answer(Gpt& model, const Task& task, std::int64_t sample) {
    std::vector<std::int64_t> tokens = task.sequence(sample, TaskSplit::test);
    tokens.resize(static_cast<std::size_t>(task.question_length()));
    const auto written = generate(
        model, {tokens}, {.max_tokens = task.answer_length(), .sampling = {.temperature = 0}});
    tokens.insert(tokens.end(), written[0].tokens.begin(), written[0].tokens.end());
    return task.decode(tokens);
}

void run(TaskKind kind, const Settings& settings) {
    const bool adds = kind == TaskKind::addition;
    const std::int64_t steps = settings.steps > 0 ? settings.steps : adds ? 1500 : 300;
    const Task task(kind,
                    {.length = adds ? 3 : 8, .seed = static_cast<std::uint64_t>(settings.seed)});
    RandomState rng(settings.seed);
    Gpt model({.vocab_size = task.vocab_size(),
               .context_length = task.context_length(),
               .d_model = settings.width,
               .num_layers = 2,
               .num_heads = 4},
              rng);
    // GPT-2's small weights look at all tokens alike at first, and a digit may then wait for
    // thousands of steps until a head finds it.
    for (const auto& [name, weight] : model.blocks.named_parameters()) {
        if (weight.value().rank() == 2) init::xavier_normal(weight, rng);
    }
    AdamW optimizer(model, {.weight_decay = 0});
    const Schedule rate = cosine_schedule({.lr = settings.lr,
                                           .last = 1e-4,
                                           .steps = steps,
                                           .warmup = std::min<std::int64_t>(100, steps / 10)});
    fmt::print("{}: {} questions to train on, {} to test on, {} steps of {}\n", name(kind),
               task.questions(TaskSplit::train), task.questions(TaskSplit::test), steps,
               settings.batch);

    const auto begin = std::chrono::steady_clock::now();
    const std::int64_t every = std::max<std::int64_t>(1, steps / 5);
    for (std::int64_t step = 0; step < steps; ++step) {
        const Batch batch = task.batch(step * settings.batch, settings.batch);
        const Variable loss = cross_entropy(model(batch.inputs), batch.targets);
        backward(loss);
        clip_grad_norm(model.parameters(), 1);
        optimizer.set_lr(rate(step));
        optimizer.step();
        optimizer.zero_grad();
        if ((step + 1) % every == 0 && step + 1 < steps) {
            fmt::print("  step {:4}  loss {:.4f}  exact {:6.2f} %\n", step + 1, loss.value().item(),
                       exact(model, task, std::min<std::int64_t>(500, settings.tests)));
            std::fflush(stdout);
        }
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const double share = exact(model, task, settings.tests);
    fmt::print("  step {:4}  {} unseen questions, exact: {:.2f} %\n", steps, settings.tests, share);
    for (std::int64_t i = 0; i < 3; ++i) fmt::print("  writes {}\n", answer(model, task, i));
    fmt::print(stderr, "  {:.1f} s\n", seconds.count());
}

}  // namespace

int main(int argc, char** argv) try {
    Settings settings;
    std::vector<std::string> tasks{"copy", "reverse", "addition"};
    CLI::App app{"Trains a two-layer transformer on tasks and tests it on unseen questions."};
    app.add_option("--task", tasks, "copy, reverse, sort, addition or modular; may be repeated")
        ->check(CLI::IsMember({"copy", "reverse", "sort", "addition", "modular"}));
    app.add_option("--steps", settings.steps, "0: as many as the task needs, 300 or 1,500")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--seed", settings.seed, "Of weights and questions")
        ->check(CLI::Range(0U, 4294967295U))
        ->capture_default_str();
    app.add_option("--batch", settings.batch, "Questions a step")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--width", settings.width, "d_model, in four heads")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--lr", settings.lr, "Learning rate after the first steps")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--tests", settings.tests, "Unseen questions asked at the end")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    for (const std::string& task : tasks) run(task_kind_from(task), settings);
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "04_tasks: {}\n", error.what());
    return 1;
}
