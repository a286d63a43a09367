// The projections of the worked example are trained until "the" attends to "cat", and "sat" to
// "cat" and "there": a loss on the weights, Adam, and a look at the weights before and after.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

const std::vector<std::string> tokens = {"the", "cat", "sat", "there"};

/// Where the two tokens shall look, a row each: "the" at "cat", "sat" at "cat" and "there" alike.
const Tensor rows = tensor({0, 2}, i64);
const Tensor wanted = tensor({{0., 1., 0., 0.}, {0., .5, 0., .5}}, f64);

/// The cross entropy between the wanted weights and those of the two rows, plus the distance of
/// their outputs from what they shall fetch: the first three features of the tokens they look at.
/// The first trains W_Q and W_K alone; without the second, W_V would have no gradient.
Variable loss_of(const Variable& X, const AttentionPoints& p) {
    const Variable looks = index(p.weights, Variable(rows));
    const Variable misses = scale(sum(Variable(wanted) * log(looks)), -0.5);
    const Tensor features = slice(X.value(), 1, {.start = 0, .stop = 3});
    const Variable fetched = index(p.output, Variable(rows));
    return misses + mse_loss(fetched, Variable(matmul(wanted, features)));
}

void print_weights(const Tensor& weights) {
    fmt::print("{:>6}", "");
    for (const std::string& token : tokens) fmt::print(" {:>8}", token);
    for (std::int64_t i = 0; i < weights.size(0); ++i) {
        fmt::print("\n{:>6}", tokens[static_cast<std::size_t>(i)]);
        for (std::int64_t j = 0; j < weights.size(1); ++j)
            fmt::print(" {:>8.4f}", weights.at({i, j}));
    }
    fmt::print("\n\n");
}

/// Two matrices of one shape side by side.
void print_projection(const std::string& name, const Tensor& before, const Tensor& after) {
    for (std::int64_t i = 0; i < before.size(0); ++i) {
        fmt::print("{:>6}", i == 0 ? name : "");
        for (std::int64_t j = 0; j < before.size(1); ++j)
            fmt::print(" {:>8.4f}", before.at({i, j}));
        fmt::print("{:>6}", i == 0 ? "->" : "");
        for (std::int64_t j = 0; j < after.size(1); ++j) fmt::print(" {:>8.4f}", after.at({i, j}));
        fmt::print("\n");
    }
    fmt::print("\n");
}

/// The first losses, a column a step.
void print_curve(const std::vector<double>& losses) {
    constexpr int height = 8;
    const std::size_t columns = std::min<std::size_t>(60, losses.size());
    const double top = *std::max_element(losses.begin(), losses.end());
    for (int line = height; line > 0; --line) {
        fmt::print("{:>8} |", line == height ? fmt::format("{:.3f}", top) : "");
        for (std::size_t c = 0; c < columns; ++c) {
            fmt::print("{}", losses[c] / top * height > line - 1 ? '#' : ' ');
        }
        fmt::print("\n");
    }
    fmt::print("{:>8} +{:-<{}}\n{:>10}steps 0 to {}\n\n", "0", "", columns, "", columns - 1);
}

/// A trace of one pass, forward and backward.
std::string trace(const Variable& X, Attention& attention, const std::string& when,
                  const std::string& folder) {
    Recorder recorder(
        {.id = "train-projections-" + when, .mode = "train", .seed = 7, .default_dtype = f64});
    recorder.label("token", tokens, {"query", "key"});
    recorder.label_axes("weights", {"query", "key"});
    {
        const Scope scope("attention");
        backward(loss_of(X, attention.points(X)));
    }
    recorder.stop();
    attention.zero_grad();
    std::string path = folder + "/train_projections." + when + ".trace.json";
    write_trace(path, recorder.document());
    return path;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string out = ".";
    std::int64_t steps = 300;
    double lr = 0.05;
    CLI::App app{
        "Trains the projections of the worked example until two tokens look where they "
        "shall."};
    app.add_option("--out", out, "Folder for the two traces")->check(CLI::ExistingDirectory);
    app.add_option("--steps", steps, "Steps of Adam")->check(CLI::Range(1, 1000000));
    app.add_option("--lr", lr, "Learning rate")->check(CLI::PositiveNumber);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    RandomState rng(7);
    const Variable X(rng.randn({4, 6}));
    const auto draw = [&] { return 0.5 * rng.randn({6, 3}); };
    const Tensor w_q = draw();
    const Tensor w_k = draw();
    const Tensor w_v = draw();
    Attention attention(w_q, w_k, w_v);

    fmt::print("Attention weights as the worked example has them:\n");
    print_weights(attention.points(X).weights.value());
    const std::string before = trace(X, attention, "before", out);

    Adam optimizer(attention, {.lr = lr});
    std::vector<double> losses;
    for (std::int64_t step = 0; step <= steps; ++step) {
        const Variable loss = loss_of(X, attention.points(X));
        losses.push_back(loss.item());
        if (step == steps) break;
        backward(loss);
        optimizer.step();
        optimizer.zero_grad();
    }

    fmt::print(
        "Wanted: 'the' looks at 'cat'; 'sat' at 'cat' and 'there', a half each. The loss over {} "
        "steps:\n",
        steps);
    print_curve(losses);
    const double least = std::log(2) / 2;
    fmt::print(
        "From {:.4f} to {:.4f}. It can't fall below {:.4f}, half the entropy of a half and a "
        "half:\nthe loss of 'sat' counts what it spreads.\n\n",
        losses.front(), losses.back(), least);
    fmt::print("Attention weights now:\n");
    print_weights(attention.points(X).weights.value());
    print_projection("W_Q", w_q, attention.W_Q.value());
    print_projection("W_K", w_k, attention.W_K.value());
    print_projection("W_V", w_v, attention.W_V.value());
    fmt::print(
        "'cat' and 'there' moved as well, though no loss asks them to: they use the same "
        "W_Q and W_K.\n");
    fmt::print("Wrote {} and {}.\n", before, trace(X, attention, "after", out));
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "03_train_projections: {}\n", error.what());
    return 1;
}
