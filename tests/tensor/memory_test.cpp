// What the pool promises: nothing leaks, a steady loop takes nothing anew, blocks are aligned.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <cstdint>
#include <thread>
#include <vector>

using namespace glassgrad;
using namespace glassgrad::testing;

#if defined(__SANITIZE_ADDRESS__)
#define GLASSGRAD_TEST_POOL 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GLASSGRAD_TEST_POOL 0
#endif
#endif
#ifndef GLASSGRAD_TEST_POOL
#define GLASSGRAD_TEST_POOL 1
#endif

namespace {

/// A bit of everything that allocates.
double step(const Tensor& x, const Tensor& w) {
    Tensor y = softmax(matmul(x, w, {.transpose_b = true}));
    y += transpose(y);
    y *= 0.5;
    const Tensor z = concat({y, permute(y, {1, 0})}, 1);
    const Tensor picked = where(greater(z, zeros(z.shape())), exp(z), slice(z, 0, {.step = -1}));
    return sum(picked, {.axes = {0}}).at({3}) + var(picked).item();
}

}  // namespace

TEST_CASE("what is live returns to where it was when tensors go") {
    const MemoryStats before = memory_stats();
    {
        const Tensor x = ones({100, 10});
        const Tensor y = x;
        const MemoryStats during = memory_stats();
        CHECK(during.live_blocks == before.live_blocks + 1);
        CHECK(during.requests == before.requests + 1);
        CHECK(during.live_bytes >= before.live_bytes + 4000);
        const RandomState random(1);
        (void)step(ones({12, 5}), full({12, 5}, 0.5));
    }
    const MemoryStats after = memory_stats();
    CHECK(after.live_bytes == before.live_bytes);
    CHECK(after.live_blocks == before.live_blocks);
}

TEST_CASE("errors thrown half way leave nothing behind") {
    const MemoryStats before = memory_stats();
    for (int i = 0; i < 20; ++i) {
        CHECK_THROWS_AS(concat({ones({2, 3}), ones({2, 3}), ones({2, 4})}), ShapeError);
        CHECK_THROWS_AS(pow(arange(5), arange(-2, 3)), ValueError);
        CHECK_THROWS_AS(tensor({1, 1e300}, i64), ValueError);
        CHECK_THROWS_AS(tensor({{1, 2}, {3}}), ShapeError);
        CHECK_THROWS_AS(var(ones({1}), {.correction = 1}), ValueError);
    }
    CHECK(memory_stats().live_bytes == before.live_bytes);
    CHECK(memory_stats().live_blocks == before.live_blocks);
}

TEST_CASE("a steady loop takes no block from the system") {
    if (!GLASSGRAD_TEST_POOL) SKIP("the pool is off under the address sanitizer");
    RandomState random(3);
    const Tensor x = random.randn({12, 5}, {.dtype = f32});
    const Tensor w = random.randn({12, 5}, {.dtype = f32});
    const double first = step(x, w);
    const MemoryStats before = memory_stats();
    for (int i = 0; i < 200; ++i) CHECK(step(x, w) == first);
    const MemoryStats after = memory_stats();
    CHECK(after.allocations == before.allocations);
    CHECK(after.requests > before.requests + 1000);
    CHECK(after.cached_bytes == before.cached_bytes);
}

TEST_CASE("the peak is the most that was live, and can be reset") {
    reset_peak_memory();
    const MemoryStats before = memory_stats();
    { const Tensor x = ones({1000, 1000}); }
    const MemoryStats after = memory_stats();
    CHECK(after.peak_bytes >= before.live_bytes + 4000000);
    CHECK(after.peak_bytes < before.live_bytes + 8000000);
    reset_peak_memory();
    CHECK(memory_stats().peak_bytes == memory_stats().live_bytes);
}

