// RandomState against NumPy's, over the cases of tests/data/tensor/make_random_cases.py.

#include <glassgrad/tensor/random.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <fmt/format.h>

#include <random>

using namespace glassgrad;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

RandomState start(const json& seed) {
    if (seed.is_number()) return RandomState(seed.get<std::int64_t>());
    return RandomState(std::span<const std::int64_t>(seed.get<std::vector<std::int64_t>>()));
}

Tensor rows(std::int64_t n) { return add(reshape(arange(0, double(n) * 3, 1, f64), {n, 3}), 0.25); }

Tensor weights(std::int64_t n) {
    const double total = double(n * (n + 1) / 2);
    Tensor p = Tensor::empty({n}, f64);
    for (std::int64_t i = 0; i < n; ++i) p.set({i}, double(i + 1) / total);
    return p;
}

Tensor draw(RandomState& random, const std::string& name, const json& a) {
    if (name == "rand") return random.rand(shape_of(a["shape"]));
    if (name == "randn") return random.randn(shape_of(a["shape"]));
    if (name == "uniform") return random.uniform(a["a"], a["b"], shape_of(a["shape"]));
    if (name == "normal") return random.normal(a["a"], a["b"], shape_of(a["shape"]));
    if (name == "randint") return random.randint(a["a"], a["b"], shape_of(a["shape"]));
    const std::int64_t n = a["n"];
    if (name == "permutation") return random.permutation(n);
    if (name == "permutation_rows") return random.permutation(rows(n));
    if (name == "shuffle") {
        Tensor x = rows(n);
        random.shuffle(x);
        return x;
    }
    return random.choice(n, shape_of(a["shape"]),
                         {.replace = a["replace"], .p = a["weighted"] ? weights(n) : Tensor()});
}

std::vector<std::uint64_t> words(const Tensor& x) {
    std::vector<std::uint64_t> result;
    if (x.dtype() == f64) {
        for (const double value : x.values<double>()) result.push_back(word(value));
    } else {
        for (const std::int64_t value : x.values<std::int64_t>()) result.push_back(word(value));
    }
    return result;
}

void check_step(RandomState& random, const json& step) {
    const Tensor x = draw(random, step[0], step[1]);
    const std::vector<std::uint64_t> got = words(x);
    INFO(step[0] << " " << step[1]);
    REQUIRE(got.size() == step[2].get<std::size_t>());
    for (std::size_t i = 0; i < step[4].size(); ++i) {
        CHECK(fmt::format("{:016x}", got[i]) == step[4][i].get<std::string>());
    }
    Hash hash;
    for (const std::uint64_t each : got) hash.add(each);
    CHECK(fmt::format("{:016x}", hash.value()) == step[3].get<std::string>());
}

}  // namespace

TEST_CASE("RandomState draws the bits that NumPy draws, whatever the order of the calls") {
    const json file = load_json("random_cases.json");
    REQUIRE(file["cases"].size() == 125);
    for (const json& item : file["cases"]) {
        INFO("seed " << item["seed"].dump().substr(0, 40) << ", plan " << item["plan"]);
        RandomState random = start(item["seed"]);
        for (const json& step : item["steps"]) check_step(random, step);
        const RandomState::State& state = random.state();
        Hash key;
        for (const std::uint32_t each : state.key) key.add(each);
        const json& expected = item["state"];
        CHECK(fmt::format("{:016x}", key.value()) == expected[0].get<std::string>());
        CHECK(state.pos == expected[1].get<int>());
        CHECK(int(state.has_gauss) == expected[2].get<int>());
        CHECK(fmt::format("{:016x}", word(state.cached_gaussian)) ==
              expected[3].get<std::string>());
    }
}

TEST_CASE("the words behind RandomState are those of std::mt19937") {
    for (const std::uint32_t seed : {0u, 7u, 5489u, 4294967295u}) {
        std::mt19937 reference(seed);
        RandomState random(std::int64_t{seed});
        for (int i = 0; i < 2000; ++i) {
            REQUIRE(random.next_interval(0xffffffffu) == reference());
        }
    }
}

TEST_CASE("the first numbers of np.random.seed(7) are the published ones") {
    RandomState random(7);
    CHECK(random.next_double() == 0.07630828937395717);
    CHECK(random.next_double() == 0.7799187922401146);
    CHECK(RandomState(7).randn({1}).item() == 1.690525703800356);
}

TEST_CASE("f32 draws are the f64 draws, rounded") {
    RandomState wide(11);
    RandomState narrow(11);
    const Tensor a = wide.normal(1, 3, {5, 7});
    const Tensor b = narrow.normal(1, 3, {5, 7}, {.dtype = f32});
    CHECK(b.dtype() == f32);
    CHECK(b.shape() == Shape{5, 7});
    for (std::int64_t i = 0; i < 35; ++i) CHECK(b.data<float>()[i] == float(a.data<double>()[i]));
    CHECK(wide.state() == narrow.state());
    CHECK(random_state_from_text(to_text(wide.state())) == narrow.state());
}

TEST_CASE("a saved state goes on where it was taken, a waiting normal included") {
    RandomState random(42);
    (void)random.randn({3});
    const RandomState::State saved = random.state();
    REQUIRE(saved.has_gauss);
    const Tensor expected = random.randn({8});

    RandomState copy(saved);
    CHECK(allclose(copy.randn({8}), expected, {.rtol = 0, .atol = 0}));

    RandomState other(1);
    other.set_state(random_state_from_text(to_text(saved)));
    CHECK(allclose(other.randn({8}), expected, {.rtol = 0, .atol = 0}));

    RandomState twin = other;
    CHECK(twin.next_double() == other.next_double());
}

