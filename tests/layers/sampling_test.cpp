// From logits to tokens: the traps of samplers, and the distribution drawn from.

#include "support/catch.hpp"
#include "support/throws.hpp"

#include <glassgrad/layers/sampling.hpp>
#include <glassgrad/tensor.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace glassgrad;
using glassgrad_tests::text_of;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor logits_of(const std::vector<double>& probabilities, DType dtype = f64) {
    std::vector<double> logs;
    for (const double p : probabilities) logs.push_back(std::log(p));
    return from_values(logs, {static_cast<std::int64_t>(logs.size())}, dtype);
}

/// The ids that may be drawn.
std::vector<int> kept(const Tensor& logits, const SamplingOptions& options) {
    const Tensor p = sampling_probabilities(logits, options);
    std::vector<int> ids;
    double total = 0;
    for (int i = 0; i < p.numel(); ++i) {
        total += p.at({i});
        if (p.at({i}) > 0) ids.push_back(i);
    }
    CHECK(std::abs(total - 1) < 1e-12);
    return ids;
}

std::string failure(const Tensor& logits, const SamplingOptions& options,
                    const std::vector<std::int64_t>& previous = {}) {
    CounterRng rng(1);
    return text_of<Error>([&] { sample_token(logits, options, rng, previous); });
}

}  // namespace

TEST_CASE("temperature 0 and small temperatures take the largest logit") {
    CounterRng rng(3);
    for (const DType dtype : {f32, f64}) {
        const Tensor logits = tensor({1, 3, 2}, dtype);
        const Tensor far = tensor({1e4, 1, -1e4}, dtype);
        for (int i = 0; i < 20; ++i) {
            CHECK(sample_token(logits, {.temperature = 0}, rng) == 1);
            CHECK(sample_token(far, {.temperature = 1e-4}, rng) == 0);
            CHECK(sample_token(far, {.temperature = 1e-38}, rng) == 0);
            CHECK(sample_token(logits, {.temperature = 5e-324}, rng) == 1);
        }
    }
    CHECK(sample_token(tensor({-infinity, -2, 7, 7}), {.temperature = 0}, rng) == 2);
}

TEST_CASE("the greedy choice draws no number, any other one") {
    CounterRng rng(3);
    sample_token(tensor({1, 3, 2}), {.temperature = 0}, rng);
    CHECK(rng.position() == 0);
    sample_token(tensor({1, 3, 2}), {.top_k = 1}, rng);
    CHECK(rng.position() == 1);
}

TEST_CASE("top-p keeps the smallest set that reaches p, and at least one token") {
    for (const DType dtype : {f32, f64}) {
        const Tensor logits = logits_of({.5, .3, .2}, dtype);
        CHECK(kept(logits, {.top_p = 0}) == std::vector{0});
        CHECK(kept(logits, {.top_p = .5}) == std::vector{0});
        CHECK(kept(logits, {.top_p = .6}) == std::vector{0, 1});
        CHECK(kept(logits, {.top_p = .8}) == std::vector{0, 1});
        CHECK(kept(logits, {.top_p = .81}) == std::vector{0, 1, 2});
        CHECK(kept(logits, {.top_p = 1}) == std::vector{0, 1, 2});
    }
    // By probability, not by id; what is left is renormalised.
    const Tensor p = sampling_probabilities(logits_of({.2, .3, .5}), {.top_p = .6});
    CHECK(p.at({0}) == 0);
    CHECK(p.at({1}) == Approx(.375).epsilon(1e-13));
    CHECK(p.at({2}) == Approx(.625).epsilon(1e-13));
}

TEST_CASE("top-k keeps k tokens, or all when there are fewer, before top-p looks") {
    const Tensor logits = logits_of({.1, .4, .2, .3});
    CHECK(kept(logits, {.top_k = 2}) == std::vector{1, 3});
    CHECK(kept(logits, {.top_k = 200}) == std::vector{0, 1, 2, 3});
    CHECK(kept(logits, {.top_k = 1, .top_p = .8}) == std::vector{1});
    // .4 and .3 of .9 are above .75; of 1 they would not be.
    CHECK(kept(logits, {.top_k = 3, .top_p = .75}) == std::vector{1, 3});
    CHECK(kept(tensor({2, 5, 5, 5}), {.top_k = 2}) == std::vector{1, 2});
    CHECK(kept(tensor({2, -infinity, 1}), {.top_k = 3}) == std::vector{0, 2});
}