TEST_CASE("cached blocks go back to the system when asked") {
    { const Tensor x = ones({1000, 100}); }
    release_cached_memory();
    const MemoryStats freed = memory_stats();
    { const Tensor x = ones({1000, 100}); }
    const MemoryStats after = memory_stats();
    CHECK(after.allocations == freed.allocations + 1);
    if (GLASSGRAD_TEST_POOL) CHECK(after.cached_bytes >= freed.cached_bytes + 400000);
    release_cached_memory();
    CHECK(memory_stats().cached_bytes == freed.cached_bytes);
}

TEST_CASE("sizes of before make room for those of now") {
    if (!GLASSGRAD_TEST_POOL) SKIP("the pool is off under the address sanitizer");
    {
        // Never written, so never there.
        std::vector<Tensor> large;
        for (int i = 0; i < 5; ++i)
            large.push_back(Tensor::empty({std::int64_t{1} << 29}, boolean));
    }
    CHECK(memory_stats().cached_bytes > std::int64_t{1} << 31);
    { const Tensor x = Tensor::empty({100000}, f32); }
    CHECK(memory_stats().cached_bytes <= std::int64_t{1} << 31);
    const MemoryStats before = memory_stats();
    for (int i = 0; i < 3; ++i) const Tensor x = Tensor::empty({100000}, f32);
    CHECK(memory_stats().allocations == before.allocations);
    release_cached_memory();
}

TEST_CASE("elements are aligned to 64 bytes, whatever the size") {
    std::vector<Tensor> kept;
    for (std::int64_t n = 0; n < 3000; n += 1 + n / 7) {
        for (const DType dtype : {f32, f64, i64, boolean}) {
            kept.push_back(zeros({n}, dtype));
            CHECK(reinterpret_cast<std::uintptr_t>(kept.back().bytes()) % 64 == 0);
        }
    }
    for (const std::int64_t n : {std::int64_t{1} << 20, (std::int64_t{5} << 18) + 1}) {
        Tensor x = Tensor::empty({n}, boolean);
        bool* out = x.mutable_data<bool>();
        out[0] = out[n - 1] = true;
        CHECK(reinterpret_cast<std::uintptr_t>(x.bytes()) % 64 == 0);
    }
}

TEST_CASE("a tensor made by one thread may be the last held by another") {
    const MemoryStats before = memory_stats();
    for (int round = 0; round < 20; ++round) {
        std::vector<Tensor> made;
        std::thread maker([&] {
            for (int i = 0; i < 50; ++i) made.push_back(full({64}, i));
        });
        maker.join();
        std::thread user([taken = std::move(made)]() mutable {
            for (std::size_t i = 0; i < taken.size(); ++i) {
                taken[i] += ones({64});
                if (taken[i].at({63}) != double(i + 1)) std::abort();
            }
            taken.clear();
        });
        user.join();
    }
    const MemoryStats after = memory_stats();
    CHECK(after.live_bytes == before.live_bytes);
    CHECK(after.live_blocks == before.live_blocks);
}

TEST_CASE("copies held by many threads are counted right and written apart") {
    const Tensor shared = full({1000}, 1, f64);
    std::vector<std::thread> threads;
    std::vector<double> sums(4);
    for (std::size_t t = 0; t < sums.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) {
                Tensor mine = shared;
                const Tensor other = mine;
                mine.mutable_data<double>()[7] = double(t);
                sums[t] += sum(mine).item() + sum(other).item();
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 0; t < sums.size(); ++t) CHECK(sums[t] == 500 * (1999 + double(t)));
    CHECK(shared.is_unique());
    CHECK(sum(shared).item() == 1000);
}

TEST_CASE("memory that the system does not have is an error that says how much was asked for") {
    if (!GLASSGRAD_TEST_POOL) SKIP("the address sanitizer ends the program instead");
    CHECK(message_of([] { Tensor::empty({std::int64_t{1} << 58}); }) ==
          "tensor: no memory for (288230376151711744,) of f32, 1152921504606847040 bytes");
    CHECK_THROWS_AS(zeros({std::int64_t{1} << 50}, f64), MemoryError);
}
