// Scaled dot-product attention on "the cat sat there", step by step: each number, its gradient, a
// proof of that gradient, and a trace of it all. The numbers start from np.random.seed(7).

#include <glassgrad/glassgrad.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

using namespace glassgrad;

namespace {

const std::vector<std::string> tokens = {"the", "cat", "sat", "there"};

/// The inputs, drawn in the order of the example.
struct Inputs {
    Tensor X, W_Q, W_K, W_V;

    explicit Inputs(DType dtype) {
        RandomState rng(7);
        X = rng.randn({4, 6}).astype(dtype);
        W_Q = (0.5 * rng.randn({6, 3})).astype(dtype);
        W_K = (0.5 * rng.randn({6, 3})).astype(dtype);
        W_V = (0.5 * rng.randn({6, 3})).astype(dtype);
    }
};

/// A named tensor and, after the backward pass, its gradient.
struct Quantity {
    std::string name;
    Variable value;
};

struct Run {
    Variable X;
    Attention attention;
    AttentionPoints points;
    Tensor cotangent;

    explicit Run(const Inputs& in) : X(parameter(in.X, "X")), attention(in.W_Q, in.W_K, in.W_V) {
        // dL/d output: signed, and different everywhere, so that no derivative can hide in it.
        cotangent = (arange(0, 12, 1, f64) / 10.0 - full({}, 0.5, f64)).astype(in.X.dtype());
        cotangent = reshape(cotangent, {4, 3});
    }

    void forward_and_backward() {
        const Scope scope("attention");  // a path for errors and the trace
        points = attention.points(X);
        for (Quantity& each : steps()) each.value.retain_grad();
        backward(points.output, {.gradient = cotangent});
    }

