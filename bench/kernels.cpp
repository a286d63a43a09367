// Kernels in f32 against their limit: a loop written for the one work and this machine
// (hand_kernels.cpp), with plain or streaming stores, on one thread or all, whichever is fastest at
// that size. For a large array that is what memory gives for as many streams, for a small one what
// the vector units give. Derivatives are sweeps over a graph that is kept, so with the cost of one.
//
// Arguments: names such as gelu (all if none are given; a derivative comes with its op), --threads
// N (1 and 2 if not given), --kilobytes K (of one array; 4 to 262144 if not given), --trials N.

#include "hand_kernels.hpp"
#include "timing.hpp"

#include <glassgrad/autograd.hpp>
#include <glassgrad/training.hpp>

#include <cmath>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace glassgrad;
using bench::row_length;

namespace {

struct Options {
    std::vector<std::string> names;
    std::vector<int> threads{1, 2};
    std::vector<std::int64_t> kilobytes{4, 64, 1024, 16384, 262144};
    int trials = 7;
};

/// Written where the compiler can't see that nobody reads it.
volatile double sink = 0;

/// What all kernels of one size read and write.
struct Data {
    explicit Data(std::int64_t n)
        : rows(n / row_length), x(draw(1)), gy(draw(2)), other(draw(3)), target(classes()) {}

    Tensor draw(std::uint64_t seed) const {
        return scale(CounterRng(seed).random({rows, row_length}, {.dtype = f32}) - 0.5F, 6);
    }
    Tensor classes() const {
        std::vector<std::int64_t> values;
        for (std::int64_t i = 0; i < rows; ++i) values.push_back(i * 37 % row_length);
        return from_span<std::int64_t>(values, {rows});
    }

