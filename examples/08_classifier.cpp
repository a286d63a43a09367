// A classifier: an encoder reads a row of letters and says which one comes most often. The program
// makes the rows itself, and asks for rows that it didn't train on. The loop is written by hand.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

constexpr std::int64_t letters = 3;
constexpr std::int64_t length = 11;
constexpr std::int64_t start = letters;  // the token whose hidden state is classified

struct Rows {
    Tensor ids;     ///< (batch, 1 + length): start, letters
    Tensor labels;  ///< (batch,): the letter that comes most often, alone
};

/// Rows number first to first + count - 1: functions of seed and number.
Rows rows_of(std::uint64_t seed, std::int64_t first, std::int64_t count) {
    std::vector<std::int64_t> ids, labels;
    for (std::int64_t row = first; row < first + count; ++row) {
        CounterRng rng(seed, static_cast<std::uint64_t>(row));
        while (true) {
            std::array<std::int64_t, length> line{};
            std::array<std::int64_t, letters> often{};
            for (std::int64_t& each : line) {
                each = static_cast<std::int64_t>(rng.next() % letters);
                ++often[static_cast<std::size_t>(each)];
            }
            const auto most = std::max_element(often.begin(), often.end());
            if (std::count(often.begin(), often.end(), *most) > 1) continue;
            ids.push_back(start);
            ids.insert(ids.end(), line.begin(), line.end());
            labels.push_back(most - often.begin());
            break;
        }
    }
    return {from_span<std::int64_t>(ids, {count, 1 + length}),
            from_span<std::int64_t>(labels, {count})};
}

double share_right(Encoder& model, const Rows& rows) {
    const NoGrad no_grad;
    model.eval();
    const Tensor said = argmax(model.class_logits(model(rows.ids)).value(), {.axis = -1});
    model.train();
    const auto a = said.values<std::int64_t>(), b = rows.labels.values<std::int64_t>();
    std::int64_t right = 0;
    for (std::size_t i = 0; i < a.size(); ++i) right += a[i] == b[i] ? 1 : 0;
    return static_cast<double>(right) / static_cast<double>(a.size());
}

}  // namespace

int main(int argc, char** argv) try {
    std::int64_t steps = 400;
    std::uint32_t seed = 1;
    CLI::App app{"Trains an encoder to say which of three letters comes most often in a row."};
    app.add_option("--steps", steps, "Of training")->check(CLI::Range(1, 1000000));
    app.add_option("--seed", seed, "Of weights and rows");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    RandomState rng(seed);
    Encoder model({.vocab_size = letters + 1,
                   .context_length = 1 + length,
                   .d_model = 32,
                   .num_layers = 2,
                   .num_heads = 2,
                   .num_segments = 1,
                   .num_classes = letters,
                   .norm_first = true},
                  rng);
    // Rows to train on and to be asked about come from two seeds.
    const Rows asked = rows_of(2 * seed + 1, 0, 500);
    const Schedule schedule =
        cosine_schedule({.lr = 3e-3, .last = 1e-4, .steps = steps, .warmup = steps / 20});
    AdamW optimizer(decay_matrices(model, 0.01));
    constexpr std::int64_t batch = 32;

    fmt::print("Which letter comes most often in a row of {}? Guessing is right in 0.33.\n\n",
               length);
    fmt::print("{:>6} {:>8} {:>8}\n{:>6} {:>8} {:>8.3f}\n", "step", "loss", "right", 0, "",
               share_right(model, asked));
    for (std::int64_t step = 0; step < steps; ++step) {
        const Rows rows = rows_of(2 * seed, step * batch, batch);
        const Variable loss =
            cross_entropy(model.class_logits(model(rows.ids)), Variable(rows.labels));
        backward(loss);
        clip_grad_norm(model.parameters(), 1);
        optimizer.set_lr(schedule(step));
        optimizer.step();
        optimizer.zero_grad();
        if ((step + 1) % std::max<std::int64_t>(steps / 8, 1) == 0 || step + 1 == steps) {
            fmt::print("{:>6} {:>8.4f} {:>8.3f}\n", step + 1, loss.item(),
                       share_right(model, asked));
        }
    }

    fmt::print("\n");
    const Rows shown = rows_of(2 * seed + 1, 0, 5);
    const NoGrad no_grad;
    model.eval();
    const Tensor p = softmax(model.class_logits(model(shown.ids))).value();
    for (std::int64_t row = 0; row < 5; ++row) {
        std::string line;
        for (std::int64_t i = 1; i <= length; ++i) {
            line += static_cast<char>('a' + shown.ids.at({row, i}));
        }
        fmt::print("{}   a {:.2f}  b {:.2f}  c {:.2f}\n", line, p.at({row, 0}), p.at({row, 1}),
                   p.at({row, 2}));
    }
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "08_classifier: {}\n", error.what());
    return 1;
}