    std::vector<Quantity> steps() const {
        return {{"Q", points.query},       {"K", points.key},         {"V", points.value},
                {"scores", points.scores}, {"scaled", points.scaled}, {"weights", points.weights},
                {"output", points.output}};
    }
    std::vector<Quantity> inputs() const {
        return {{"X", X}, {"W_Q", attention.W_Q}, {"W_K", attention.W_K}, {"W_V", attention.W_V}};
    }
};

// --- printing -------------------------------------------------------------------------------

void print_labelled(const Tensor& x, int decimals, const std::vector<std::string>& columns) {
    fmt::print("{:>6}", "");
    for (const std::string& column : columns) fmt::print(" {:>8}", column);
    fmt::print("\n");
    for (std::int64_t i = 0; i < x.size(0); ++i) {
        fmt::print("{:>6}", tokens[static_cast<std::size_t>(i)]);
        for (std::int64_t j = 0; j < x.size(1); ++j)
            fmt::print(" {:>8.{}f}", x.at({i, j}), decimals);
        fmt::print("\n");
    }
}

Tensor row(const Tensor& x, std::int64_t i) {
    return reshape(slice(x, 0, {.start = i, .stop = i + 1}), {-1});
}

const std::string& token(std::int64_t i) { return tokens[static_cast<std::size_t>(i)]; }

void print_rows(const Tensor& x) {
    for (std::int64_t i = 0; i < x.size(0); ++i) {
        fmt::print("{}: {}\n", token(i), to_string(row(x, i)));
    }
}

/// Token by token with both labels, token by feature with one, a weight plain.
void print_gradient(const Tensor& x) {
    if (x.size(0) == 4 && x.size(1) == 4) {
        print_labelled(x, 4, tokens);
    } else if (x.size(0) == 4) {
        print_rows(x);
    } else {
        fmt::print("{}\n", to_string(x));
    }
}

void print_forward(const Run& run) {
    const AttentionPoints& p = run.points;
    const auto strongest = argmax(p.scores.value()).item<std::int64_t>();
    fmt::print("=== Step 1: Raw scores QK^T ===\n");
    print_labelled(p.scores.value(), 3, tokens);
    fmt::print(
        "See: row {0}, column {1} is {2:.3f}, the largest dot product: of all queries, that of "
        "'{0}' points\nmost along a key, and the key is that of '{1}'. A row of negative numbers "
        "is "
        "no fault: the next steps\nonly look at differences within a row.\n\n",
        token(strongest / 4), token(strongest % 4),
        p.scores.value().at({strongest / 4, strongest % 4}));

    fmt::print("=== Step 2: Scaled scores (divide by sqrt(3)={:.3f}) ===\n", std::sqrt(3.0));
    print_labelled(p.scaled.value(), 3, tokens);
    const Tensor spread =
        max(p.scores.value(), {.axes = {1}}) - min(p.scores.value(), {.axes = {1}});
    const Tensor scaled =
        max(p.scaled.value(), {.axes = {1}}) - min(p.scaled.value(), {.axes = {1}});
    fmt::print(
        "See: nothing changes its place, but the widest row shrinks from {:.3f} to {:.3f} between "
        "its ends:\nsoftmax turns differences into ratios, and would otherwise sharpen as d_k "
        "grows.\n\n",
        max(spread).item(), max(scaled).item());

    fmt::print("=== Step 3: Attention weights (softmax) ===\n");
    print_labelled(p.weights.value(), 4, tokens);
    const Tensor largest = max(p.weights.value(), {.axes = {1}});
    const auto sharpest = argmax(largest).item<std::int64_t>();
    const Tensor favourite = argmax(p.weights.value(), {.axis = 1});
    fmt::print(
        "See: each row sums to 1. '{}' decides most clearly, for '{}' with {:.4f}; even so "
        "every token gets\na share, since exp is never 0.\n\n",
        token(sharpest), token(favourite.at<std::int64_t>({sharpest})), largest.at({sharpest}));

    fmt::print("=== Step 4: Output (A @ V) shape: {} ===\n", to_string(p.output.shape()));
    print_rows(p.output.value());
    fmt::print(
        "See: each output row is a blend of the four rows of V in the proportions of its row "
        "of weights, so\nit lies between the smallest and the largest value of each "
        "column.\n\n");
}

void print_gradients(const Run& run) {
    static const std::vector<std::pair<std::string, std::string>> remarks = {
        {"output", "The cotangent itself: what a loss would say about each number of the output."},
        {"weights", "gy Vᵀ: a weight matters as far as the value it lets through agrees with gy."},
        {"scaled",
         "y (gy - sum gy y): rows sum to 0, since softmax ignores what a whole row "
         "gains."},
        {"scores", "The same, divided by sqrt(3)."},
        {"V", "weightsᵀ gy: a token's value answers for all that looked at it."},
        {"K", "Through the columns of the scores: who was looked at."},
        {"Q", "Through the rows of the scores: who was looking."},
        {"W_V", "Xᵀ times the gradient of V."},
        {"W_K", "Xᵀ times the gradient of K."},
        {"W_Q", "Xᵀ times the gradient of Q."},
        {"X", "Three paths, through Q, K and V, added up."},
    };
    fmt::print("=== Gradients, for the cotangent dL/d output below ===\n");
    std::vector<Quantity> all = run.inputs();
    for (Quantity& each : run.steps()) all.push_back(each);
    for (const auto& [name, remark] : remarks) {
        const auto same = [&wanted = name](const Quantity& each) { return each.name == wanted; };
        const auto found = std::find_if(all.begin(), all.end(), same);
        fmt::print("dL/d{} {}: {}\n", name, to_string(found->value.shape()), remark);
        print_gradient(found->value.grad());
    }
    fmt::print("\n");
}

// --- the gradient check ---------------------------------------------------------------------

/// What follows a step, as a function of it.
struct Continuation {
    std::vector<Quantity> inputs;
    CheckedFunction f;
};

std::vector<Continuation> continuations(const Run& run) {
    const AttentionPoints& p = run.points;
    const double factor = 1 / std::sqrt(3.0);
    const auto blend = [](const Variable& weights, const Variable& V) {
        return matmul(weights, V);
    };
    const auto from_scores = [=](const Variable& scores, const Variable& V) {
        return blend(softmax(scale(scores, factor)), V);
    };
    const auto from_projections = [=](const Variable& Q, const Variable& K, const Variable& V) {
        return from_scores(matmul(Q, K, {.transpose_b = true}), V);
    };
    const auto constant = [](const Variable& x) { return Variable(x.value().astype(f64)); };
    const Variable V = constant(p.value);
    return {
        {run.inputs(),
         [=](std::span<const Variable> in) {
             return from_projections(matmul(in[0], in[1]), matmul(in[0], in[2]),
                                     matmul(in[0], in[3]));
         }},
        {{{"Q", p.query}, {"K", p.key}, {"V", p.value}},
         [=](std::span<const Variable> in) { return from_projections(in[0], in[1], in[2]); }},
        {{{"scores", p.scores}},
         [=](std::span<const Variable> in) { return from_scores(in[0], V); }},
        {{{"scaled", p.scaled}},
         [=](std::span<const Variable> in) { return blend(softmax(in[0]), V); }},
        {{{"weights", p.weights}}, [=](std::span<const Variable> in) { return blend(in[0], V); }},
    };
}

/// Prints a line a quantity; true when all gradients are proven.
bool check_gradients(const Run& run) {
    fmt::print("=== Gradient check: derivatives against differences, in f64 ===\n");
    fmt::print("{:>8}  {:<8} {:>15} {:>15} {:>10}\n", "", "verdict", "derivative", "difference",
               "error");
    bool all = true;
    for (const Continuation& part : continuations(run)) {
        std::vector<Variable> leaves;
        for (const Quantity& each : part.inputs) {
            leaves.push_back(parameter(each.value.value().astype(f64), each.name));
        }
        const GradcheckReport report = gradcheck(part.f, leaves);
        all = all && report;
        for (const GradcheckFinding& found : report.inputs) {
            const double size = std::max(std::abs(found.analytic), std::abs(found.numeric));
            fmt::print("{:>8}  {:<8} {:>15.10f} {:>15.10f} {:>10.1e}\n", found.input,
                       name(found.verdict), found.analytic, found.numeric,
                       size > 0 ? std::abs(found.analytic - found.numeric) / size : 0.0);
        }
        if (!report) fmt::print("{}", report.text);
    }
    fmt::print("Each line shows the element that agrees worst, and the relative error there.\n\n");
    return all;
}

// --- files ----------------------------------------------------------------------------------

/// What the axes of the recorded tensors mean; queries and keys are the tokens.
void name_axes(Recorder& recorder) {
    recorder.label("token", tokens, {"query", "key"});
    recorder.label_axes("X", {"token", "d"});
    for (const char* weight : {"W_Q", "W_K"}) recorder.label_axes(weight, {"d", "d_k"});
    recorder.label_axes("W_V", {"d", "d_v"});
    recorder.label_axes("query", {"query", "d_k"});
    recorder.label_axes("key", {"key", "d_k"});
    recorder.label_axes("value", {"key", "d_v"});
    for (const char* step : {"scores", "scaled", "weights"}) {
        recorder.label_axes(step, {"query", "key"});
    }
    recorder.label_axes("output", {"query", "d_v"});
}

nlohmann::json number(double value, DType dtype) {
    if (dtype == f64) return value;
    // The shortest text that gives the same float, not that of the float widened to double.
    char text[32];
    const auto end = std::to_chars(text, text + sizeof text - 1, static_cast<float>(value)).ptr;
    *end = '\0';
    return std::strtod(text, nullptr);
}

nlohmann::json matrix(const Tensor& x) {
    nlohmann::json rows = nlohmann::json::array();
    for (std::int64_t i = 0; i < x.size(0); ++i) {
        nlohmann::json columns = nlohmann::json::array();
        for (std::int64_t j = 0; j < x.size(1); ++j)
            columns.push_back(number(x.at({i, j}), x.dtype()));
        rows.push_back(std::move(columns));
    }
    return rows;
}

nlohmann::json figures(const Run& run) {
    nlohmann::ordered_json out{{"seed", 7},
                               {"tokens", tokens},
                               {"dtype", std::string(name(run.X.dtype()))},
                               {"cotangent", matrix(run.cotangent)}};
    nlohmann::json gradients;
    for (const auto& group : {run.inputs(), run.steps()}) {
        for (const Quantity& each : group) {
            out[each.name] = matrix(each.value.value());
            gradients[each.name] = matrix(each.value.grad());
        }
    }
    out["grad"] = gradients;
    return out;
}

}  // namespace