    std::int64_t rows;
    Tensor x, gy, other, target;
};

/// A work in the library and the arrays of its loop by hand.
struct Kernel {
    std::string name;
    std::function<Tensor()> ours;  ///< gives what the first output, or the sum, of the loop is
    bench::Arrays in;
    std::vector<Tensor> kept = {};  ///< what `in` points to
};

using Function = std::function<Variable(const std::vector<Variable>&)>;

/// An op and its derivative. `first` is what the derivative's loop reads as x.
enum class Reads { input, result };
void add_op(std::vector<Kernel>& all, const std::string& name, const Data& data,
            const std::vector<Variable>& inputs, const Function& f, Reads reads,
            const bench::Arrays& more = {}) {
    bench::Arrays in = more;
    in.x = data.x.data<float>();
    in.gy = data.other.data<float>();
    in.target = data.target.data<std::int64_t>();
    in.factor = 1 / static_cast<float>(data.rows);
    all.push_back({name,
                   [=] {
                       const NoGrad guard;
                       return f(inputs).value();
                   },
                   in});
    if (name == "add") return;  // its derivative is gy itself
    const Variable y = f(inputs);
    const bool scalar = y.value().numel() == 1;
    const Variable gy(scalar ? ones(y.shape(), f32) : data.gy);
    if (reads == Reads::result) in.x = y.value().data<float>();
    in.gy = data.gy.data<float>();
    all.push_back(
        {name + ", derivative",
         [=] { return grad({y}, inputs, {.grad_outputs = {gy}, .retain_graph = true})[0].value(); },
         in,
         {y.value()}});
}

Kernel adamw(const Data& data) {
    const Variable w = parameter(data.other);
    ParameterGroup group;
    group.parameters = {{"w", w}};
    group.weight_decay = 0.1;
    const auto optimizer = std::make_shared<AdamW>(
        std::vector{group}, AdamOptions{.lr = 1e-3, .beta1 = 0.9, .beta2 = 0.99});
    Variable(w).set_grad(data.gy);
    std::vector<Tensor> kept(3, zeros(data.x.shape(), f32));
    bench::Arrays in;
    in.gy = data.gy.data<float>();
    in.w = kept[0].mutable_data<float>();
    in.mean = kept[1].mutable_data<float>();
    in.square = kept[2].mutable_data<float>();
    return {"adamw",
            [=] {
                optimizer->step();
                return Tensor();
            },
            in, kept};
}

std::vector<Kernel> kernels_of(const std::string& name, const Data& data) {
    std::vector<Kernel> all;
    const Variable x = parameter(data.x);
    const auto unary = [&](const Function& f, Reads reads = Reads::input) {
        add_op(all, name, data, {x}, f, reads);
    };
    if (name == "add" || name == "mul") {
        const Variable other = parameter(data.other);
        std::vector<Tensor> writable{data.other};
        bench::Arrays more;
        more.w = writable[0].mutable_data<float>();
        add_op(
            all, name, data, {x, other},
            [add = name == "add"](const std::vector<Variable>& v) {
                return add ? v[0] + v[1] : v[0] * v[1];
            },
            Reads::input, more);
        for (Kernel& each : all) each.kept.push_back(writable[0]);
    } else if (name == "exp") {
        unary([](const std::vector<Variable>& v) { return exp(v[0]); }, Reads::result);
    } else if (name == "tanh") {
        unary([](const std::vector<Variable>& v) { return tanh(v[0]); }, Reads::result);
    } else if (name == "gelu") {
        unary([](const std::vector<Variable>& v) {
            return gelu(v[0], {.approximate = Approximate::tanh});
        });
    } else if (name == "silu") {
        unary([](const std::vector<Variable>& v) { return silu(v[0]); });
    } else if (name == "softmax") {
        unary([](const std::vector<Variable>& v) { return softmax(v[0]); }, Reads::result);
    } else if (name == "layer_norm") {
        const Variable weight = parameter(ones({row_length}, f32));
        const Variable bias = parameter(zeros({row_length}, f32));
        std::vector<Tensor> writable{ones({row_length}, f32), zeros({row_length}, f32)};
        bench::Arrays more;
        more.w = writable[0].mutable_data<float>();
        more.mean = writable[1].mutable_data<float>();
        add_op(
            all, name, data, {x, weight, bias},
            [](const std::vector<Variable>& v) { return layer_norm(v[0], v[1], v[2]); },
            Reads::input, more);
        for (Kernel& each : all) {
            each.kept.insert(each.kept.end(), writable.begin(), writable.end());
        }
    } else if (name == "cross_entropy") {
        unary([target = Variable(data.target)](const std::vector<Variable>& v) {
            return cross_entropy(v[0], target);
        });
    } else if (name == "sum") {
        unary([](const std::vector<Variable>& v) { return sum(v[0]); });
    } else if (name == "adamw") {
        all.push_back(adamw(data));
    }
    return all;
}

const std::vector<std::string>& names() {
    static const std::vector<std::string> all{"add",  "mul",           "exp",     "tanh",
                                              "gelu", "silu",          "softmax", "layer_norm",
                                              "sum",  "cross_entropy", "adamw"};
    return all;
}

double seconds_of(const std::function<void()>& call, int count) {
    const double start = bench::seconds();
    for (int i = 0; i < count; ++i) call();
    return (bench::seconds() - start) / count;
}

/// Throws unless the loop by hand gives what the library gives, to what approximations allow.
void require_same(const Kernel& kernel, const Tensor& ours, double total, const Tensor& written) {
    if (!ours.defined()) return;
    const bool scalar = ours.numel() == 1;
    const double got = scalar ? total : 0;
    const double worst = scalar ? std::abs(ours.item() - got) / std::max(1.0, std::abs(got))
                                : max(abs(reshape(ours, {ours.numel()}) - written)).item();
    if (worst < 1e-4) return;
    throw std::runtime_error(kernel.name + " and the loop by hand differ by " +
                             std::to_string(worst));
}

void measure(const Kernel& kernel, std::int64_t n, int threads, int trials) {
    const bench::HandKernel hand = bench::hand_kernel(kernel.name.c_str());
    std::vector<Tensor> written(2);
    float* out[2] = {};
    for (std::size_t i = 0; i < static_cast<std::size_t>(hand.outputs); ++i) {
        written[i] = zeros({n}, f32);
        out[i] = written[i].mutable_data<float>();
    }
    require_same(kernel, kernel.ours(),
                 bench::run_by_hand(hand, kernel.in, out, n, threads, bench::Stores::plain),
                 written[0]);
    std::vector<std::function<void()>> programs{kernel.ours};
    for (const bench::Stores stores : {bench::Stores::plain, bench::Stores::streaming}) {
        if (stores == bench::Stores::streaming && hand.outputs == 0) continue;
        for (int i = 1; i <= threads; i += threads > 1 ? threads - 1 : 1) {
            programs.emplace_back([&kernel, hand, n, i, stores, &out] {
                sink = bench::run_by_hand(hand, kernel.in, out, n, i, stores);
            });
        }
    }
    std::vector<std::vector<double>> times(programs.size());
    std::vector<int> counts;
    for (const auto& program : programs) {
        program();
        counts.push_back(static_cast<int>(2e-3 / seconds_of(program, 1)) + 1);
    }
    for (int trial = 0; trial < trials; ++trial) {
        for (std::size_t i = 0; i < programs.size(); ++i) {
            times[i].push_back(seconds_of(programs[i], counts[i]));
        }
    }
    // Trials are so short that whoever else uses the machine is in some of them only.
    const double ours = bench::least(times[0]);
    double limit = bench::least(times[1]);
    for (std::size_t i = 2; i < times.size(); ++i) limit = std::min(limit, bench::least(times[i]));
    std::printf("| %s | %d | %lld | %.4g | %.4g | %.2f | %.3g |\n", kernel.name.c_str(), threads,
                static_cast<long long>(n * 4 / 1024), ours * 1e6, limit * 1e6,
                static_cast<double>(n) / ours / 1e9, 100 * limit / ours);
    std::fflush(stdout);
}

constexpr const char* usage =
    "bench_kernels [NAME]... [--threads N] [--kilobytes K] [--trials N]\n"
    "NAME: add mul exp tanh gelu silu softmax layer_norm sum cross_entropy adamw; all if none\n"
    "--threads: 1 and 2 if not given; --kilobytes: of one array, 4 to 262144 if not given\n";

std::int64_t number_of(const std::string& option, const std::string& given) {
    std::size_t read = 0;
    std::int64_t number = 0;
    try {
        number = std::stoll(given, &read);
    } catch (const std::exception&) {
        read = 0;
    }
    if (read == 0 || read != given.size() || number < 1 || number > 1 << 30) {
        throw std::invalid_argument(option + " takes a number from 1 on, got " + given);
    }
    return number;
}

Options parse(int count, char** given) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string argument = given[i];
        const bool more = i + 1 < count;
        if (argument == "--threads" && more) {
            options.threads = {static_cast<int>(number_of(argument, given[++i]))};
        } else if (argument == "--kilobytes" && more) {
            options.kilobytes = {number_of(argument, given[++i])};
        } else if (argument == "--trials" && more) {
            options.trials = static_cast<int>(number_of(argument, given[++i]));
        } else if (std::find(names().begin(), names().end(), argument) != names().end()) {
            options.names.push_back(argument);
        } else {
            throw std::invalid_argument("no kernel or option " + argument + "\n" + usage);
        }
    }
    if (options.names.empty()) options.names = names();
    return options;
}

void run(const Options& options) {
    std::printf(
        "| kernel | threads | kB | µs | limit, µs | elements/ns | share of the limit, %% |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const int threads : options.threads) {
        set_num_threads(threads);
        for (const std::string& name : options.names) {
            for (const std::int64_t kilobytes : options.kilobytes) {
                const std::int64_t n = std::max<std::int64_t>(1, kilobytes / 4) * row_length;
                const Data data(n);
                for (const Kernel& kernel : kernels_of(name, data)) {
                    measure(kernel, n, threads, options.trials);
                }
            }
        }
    }
}

}  // namespace

int main(int count, char** given) {
    if (count == 2 && std::string(given[1]) == "--help") {
        std::fputs(usage, stdout);
        return 0;
    }
    try {
        run(parse(count, given));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_kernels: %s\n", error.what());
        return 1;
    }
    return 0;
}
