// What a profile measures: the ops that run when nobody looks, their times within those of the
// whole, and events that nest.

#include <support/catch.hpp>

#include <glassgrad/autograd.hpp>
#include <glassgrad/layers.hpp>
#include <glassgrad/trace.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

using namespace glassgrad;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Model {
    Model()
        : gpt({.vocab_size = 11,
               .context_length = 9,
               .d_model = 8,
               .num_layers = 2,
               .num_heads = 2},
              rng) {}

    Variable loss() { return cross_entropy(gpt(ids), Variable(ids)); }

    RandomState rng{3};
    Gpt gpt;
    Tensor ids = reshape(arange(9), {1, 9});
};

const ProfileRow& row(const std::vector<ProfileRow>& rows, const std::string& name) {
    for (const ProfileRow& each : rows) {
        if (each.name == name) return each;
    }
    FAIL("no row " << name);
    return rows.front();
}

std::int64_t sum(const std::vector<ProfileRow>& rows) {
    std::int64_t total = 0;
    for (const ProfileRow& each : rows) total += each.nanoseconds();
    return total;
}

/// Every event lies in the innermost one that has not ended; those of a thread come in order.
void check_nesting(const nlohmann::json& events) {
    const auto nanoseconds = [](const nlohmann::json& x) {
        return std::llround(x.get<double>() * 1e3);
    };
    std::vector<long long> ends;
    long long last = 0;
    for (const auto& event : events) {
        const long long begin = nanoseconds(event["ts"]);
        const long long end = begin + nanoseconds(event["dur"]);
        CHECK(begin >= last);
        last = begin;
        while (!ends.empty() && ends.back() <= begin) ends.pop_back();
        if (!ends.empty()) CHECK(end <= ends.back());
        ends.push_back(end);
    }
}

}  // namespace

TEST_CASE("a profile counts every op, and its times are within the time that passed") {
    Model model;
    Profile profile;
    const std::int64_t begin = detail::clock_now();
    {
        const Observing watch(profile);
        backward(model.loss());
    }
    const std::int64_t passed = detail::clock_now() - begin;
    const std::vector<ProfileRow> ops = profile.by_op();
    CHECK(row(ops, "layer_norm").forward.calls == 5);
    CHECK(row(ops, "layer_norm").backward.calls == 5);
    CHECK(row(ops, "cross_entropy").forward.calls == 1);
    CHECK(row(ops, "cross_entropy").backward.bytes == (1 + 9 * 11) * 4);
    for (const ProfileRow& each : ops) {
        CHECK(each.forward.nanoseconds >= 0);
        CHECK(each.backward.nanoseconds >= 0);
    }
    CHECK(sum(ops) > 0);
    CHECK(sum(ops) <= passed);
    CHECK(detail::watcher_count == 0);

    const std::vector<ProfileRow> layers = profile.by_layer();
    CHECK(layers.front().name.empty());
    CHECK(layers.front().nanoseconds() == sum(ops));
    const ProfileRow& block = row(layers, "blocks.1");
    CHECK(block.nanoseconds() >= row(layers, "blocks.1.self_attn").nanoseconds() +
                                     row(layers, "blocks.1.norm1").nanoseconds());
    CHECK_THAT(profile.text(),
               ContainsSubstring("layer_norm") && ContainsSubstring("blocks.1.self_attn"));

    profile.clear();
    CHECK(profile.by_op().empty());
    CHECK(nlohmann::json::parse(profile.chrome_trace())["traceEvents"].empty());
}

TEST_CASE("what a profile sees is what runs when nobody looks, unless somebody wants steps") {
    RandomState rng(5);
    const Variable q = parameter(rng.randn({1, 1, 128, 4}));
    Profile profile;
    const auto run = [&] {
        const Observing watch(profile);
        backward(sum(scaled_dot_product_attention(q, q, q)));
        const Tensor gradient = q.grad();
        Variable(q).zero_grad();
        return gradient;
    };
    const Tensor gradient = run();
    CHECK(row(profile.by_op(), "tiled_attention").backward.calls == 1);
    CHECK(detail::observer_count == 0);

    backward(sum(scaled_dot_product_attention(q, q, q)));
    CHECK(allclose(q.grad(), gradient, {.rtol = 0, .atol = 0}));
    Variable(q).zero_grad();

    profile.clear();
    const Recorder recorder;
    run();
    CHECK(row(profile.by_op(), "softmax").forward.calls == 1);
    CHECK(row(profile.by_op(), "softmax").backward.calls == 1);
}

