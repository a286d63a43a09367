// Fused multiply-adds in registers, enough of them at once to fill the pipes: what products can't
// exceed. The compiler must neither drop nor reorder them, so they are intrinsics.

#include "timing.hpp"

#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {
namespace {

/// Twelve chains: two pipes with a latency of four need eight.
constexpr int chains = 12;
constexpr double trial_seconds = 0.02;

/// Does `rounds` rounds of `chains` vectors; a number made of the results, so that they are used.
using Loop = float (*)(std::int64_t rounds);

struct InstructionSet {
    int lanes;
    Loop loop;
};

#if defined(__x86_64__)

__attribute__((target("avx512f"))) float avx512(std::int64_t rounds) {
    __m512 sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
    const __m512 factor = _mm512_set1_ps(0.999F);
    const __m512 term = _mm512_set1_ps(1e-3F);
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i < chains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
    }
    float total = 0;
    for (const __m512& sum : sums) total += _mm512_cvtss_f32(sum);
    return total;
}

__attribute__((target("avx2,fma"))) float avx2(std::int64_t rounds) {
    __m256 sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
    const __m256 factor = _mm256_set1_ps(0.999F);
    const __m256 term = _mm256_set1_ps(1e-3F);
    for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i < chains; ++i) sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
    }
    float total = 0;
    for (const __m256& sum : sums) total += _mm256_cvtss_f32(sum);
    return total;
}

#endif

float scalar(std::int64_t rounds) {
    float sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = static_cast<float>(i);
    for (std::int64_t round = 0; round < rounds; ++round) {
        for (float& sum : sums) sum = sum * 0.999F + 1e-3F;
    }
    float total = 0;
    for (const float sum : sums) total += sum;
    return total;
}

std::vector<InstructionSet> instruction_sets() {
    std::vector<InstructionSet> sets;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) sets.push_back({16, avx512});
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back({8, avx2});
#endif
    if (sets.empty()) sets.push_back({1, scalar});
    return sets;
}

/// Seconds until the last of the threads is done, all started together.
double run(Loop loop, std::int64_t rounds, int threads) {
    std::atomic<int> waiting{threads};
    std::atomic<float> sink{0};
    std::vector<double> starts(static_cast<std::size_t>(threads));
    std::vector<double> ends(static_cast<std::size_t>(threads));
    const auto work = [&](std::size_t which) {
        --waiting;
        while (waiting > 0) {
        }
        starts[which] = seconds();
        sink = loop(rounds);
        ends[which] = seconds();
    };
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work, static_cast<std::size_t>(i));
    work(0);
    for (std::thread& other : others) other.join();
    return *std::max_element(ends.begin(), ends.end()) - least(starts);
}

}  // namespace

double fma_peak(int threads) {
    double best = 0;
    for (const InstructionSet& set : instruction_sets()) {
        const double once = run(set.loop, 100'000, 1);
        const auto rounds = static_cast<std::int64_t>(1e5 * trial_seconds / once);
        const double flop = 2.0 * chains * set.lanes * static_cast<double>(rounds) * threads;
        for (int trial = 0; trial < 10; ++trial) {
            best = std::max(best, flop / run(set.loop, rounds, threads));
        }
    }
    return best;
}

}  // namespace bench