TEST_CASE("a large vocabulary gives ids that are in it") {
    CounterRng rng(11);
    const Tensor logits = RandomState(4).randn({32000}, {.dtype = f32});
    for (const double p : {.9999999, 1 - 1e-15, 1.0}) {
        for (int i = 0; i < 3; ++i) {
            const std::int64_t id = sample_token(logits, {.top_p = p}, rng);
            CHECK((id >= 0 && id < 32000));
        }
    }
}

TEST_CASE("the repetition penalty makes what was there less likely, once, whatever its sign") {
    const Tensor logits = tensor({2.0, -1.0, 0.5, 0.0}, f64);
    const std::vector<std::int64_t> previous = {1, 0, 0, 1};
    const Tensor got = sampling_probabilities(logits, {.repetition_penalty = 2}, previous);
    const Tensor wanted = sampling_probabilities(tensor({1.0, -2.0, 0.5, 0.0}, f64));
    for (int i = 0; i < 4; ++i) CHECK(got.at({i}) == wanted.at({i}));
    CounterRng rng(1);
    CHECK(sample_token(logits, {.temperature = 0, .repetition_penalty = 5}, rng, previous) == 2);
}

TEST_CASE("tokens are drawn as often as their probabilities say") {
    const SamplingOptions options{.temperature = .7, .top_k = 5, .top_p = .95};
    const Tensor logits = tensor({.3, 1.2, -.4, .9, .1, 2.0, -2.5}, f64);
    const Tensor p = sampling_probabilities(logits, options);
    const auto expected = [&](int i) { return std::exp(logits.at({i}) / .7); };
    CHECK(p.at({1}) / p.at({5}) == Approx(expected(1) / expected(5)).epsilon(1e-13));
    CounterRng rng(7);
    constexpr int draws = 20000;
    std::vector<double> count(7);
    for (int i = 0; i < draws; ++i) {
        count[static_cast<std::size_t>(sample_token(logits, options, rng))] += 1;
    }
    double chi_square = 0;
    int possible = 0;
    for (int i = 0; i < 7; ++i) {
        const double wanted = draws * p.at({i}), found = count[static_cast<std::size_t>(i)];
        if (wanted == 0) {
            CHECK(found == 0);
            continue;
        }
        possible += 1;
        chi_square += (found - wanted) * (found - wanted) / wanted;
    }
    CHECK(possible == 4);
    CHECK(chi_square < 16.27);  // three degrees of freedom, 0.1 %
}

TEST_CASE("samplers refuse what cannot be meant") {
    const Tensor logits = tensor({1, 3, 2});
    CHECK(
        failure(logits, {.temperature = -1}) ==
        "sample_token: temperature -1 is not a finite number from 0 on; 0 takes the most probable "
        "token");
    CHECK_THAT(failure(logits, {.temperature = not_a_number}),
               Catch::Matchers::StartsWith("sample_token: temperature nan is not"));
    CHECK(failure(logits, {.top_k = 0}) ==
          "sample_token: top_k 0 is below 1; leave top_k out to keep all tokens");
    CHECK(failure(logits, {.top_p = 1.5}) == "sample_token: top_p 1.5 is outside 0 to 1");
    CHECK(failure(logits, {.repetition_penalty = 0}) ==
          "sample_token: repetition_penalty 0 is not a finite number above 0");
    CHECK(failure(tensor({1, not_a_number, 2}), {.temperature = 0}) ==
          "sample_token: logits[1] is nan");
    CHECK(failure(tensor({1, 2, infinity}), {}) == "sample_token: logits[2] is inf");
    CHECK(failure(tensor({-infinity, -infinity}), {}) ==
          "sample_token: all 2 logits are -inf; something hides every token");
    CHECK(failure(logits, {}, {1, 3}) ==
          "sample_token: the previous token 3 is outside the vocabulary of 3");
    CHECK(failure(ones({2, 3}), {}) ==
          "sample_token: logits (2, 3) are not (vocabulary,); take one row of a batch with select");
    CHECK(failure(arange(3), {}) == "sample_token: logits are i64, not f32 or f64");
}