TEST_CASE("a checkpoint's second run counts as forward, and shows in the events") {
    Model model;
    Profile profile;
    {
        const Observing watch(profile);
        const Variable x = parameter(ones({3}));
        backward(sum(checkpoint([](std::span<const Variable> v) { return exp(v[0]); }, {x})));
    }
    CHECK(row(profile.by_op(), "exp").forward.calls == 2);
    CHECK(row(profile.by_op(), "exp").backward.calls == 1);
    CHECK_THAT(profile.chrome_trace(), ContainsSubstring("\"forward again\""));
}

TEST_CASE("events nest, their times add up, and names are escaped") {
    Model model;
    Profile profile;
    {
        const Observing watch(profile);
        const Scope scope("a \"name\"\n\\");
        backward(model.loss());
        backward(model.loss());
    }
    const auto parsed = nlohmann::json::parse(profile.chrome_trace());
    const auto& events = parsed["traceEvents"];
    check_nesting(events);
    double microseconds = 0;
    int passes = 0, named = 0;
    for (const auto& event : events) {
        CHECK(event["ph"] == "X");
        CHECK(event["ts"].get<double>() >= 0);
        CHECK(event["dur"].get<double>() >= 0);
        if (event["cat"] == "pass") ++passes;
        if (event["cat"] == "layer" && event["name"] == "a \"name\"\n\\") ++named;
        if (event.contains("args")) microseconds += event["dur"].get<double>();
    }
    CHECK(passes == 4);
    CHECK(named == 4);
    CHECK(microseconds == Approx(static_cast<double>(sum(profile.by_op())) / 1e3));
}

TEST_CASE("threads share a profile, and a layer is one row whoever ran it") {
    Profile profile;
    const auto work = [&] {
        const Observing watch(profile);
        const Scope scope("layer");
        exp(Variable(ones({3})));
    };
    std::thread other(work);
    other.join();
    work();
    CHECK(profile.by_layer().size() == 2);
    CHECK(row(profile.by_layer(), "layer").forward.calls == 2);
    const auto parsed = nlohmann::json::parse(profile.chrome_trace());
    CHECK(parsed["traceEvents"].front()["tid"] == 0);
    CHECK(parsed["traceEvents"].back()["tid"] == 1);
}

TEST_CASE("a profile keeps as many runs as it may, and sums on") {
    Profile profile({.max_runs = 2});
    const Variable x = parameter(ones({3}));
    {
        const Observing watch(profile);
        backward(sum(exp(x)));
    }
    const auto parsed = nlohmann::json::parse(profile.chrome_trace());
    CHECK(parsed["otherData"]["runs_not_kept"] == 2);
    CHECK(row(profile.by_op(), "exp").backward.calls == 1);
}

TEST_CASE("a profile is written whole or not at all") {
    const Profile profile;
    CHECK_THROWS_WITH(profile.write_chrome_trace("/nowhere/p.json"),
                      ContainsSubstring("write_chrome_trace: /nowhere/p.json"));
    const std::string path = "profile_test.json";
    profile.write_chrome_trace(path);
    std::ifstream file(path);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    CHECK(text == profile.chrome_trace());
    std::remove(path.c_str());
}

TEST_CASE("a profile of new tokens measures attention to keys where they lie") {
    Model model;
    const NoGrad no_grad;
    DecoderCache cache;
    model.gpt(slice(model.ids, 1, {.stop = 4}), {.cache = &cache});
    const Tensor next = slice(model.ids, 1, {.start = 4, .stop = 5});
    DecoderCache same = cache;
    const Tensor expected = model.gpt(next, {.cache = &same}).value();
    Profile profile;
    {
        const Observing watch(profile);
        const Tensor logits = model.gpt(next, {.cache = &cache}).value();
        CHECK(allclose(logits, expected, {.rtol = 0, .atol = 0}));
    }
    CHECK(row(profile.by_op(), "cached_attention").forward.calls == 2);
    for (const ProfileRow& each : profile.by_op()) CHECK(each.name != "attention_scores");
}
