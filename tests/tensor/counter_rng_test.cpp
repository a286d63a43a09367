// The counter-based generator: NumPy's numbers, and what dropout makes of them.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <cmath>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

std::uint64_t hexadecimal(const nlohmann::json& text) {
    return std::stoull(text.get<std::string>(), nullptr, 16);
}

double share_of(const Tensor& mask) {
    return sum(mask.astype(i64)).item() / static_cast<double>(mask.numel());
}

}  // namespace

TEST_CASE("the counter-based generator gives the numbers of NumPy's Philox") {
    for (const auto& item : load_json("philox_cases.json")) {
        CounterRng rng(hexadecimal(item["key"][0]), hexadecimal(item["key"][1]));
        for (const auto& raw : item["raw"]) CHECK(rng.next() == hexadecimal(raw));
        CounterRng single = rng;
        const Tensor drawn = rng.random({4001});
        Hash hash;
        for (const double x : drawn.values<double>()) hash.add(word(x));
        CHECK(hash.value() == hexadecimal(item["hash"]));
        for (const auto& first : item["first"]) {
            CHECK(word(single.next_double()) == hexadecimal(first));
        }
        CHECK(rng.position() == 9 + 4001);
    }
}

TEST_CASE("a number depends on seed, stream and position alone") {
    const int before = num_threads();
    CounterRng whole(5, 1);
    const Tensor all = whole.random({100003});
    for (const int threads : {1, 2, 4}) {
        set_num_threads(threads);
        CounterRng again(5, 1);
        const Tensor same = again.random({100003});
        CHECK(std::equal(all.bytes(), all.bytes() + 8 * all.numel(), same.bytes()));
    }
    set_num_threads(before);
    for (const std::uint64_t position : {0u, 1u, 2u, 3u, 4u, 4099u, 100002u}) {
        CounterRng there(5, 1);
        there.set_position(position);
        CHECK(there.next_double() == all.at({static_cast<std::int64_t>(position)}));
    }
    CounterRng other(5, 2);
    CHECK(other.next_double() != all.at({0}));
    CHECK(CounterRng(5, 1) == CounterRng(5, 1));
    CHECK_FALSE(whole == CounterRng(5, 1));
}

TEST_CASE("f32 numbers are below 1 and those of f64 cut to 24 bits") {
    CounterRng narrow(3), wide(3);
    const Tensor a = narrow.random({5000}, {.dtype = f32});
    const Tensor b = wide.random({5000});
    for (std::size_t i = 0; i < 5000; ++i) {
        const double cut = std::floor(b.values<double>()[i] * 0x1p24) * 0x1p-24;
        CHECK(static_cast<double>(a.values<float>()[i]) == cut);
    }
    CHECK(message_of([&] { narrow.random({2}, {.dtype = i64}); }) ==
          "random: draws f32 or f64, not i64");
}

TEST_CASE("a look at numbers to come draws none of them") {
    CounterRng rng(11);
    rng.set_position(2);
    bool seen[7];
    rng.peek_bernoulli(0.5, 3, seen);
    CHECK(rng.position() == 2);
    const Tensor drawn = rng.bernoulli(0.5, {10});
    for (int i = 0; i < 7; ++i)
        CHECK(seen[i] == drawn.values<bool>()[static_cast<std::size_t>(i + 3)]);
}

TEST_CASE("bernoulli and dropout hit their rate, and the ends exactly") {
    CounterRng rng(11);
    CHECK(std::abs(share_of(rng.bernoulli(0.3, {100000})) - 0.3) < 0.005);
    CHECK(share_of(rng.bernoulli(0, {1000})) == 0);
    CHECK(share_of(rng.bernoulli(1, {1000})) == 1);
    CHECK(message_of([&] { rng.bernoulli(1.5, {2}); }) ==
          "bernoulli: probability 1.5 is outside 0 to 1");

    const Tensor x = ones({50000}, f64);
    const Tensor y = dropout(x, rng, {.p = 0.2});
    CHECK(std::abs(mean(y).item() - 1) < 0.01);
    for (const double value : y.values<double>()) CHECK((value == 0 || value == 1 / 0.8));
    const std::uint64_t before = rng.position();
    CHECK(dropout(x, rng, {.p = 0}).shares_buffer_with(x));
    CHECK(rng.position() == before);
    CHECK(sum(dropout(x, rng, {.p = 1})).item() == 0);
    CHECK(rng.position() == before + 50000);
    CounterRng a(4), b(4);
    CHECK(allclose(dropout(ones({64}), a).astype(f64), dropout(ones({64}, f64), b)));
    const double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(sum(dropout(full({8}, nan, f64), rng, {.p = 1})).item() == 0);
    CHECK(message_of([&] { dropout(x, rng, {.p = -0.1}); }) ==
          "dropout: probability -0.1 is outside 0 to 1");
    CHECK(message_of([&] { dropout(x, rng, {.p = nan}); }) ==
          "dropout: probability nan is outside 0 to 1");
    CHECK(message_of([&] { dropout(arange(3), rng); }) ==
          "dropout: needs a floating tensor, got i64; convert with astype(f32) or astype(f64)");
}
