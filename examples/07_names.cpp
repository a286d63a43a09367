// New names from a list of names: a line's end begins a name and ends it, so a model of the list
// is asked to go on after one until it draws the next. Some come out as they went in, some are new.

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

constexpr std::string_view own_names =
    "ada adele agnes alba albert alena alma amara amelie anders anna anselm anton aron astrid "
    "aurel aurora basil bela bertha bruno carla caspar cecil celia clara conrad cora dalia damian "
    "daria david delia dora edgar edith elena elias elin ella elmar emil emilia emma enzo erik "
    "esther eva fabian felix fiona flora frida gerda greta gustav hanna harald hedda helen hugo "
    "ida ilse ines irma isak ivan iris jakob jana jasper joel johan jonas julia june karin karl "
    "kira lara lars laura lena leo leon lila lina linus lisa lorenz luca lucia luisa lydia magda "
    "malin mara marcel maria marin marta matilda maya mila milan mina mira moritz nadia nela nils "
    "nina noel nora olaf olga olivia oskar otto paula pavel petra philip rafael ramona rika rita "
    "robin rosa ruben runa samuel sandra selma silas simon sofia stella sven tamara tessa theo "
    "thea tilda timon tobias tora ulla urban valentin vera victor vilma viola walter wanda willa "
    "yara yvonne zara zelda zita";

std::vector<std::string> words_of(std::string_view text) {
    std::istringstream stream{std::string(text)};
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string file;
    std::int64_t steps = 600;
    std::size_t count = 16;
    std::uint32_t seed = 1;
    double temperature = 0.8;
    CLI::App app{"Learns a list of names and makes up new ones."};
    app.add_option("FILE", file, "Names, apart by spaces or lines")->check(CLI::ExistingFile);
    app.add_option("--steps", steps, "Of training")->check(CLI::Range(1, 1000000));
    app.add_option("--count", count, "Names to make up")->check(CLI::Range(1, 1000));
    app.add_option("--seed", seed, "Of weights, order and samples");
    app.add_option("--temperature", temperature, "0 takes the most probable letter")
        ->check(CLI::NonNegativeNumber);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    // Names in a random order, a line each. The last tenth validates.
    std::vector<std::string> names = words_of(file.empty() ? own_names : Corpus(file).text());
    RandomState rng(seed);
    const Tensor order = rng.permutation(static_cast<std::int64_t>(names.size()));
    std::string text = "\n";
    for (const std::int64_t i : order.values<std::int64_t>()) {
        text += names[static_cast<std::size_t>(i)] + '\n';
    }
    const CharTokenizer tokenizer(text);
    constexpr std::int64_t context = 16;
    const auto [known, unknown] = split_tokens(tokenizer.encode_tensor(text), 0.9, context);
    fmt::print("{} names, {} letters.\n", names.size(), tokenizer.vocab_size() - 1);

    Gpt model({.vocab_size = tokenizer.vocab_size(),
               .context_length = context,
               .d_model = 32,
               .num_layers = 2,
               .num_heads = 4,
               .dropout = 0.1},
              rng);
    Trainer trainer(model, TextBatches(known, context, seed),
                    TextBatches(unknown, context, seed + 1),
                    {.steps = steps,
                     .batch_size = 16,
                     .lr = 3e-3,
                     .eval_every = 0,
                     .eval_batches = 4,
                     .seed = seed});
    fmt::print("Loss on names that it doesn't train on: {:.3f} a letter before, ",
               trainer.evaluate());
    trainer.run();
    fmt::print("{:.3f} after {} steps.\n\n", trainer.evaluate(), steps);

    const std::vector<std::int64_t> end = tokenizer.encode("\n");
    const std::vector<Generation> made = generate(model, std::vector(count, end),
                                                  {.max_tokens = context - 1,
                                                   .sampling = {.temperature = temperature},
                                                   .stop_tokens = end,
                                                   .seed = seed});
    const std::set<std::string> listed(names.begin(), names.end());
    std::size_t fresh = 0;
    for (const Generation& each : made) {
        const std::string name = tokenizer.decode(each.tokens);
        const bool old = listed.contains(name);
        fresh += old ? 0 : 1;
        fmt::print("{}{}\n", name, old ? "   (in the list)" : "");
    }
    fmt::print("\n{} of {} are new.\n", fresh, count);
    return 0;
} catch (const std::exception& error) {
    fmt::print(stderr, "07_names: {}\n", error.what());
    return 1;
}
