// Single ops and their overhead, with Google Benchmark: what a step of the worked example is made
// of. Every size appears in the name.

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>
#include <glassgrad/tensor.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>

using namespace glassgrad;

namespace {

Tensor draw(const Shape& shape, DType dtype = f64) {
    RandomState rng(1);
    return rng.randn(shape, {.dtype = dtype});
}

template <class F>
void run(benchmark::State& state, const F& f) {
    for (auto _ : state) benchmark::DoNotOptimize(f());
}

void pool(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    for (auto _ : state) {
        void* block = detail::pool_allocate(bytes);
        benchmark::DoNotOptimize(block);
        detail::pool_free(block, bytes);
    }
}
BENCHMARK(pool)->ArgName("bytes")->Arg(96)->Arg(1 << 20);

void tensor_empty(benchmark::State& state) {
    run(state, [] { return Tensor::empty({4, 6}, f64); });
}
BENCHMARK(tensor_empty);

void tensor_copy(benchmark::State& state) {
    const Tensor x = draw({4, 6});
    run(state, [&] { return Tensor(x); });
}
BENCHMARK(tensor_copy);

void matmul_tensor(benchmark::State& state) {
    const std::int64_t m = state.range(0), k = state.range(1), n = state.range(2);
    const Tensor a = draw({m, k});
    const Tensor b = draw({k, n});
    run(state, [&] { return matmul(a, b); });
}
BENCHMARK(matmul_tensor)
    ->ArgNames({"m", "k", "n"})
    ->Args({4, 6, 3})
    ->Args({16, 16, 16})
    ->Args({64, 64, 64});

void matmul_tensor_transposed_b(benchmark::State& state) {
    const Tensor a = draw({4, 3});
    const Tensor b = draw({4, 3});
    run(state, [&] { return matmul(a, b, {.transpose_b = true}); });
}
BENCHMARK(matmul_tensor_transposed_b);

void add_tensor(benchmark::State& state) {
    const Tensor a = draw({4, 6});
    const Tensor b = draw({4, 6});
    run(state, [&] { return a + b; });
}
BENCHMARK(add_tensor);

void scale_tensor(benchmark::State& state) {
    const Tensor x = draw({4, 4});
    run(state, [&] { return scale(x, 0.5); });
}
BENCHMARK(scale_tensor);

void softmax_tensor(benchmark::State& state) {
    const Tensor x = draw({4, 4});
    run(state, [&] { return softmax(x); });
}
BENCHMARK(softmax_tensor);

void softmax_vjp_tensor(benchmark::State& state) {
    const Tensor y = softmax(draw({4, 4}));
    const Tensor gy = draw({4, 4});
    run(state, [&] { return softmax_vjp(y, gy, -1); });
}
BENCHMARK(softmax_vjp_tensor);

/// What recording adds: the same op on Variables, without and with a node.
void scale_constant(benchmark::State& state) {
    const Variable x(draw({4, 4}));
    run(state, [&] { return scale(x, 0.5); });
}
BENCHMARK(scale_constant);

void scale_recorded(benchmark::State& state) {
    const Variable x = parameter(draw({4, 4}));
    run(state, [&] { return scale(x, 0.5); });
}
BENCHMARK(scale_recorded);

void matmul_recorded(benchmark::State& state) {
    const Variable a = parameter(draw({4, 6}));
    const Variable b = parameter(draw({6, 3}));
    run(state, [&] { return matmul(a, b); });
}
BENCHMARK(matmul_recorded);

/// A chain of n ops, forward and backward: the time per op is what the graph costs.
void chain(benchmark::State& state) {
    const std::int64_t length = state.range(0);
    Variable x = parameter(draw({4}));
    const Tensor gy = draw({4});
    for (auto _ : state) {
        Variable y = x;
        for (std::int64_t i = 0; i < length; ++i) y = scale(y, 1.0);
        backward(y, {.gradient = gy});
        x.zero_grad();
    }
    state.SetItemsProcessed(state.iterations() * length);
}
BENCHMARK(chain)->ArgName("ops")->Arg(1)->Arg(100)->Arg(10000);

void zero_grad_module(benchmark::State& state) {
    RandomState rng(1);
    Attention attention({6, 3, 3}, rng);
    for (auto _ : state) attention.zero_grad();
}
BENCHMARK(zero_grad_module);

}  // namespace

int main(int argc, char** argv) {
    set_num_threads(1);
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
    benchmark::RunSpecifiedBenchmarks();
}
