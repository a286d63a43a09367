// Attention in its two forms and PyTorch's, by length: time and memory of forward and backward, 8
// causal heads of 64 in f32. Every measurement is a process of its own, so that its peak is its
// own; the peers take turns. Arguments: the lengths; 512 to 16384 if none are given.

#include <glassgrad/autograd.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
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

double seconds() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

double resident() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) * 1024;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// In the child: prints what one form takes.
int measure(AttentionForm form, std::int64_t length) {
    RandomState rng(1);
    std::vector<Variable> x;
    for (int i = 0; i < 3; ++i) {
        x.push_back(parameter(rng.uniform(-1, 1, {1, heads, length, width}, {.dtype = f32})));
    }
    const Variable cotangent(ones({1, heads, length, width}, f32));
    const double live = static_cast<double>(memory_stats().live_bytes);
    const double before = resident();
    reset_peak_memory();
    std::vector<double> forward, backward;
    // The first is left out, but for lengths whose time it doesn't change.
    const int trials = length <= 1024 ? 6 : length <= longest_named ? 2 : 1;
    for (int i = 0; i < trials; ++i) {
        const double start = seconds();
        const Variable y =
            scaled_dot_product_attention(x[0], x[1], x[2], {.causal = true, .form = form});
        const double middle = seconds();
        const auto gradients = grad({y}, x, {.grad_outputs = {cotangent}});
        const double end = seconds();
        if (i == 0 && trials > 1) continue;
        forward.push_back(middle - start);
        backward.push_back(end - middle);
    }
    std::printf("%g %g %g %g\n", median(forward), median(backward),
                static_cast<double>(memory_stats().peak_bytes) - live, resident() - before);
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
        return median(values);
    };
    return {of(&Measured::forward), of(&Measured::backward), of(&Measured::peak),
            of(&Measured::resident)};
}

void print(std::int64_t length, const char* name, const Measured& x, const Measured& tiled) {
    if (x.total() == 0) return;
    std::printf("%7lld  %-8s %10.1f %10.1f %10.1f", static_cast<long long>(length), name,
                x.forward * 1e3, x.backward * 1e3, x.total() * 1e3);
    std::printf(x.peak > 0 ? " %10.1f" : "          -", x.peak / 1e6);
    std::printf(" %10.1f %8.2f %8.2f\n", x.resident / 1e6, x.total() / tiled.total(),
                x.resident / tiled.resident);
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> given(arguments + 1, arguments + count);
    if (given.size() == 2 && (given[0] == "named" || given[0] == "tiled")) {
        return measure(given[0] == "named" ? AttentionForm::named : AttentionForm::tiled,
                       std::stoll(given[1]));
    }
    std::vector<std::int64_t> lengths;
    for (const std::string& each : given) lengths.push_back(std::stoll(each));
    if (lengths.empty()) lengths = {512, 1024, 2048, 4096, 8192, 16384};
    std::printf("8 causal heads of 64, f32, %d thread(s); milliseconds, MB, and ratios to tiled\n",
                num_threads());
    std::printf("%7s  %-8s %10s %10s %10s %10s %10s %8s %8s\n", "length", "form", "forward",
                "backward", "both", "peak", "resident", "time", "memory");
    const std::string self = "'" + std::string(arguments[0]) + "' ";
    // Debian's torch belongs to its own python3.
    const std::string torch = "for p in python3 /usr/bin/python3; do $p '" GLASSGRAD_BENCH_FOLDER
                              "/torch_attention.py' LENGTH 2>/dev/null && break; done";
    for (const std::int64_t length : lengths) {
        const std::string text = std::to_string(length);
        std::string peer = torch;
        peer.replace(peer.find("LENGTH"), 6, text);
        std::vector<Measured> tiled, named, others;
        for (int round = 0; round < (length <= longest_named ? 3 : 1); ++round) {
            tiled.push_back(run(self + "tiled " + text));
            if (length > longest_named) continue;
            named.push_back(run(self + "named " + text));
            others.push_back(run(peer));
        }
        const Measured base = medians(tiled);
        print(length, "tiled", base, base);
        if (named.empty()) continue;
        print(length, "named", medians(named), base);
        print(length, "PyTorch", medians(others), base);
    }
    return 0;
}
