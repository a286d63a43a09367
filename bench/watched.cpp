// What watching costs: two layers of a transformer on 64 positions of 128 numbers, forward and
// backward, alone and under an anomaly observer.

#include <glassgrad/autograd.hpp>
#include <glassgrad/tensor.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

using namespace glassgrad;

namespace {

constexpr std::int64_t positions = 64;
constexpr std::int64_t width = 128;

struct Layer {
    Variable query, key, value, output, up, down;
};

class Transformer {
  public:
    explicit Transformer(DType dtype) {
        RandomState rng(1);
        const auto draw = [&](const Shape& shape) {
            return scale(rng.randn(shape, {.dtype = dtype}), 1 / std::sqrt(double{width}));
        };
        x_ = Variable(draw({positions, width}));
        for (Layer& layer : layers_) {
            for (Variable* w :
                 {&layer.query, &layer.key, &layer.value, &layer.output, &layer.up, &layer.down}) {
                *w = parameter(draw({width, width}));
            }
        }
        Tensor allowed = Tensor::empty({positions, positions}, boolean);
        bool* out = allowed.mutable_data<bool>();
        for (std::int64_t i = 0; i < positions * positions; ++i) {
            out[i] = i % positions <= i / positions;
        }
        allowed_ = Variable(allowed);
        forbidden_ = Variable(full({}, -std::numeric_limits<double>::infinity(), dtype));
    }

    void step() {
        Variable h = x_;
        for (const Layer& layer : layers_) {
            const Variable q = matmul(h, layer.query);
            const Variable k = matmul(h, layer.key);
            const Variable v = matmul(h, layer.value);
            const Variable scores = matmul(q, k, {.transpose_b = true}) * 0.088;
            const Variable weights = softmax(where(allowed_, scores, forbidden_));
            h = h + matmul(matmul(weights, v), layer.output);
            h = h + matmul(relu(matmul(h, layer.up)), layer.down);
        }
        backward(mean(h * h));
        for (Layer& layer : layers_) {
            for (Variable* w :
                 {&layer.query, &layer.key, &layer.value, &layer.output, &layer.up, &layer.down}) {
                w->zero_grad();
            }
        }
    }

  private:
    Layer layers_[2];
    Variable x_, allowed_, forbidden_;
};

void step(benchmark::State& state, DType dtype, bool watched) {
    Transformer model(dtype);
    Anomaly anomaly;
    if (watched) {
        const Observing observing(anomaly);
        for (auto _ : state) model.step();
    } else {
        for (auto _ : state) model.step();
    }
}
BENCHMARK_CAPTURE(step, f32_alone, f32, false);
BENCHMARK_CAPTURE(step, f32_watched, f32, true);
BENCHMARK_CAPTURE(step, f64_alone, f64, false);
BENCHMARK_CAPTURE(step, f64_watched, f64, true);

/// Watched over alone, of medians of processor time whose trials take turns: the counter `ratio`.
void ratio(benchmark::State& state, DType dtype) {
    Transformer model(dtype);
    Anomaly anomaly;
    std::vector<double> alone, watched;
    const auto time = [&] {
        const std::clock_t begin = std::clock();
        for (int i = 0; i < 3; ++i) model.step();
        return static_cast<double>(std::clock() - begin);
    };
    const auto median = [](std::vector<double>& times) {
        std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2),
                         times.end());
        return times[times.size() / 2];
    };
    model.step();
    for (auto _ : state) {
        alone.push_back(time());
        const Observing observing(anomaly);
        watched.push_back(time());
    }
    state.counters["ratio"] = median(watched) / median(alone);
}
BENCHMARK_CAPTURE(ratio, f32, f32)->Iterations(200);
BENCHMARK_CAPTURE(ratio, f64, f64)->Iterations(200);

}  // namespace

int main(int argc, char** argv) {
    set_num_threads(1);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
}
