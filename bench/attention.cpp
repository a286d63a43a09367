// Attention in its two forms and PyTorch's, by length: time and memory of forward and backward, 8
// causal heads of 64 in f32. Every measurement is a process of its own, so that its peak is its
// own; the peers take turns. The share of the FMA peak counts what a causal mask leaves of seven
// products: two forward, five backward, one of which computes the scores again.
//
// Arguments: the lengths (512 to 16384 if none are given), --threads N (1 and 2 if not given).

#include "timing.hpp"

#include <glassgrad/autograd.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

constexpr std::int64_t heads = 8;
constexpr std::int64_t width = 64;
/// The named form needs more than 4 GB beyond.
constexpr std::int64_t longest_named = 4096;

struct Measured {
    double forward = 0, backward = 0;  ///< seconds
    double peak = 0, resident = 0;     ///< bytes above those before: in tensors, of the process
    double total() const { return forward + backward; }
};

/// In the child: prints what one form takes.
int measure(AttentionForm form, std::int64_t length) {
    RandomState rng(1);
    std::vector<Variable> x;
    for (int i = 0; i < 3; ++i) {
        x.push_back(parameter(rng.uniform(-1, 1, {1, heads, length, width}, {.dtype = f32})));
    }
    const Variable cotangent(ones({1, heads, length, width}, f32));
    const double live = static_cast<double>(memory_stats().live_bytes);
    const double before = bench::resident();
    reset_peak_memory();
    std::vector<double> forward, backward;
    // The first is left out, but for lengths whose time it doesn't change.
    const int trials = length <= 1024 ? 6 : length <= longest_named ? 2 : 1;
    for (int i = 0; i < trials; ++i) {
        const double start = bench::seconds();
        const Variable y =
            scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true, .form = form});
        const double middle = bench::seconds();
        const auto gradients = grad({y}, x, {.grad_outputs = {cotangent}});
        const double end = bench::seconds();
        if (i == 0 && trials > 1) continue;
        forward.push_back(middle - start);
        backward.push_back(end - middle);
    }
    std::printf("%g %g %g %g\n", bench::median(forward), bench::median(backward),
                static_cast<double>(memory_stats().peak_bytes) - live, bench::resident() - before);
    return 0;
}

/// What the program of `command` prints; zeros if it gives no figures.
Measured run(const std::string& command) {
    Measured result;
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return {};
    const int read = std::fscanf(pipe, "%lf %lf %lf %lf", &result.forward, &result.backward,
                                 &result.peak, &result.resident);
    pclose(pipe);
    return read == 4 ? result : Measured{};
}

Measured medians(const std::vector<Measured>& runs) {
    const auto of = [&](double Measured::*part) {
        std::vector<double> values;
        for (const Measured& each : runs) values.push_back(each.*part);
        return bench::median(values);
    };
    return {of(&Measured::forward), of(&Measured::backward), of(&Measured::peak),
            of(&Measured::resident)};
}

void print(std::int64_t length, int threads, const char* name, const Measured& x,
           const Measured& tiled, double fma_peak) {
    if (x.total() == 0) return;
    const auto n = static_cast<double>(length);
    const double flop = 7 * n * n * heads * width;
    std::printf("| %lld | %d | %s | %.1f | %.1f | %.1f | %.3g |", static_cast<long long>(length),
                threads, name, x.forward * 1e3, x.backward * 1e3, x.total() * 1e3,
                100 * flop / x.total() / fma_peak);
    std::printf(x.peak > 0 ? " %.1f |" : "  |", x.peak / 1e6);
    std::printf(" %.1f | %.2f | %.2f |\n", x.resident / 1e6, x.total() / tiled.total(),
                x.resident / tiled.resident);
    std::fflush(stdout);
}

void compare(const std::string& self, std::int64_t length, int threads) {
    // For the children.
    setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
    const std::string text = std::to_string(length);
    // Debian's torch belongs to its own python3.
    const std::string torch = "for p in python3 /usr/bin/python3; do $p '" GLASSGRAD_BENCH_FOLDER
                              "/torch_attention.py' " +
                              text + " " + std::to_string(threads) + " 2>/dev/null && break; done";
    std::vector<Measured> tiled, named, others;
    for (int round = 0; round < (length <= longest_named ? 3 : 1); ++round) {
        tiled.push_back(run(self + " tiled " + text));
        if (length <= longest_named) named.push_back(run(self + " named " + text));
        others.push_back(run(torch));
    }
    const double fma_peak = bench::fma_peak(threads);
    const Measured base = medians(tiled);
    print(length, threads, "tiled", base, base, fma_peak);
    if (!named.empty()) print(length, threads, "named", medians(named), base, fma_peak);
    print(length, threads, "PyTorch", medians(others), base, fma_peak);
}

}  // namespace

int main(int count, char** arguments) try {
    const std::vector<std::string> given(arguments + 1, arguments + count);
    if (given.size() == 1 && given[0] == "--help") {
        std::puts(
            "bench_attention [LENGTH]... [--threads N]\n"
            "LENGTH: 512 to 16384 if none are given; --threads: 1 and 2 if not given");
        return 0;
    }
    if (given.size() == 2 && (given[0] == "named" || given[0] == "tiled")) {
        return measure(given[0] == "named" ? AttentionForm::named : AttentionForm::tiled,
                       std::stoll(given[1]));
    }
    std::vector<std::int64_t> lengths;
    std::vector<int> threads{1, 2};
    for (std::size_t i = 0; i < given.size(); ++i) {
        if (given[i] == "--threads" && i + 1 < given.size()) {
            threads = {std::stoi(given[++i])};
        } else if (given[i].find_first_not_of("0123456789") == std::string::npos) {
            lengths.push_back(std::stoll(given[i]));
        } else {
            throw std::invalid_argument(given[i] + " is neither a length nor an option");
        }
    }
    if (lengths.empty()) lengths = {512, 1024, 2048, 4096, 8192, 16384};
    std::printf(
        "| length | threads | form | forward, ms | backward, ms | both, ms | of FMA peak, %% | "
        "peak, MB | resident, MB | time / tiled | resident / tiled |\n"
        "| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    const std::string self = "'" + std::string(arguments[0]) + "'";
    for (const int n : threads) {
        for (const std::int64_t length : lengths) compare(self, length, n);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "bench_attention: %s; --help tells the arguments\n", error.what());
    return 1;
}