TEST_CASE("permutation and shuffle move whole rows of every type and leave others' copies alone") {
    for (const DType dtype : {f32, f64, i64, boolean}) {
        RandomState random(3);
        const Tensor x = reshape(arange(12), {4, 3}).astype(dtype);
        Tensor y = x;
        random.shuffle(y);
        RandomState again(3);
        const Tensor z = again.permutation(x);
        CHECK(allclose(y.astype(f64), z.astype(f64)));
        CHECK(x.astype(i64).at<std::int64_t>({0, 1}) == 1);
        CHECK(allclose(sum(y.astype(f64)), sum(x.astype(f64))));
    }
    RandomState random(3);
    CHECK(random.permutation(zeros({0, 3})).shape() == Shape{0, 3});
    CHECK(random.permutation(zeros({3, 0})).shape() == Shape{3, 0});
}

TEST_CASE("every wrong call of RandomState says what is wrong") {
    RandomState random(0);
    const auto check = [](const auto& call, const std::string& text) {
        CHECK(message_of(call) == text);
    };
    check([] { RandomState(-1); }, "RandomState: seed -1 is not between 0 and 4294967295");
    check([] { RandomState(std::int64_t{1} << 32); },
          "RandomState: seed 4294967296 is not between 0 and 4294967295");
    check([] { RandomState(std::span<const std::int64_t>()); },
          "RandomState: the list of seeds is empty");
    check([&] { random.randint(5, 5, {2}); }, "randint: low 5 is not below high 5");
    check([&] { random.randint(0, 5, {2, -1}); }, "randint: size -1 in shape (2, -1) is negative");
    check(
        [&] {
            random.randn({1 << 30, 1 << 30, 1 << 30});
        },
        "randn: shape (1073741824, 1073741824, 1073741824) of f64 is too large: its bytes exceed "
        "2^62");
    check([&] { random.normal(0, -1, {2}); },
          "normal: scale -1 is not a number at or above 0; scale is the standard deviation");
    check([&] { random.normal(0, std::nan(""), {2}); },
          "normal: scale nan is not a number at or above 0; scale is the standard deviation");
    check([&] { random.uniform(-1e308, 1e308, {2}); },
          "uniform: the range from -1e+308 to 1e+308 is not finite");
    check([&] { random.rand({2}, {.dtype = i64}); },
          "rand: draws f64 or f32, not i64; use randint for integers");
    check([&] { random.permutation(-3); }, "permutation: -3 items cannot be put in order");
    check([&] { random.permutation(ones({})); },
          "permutation: shape () has no rows; permutation(n) gives the numbers below n in random "
          "order");
    check(
        [&] {
            Tensor x = ones({});
            random.shuffle(x);
        },
        "shuffle: shape () has no rows");
    check(
        [&] {
            Tensor x;
            random.shuffle(x);
        },
        "tensor: undefined (default-constructed or moved from)");
    check([&] { random.choice(0, {1}); }, "choice: cannot choose 1 of 0 items");
    check(
        [&] {
            random.choice(3, {2, 2}, {.replace = false});
        },
        "choice: cannot choose 4 of 3 items without replacement; draw with {.replace = true}");
    check([&] { random.choice(3, {1}, {.p = ones({3}, i64)}); },
          "choice: probabilities must be f32 or f64, got i64");
    check([&] { random.choice(3, {1}, {.p = ones({4}, f64)}); },
          "choice: probabilities have shape (4,), needed is (3,)");
    check(
        [&] {
            random.choice(2, {1}, {.p = tensor({1.5, -0.5}, f64)});
        },
        "choice: probability -0.5 at index 1 is not a number at or above 0");
    check(
        [&] {
            random.choice(2, {1}, {.p = tensor({0.5, 0.25}, f64)});
        },
        "choice: probabilities sum to 0.75, not to 1; divide them by their sum");
    check(
        [&] {
            random.choice(3, {2}, {.replace = false, .p = tensor({1, 0, 0}, f64)});
        },
        "choice: cannot choose 2 items without replacement: only 1 have a probability above 0");
    RandomState::State bad;
    bad.pos = 625;
    check([&] { random.set_state(bad); },
          "RandomState: position 625 of the state is not between 0 and 624");
    const std::string good = to_text(random.state());
    const std::string fix = "; give a line of to_text(state)";
    check([&] { random_state_from_text(""); },
          "random_state_from_text: the text does not start with MT19937" + fix);
    check([&] { random_state_from_text("MT19937 x"); },
          "random_state_from_text: the position is not a number" + fix);
    check([&] { random_state_from_text("MT19937 1 2"); },
          "random_state_from_text: the flag of a waiting normal is not 0 or 1" + fix);
    check([&] { random_state_from_text("MT19937 1 1 zz"); },
          "random_state_from_text: the waiting normal is not hexadecimal" + fix);
    check([&] { random_state_from_text(good + "0"); },
          "random_state_from_text: the key has 4993 characters, not 4992" + fix);
    check([&] { random_state_from_text(good.substr(0, good.size() - 1) + "g"); },
          "random_state_from_text: the key is not hexadecimal" + fix);
}