int main(int argc, char** argv) try {
    std::string out = ".";
    std::string type = "f64";
    bool json = false;
    CLI::App app{
        "Scaled dot-product attention on \"the cat sat there\": every number, its gradient, "
        "and why."};
    app.add_option("--out", out, "Folder for worked_example.trace.json")
        ->check(CLI::ExistingDirectory);
    app.add_option("--dtype", type, "Element type")->check(CLI::IsMember({"f32", "f64"}));
    app.add_flag("--json", json, "Print the figures only, as JSON, and write no trace");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }

    Run run{Inputs(type == "f32" ? f32 : f64)};
    if (json) {
        run.forward_and_backward();
        fmt::print("{}\n", figures(run).dump(1));
        return 0;
    }

    Recorder recorder(
        {.id = "worked-example", .mode = "train", .seed = 7, .default_dtype = run.X.dtype()});
    name_axes(recorder);
    run.forward_and_backward();
    recorder.stop();

    fmt::print(
        "Attention on \"the cat sat there\", from np.random.seed(7): 4 tokens, d = 6, "
        "d_k = d_v = 3, {}.\n\n",
        type);
    print_forward(run);
    print_gradients(run);
    const bool proven = check_gradients(run);

    const TraceDocument document = recorder.document();
    const std::string path = out + "/worked_example.trace.json";
    write_trace(path, document);
    fmt::print("Wrote {}: {} ops, forward and backward, and {} tensors with labels.\n", path,
               document.ops.size(), document.tensors.size());
    return proven ? 0 : 1;
} catch (const std::exception& error) {
    fmt::print(stderr, "01_worked_example: {}\n", error.what());
    return 1;
}
