// What the text looks like. The sample is kept as a file: set GLASSGRAD_WRITE_GOLDEN=1 to write it
// anew after a change of the format.

#include "sample.hpp"

#include <support/catch.hpp>

#include <glassgrad/tensor.hpp>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string file_content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

/// The value member of the one tensor of a trace.
std::string value_of(const Tensor& x) {
    const std::string json = to_json(trace_of(x));
    const auto begin = json.find("\"value\":") + 8;
    return json.substr(begin, json.find("}],\n", begin) - begin);
}

}  // namespace

TEST_CASE("The sample trace is written as the file says, one record a line") {
    for (const bool lines : {false, true}) {
        const std::string path =
            std::string(GLASSGRAD_TEST_DATA) + "/trace/sample.trace.json" + (lines ? "l" : "");
        const std::string json = lines ? to_json_lines(sample_trace()) : to_json(sample_trace());
        if (std::getenv("GLASSGRAD_WRITE_GOLDEN")) std::ofstream(path, std::ios::binary) << json;
        CHECK(json == file_content(path));
    }
}

TEST_CASE("What is written is JSON to another reader, byte sequences that are no UTF-8 included") {
    TraceDocument trace = sample_trace();
    trace.tensors[0].name = "caf\xE9";
    trace.header.run.id = "\xED\xA0\x80";
    const nlohmann::json json = nlohmann::json::parse(to_json(trace));
    CHECK(json["tensors"][0]["name"] == "caf\xEF\xBF\xBD");
    CHECK(json["labels"]["token"][2]["bytes"] == "c3");
    CHECK(json["labels"]["token"][2]["text"] == "\xEF\xBF\xBD");
    CHECK(json["tensors"][1]["value"]["data"][0][1] == "-Infinity");
    CHECK(json["tensors"][1]["value"]["data"][1][1] == "NaN");
    CHECK(json["tensors"][0]["value"]["data"][0][2].is_number_float());
    CHECK(std::signbit(json["tensors"][0]["value"]["data"][1][2].get<double>()));
}

TEST_CASE("Small tensors are lists, equal ones fills from 65 elements on, large ones base64") {
    CHECK(value_of(full({8, 8}, 0.5)).starts_with(R"({"enc":"list","data":[[0.5,0.5)"));
    CHECK(value_of(full({5, 13}, 0.5)) == R"({"enc":"fill","data":0.5})");
    CHECK(value_of(full({5, 13}, std::nan(""))) == R"({"enc":"fill","data":"NaN"})");
    CHECK(value_of(zeros({65}, boolean)) == R"({"enc":"fill","data":false})");
    CHECK(value_of(arange(1024)).starts_with(R"({"enc":"list","data":[0,1,)"));
    CHECK(value_of(arange(1025)).starts_with(R"({"enc":"b64le","data":"AAAAAAAAAAABAAAA)"));
    CHECK(value_of(zeros({2, 0, 3})) == R"({"enc":"list","data":[[],[]]})");
    CHECK(value_of(zeros({100000, 0})) == R"({"enc":"b64le","data":""})");
    CHECK(value_of(zeros({})) == R"({"enc":"list","data":0.0})");
}

TEST_CASE("Numbers are short, exact, and look like the type they have") {
    CHECK(value_of(tensor({0.1, 1, -0.0, 1e10, 1e-10, 16777216, 1.0 / 3})) ==
          R"({"enc":"list","data":[0.1,1.0,-0.0,1e+10,1e-10,16777216.0,0.33333334]})");
    CHECK(value_of(tensor({0.1, 1.0 / 3}, f64)) ==
          R"({"enc":"list","data":[0.1,0.3333333333333333]})");
    CHECK(value_of(tensor({1, -7}, i64)) == R"({"enc":"list","data":[1,-7]})");
    CHECK(value_of(equal(tensor({1, 2}), tensor({1, 3}))) ==
          R"({"enc":"list","data":[true,false]})");
}

TEST_CASE("Statistics count what is not finite and describe the rest") {
    const double infinity = std::numeric_limits<double>::infinity();
    const TraceStats stats = tensor_stats(tensor({1, -3, infinity, -infinity, 0, std::nan("")}));
    CHECK(stats.n == 6);
    CHECK(stats.nan == 1);
    CHECK(stats.pinf == 1);
    CHECK(stats.ninf == 1);
    CHECK(stats.zero == 1);
    CHECK(stats.min == -3);
    CHECK(stats.max == 1);
    CHECK(stats.mean == Approx(-2.0 / 3));
    CHECK(stats.std == Approx(std::sqrt(26.0 / 9)));
    CHECK(stats.l2 == Approx(std::sqrt(10.0)));
    CHECK(tensor_stats(tensor({std::nan("")})).finite() == 0);
    CHECK(tensor_stats(zeros({0, 3})).n == 0);
    CHECK_THROWS_WITH(tensor_stats(arange(3)), "tensor_stats: takes f32 or f64, not i64");
}

TEST_CASE("The digest is XXH64 of the bytes") {
    // Values of libxxhash 0.8.1.
    CHECK(tensor_digest(zeros({0})) == "xxh64:ef46db3751d8e999");
    std::vector<std::int64_t> words;
    for (std::int64_t i = 0; i < 12; ++i) words.push_back(i);
    CHECK(tensor_digest(from_span<std::int64_t>(words, {12})) == "xxh64:ef5752e7d57cb9a7");
    CHECK(tensor_digest(tensor({1.5, -2, 0.25})) == "xxh64:db4e3f4fe3c5541c");
    CHECK(tensor_digest(equal(tensor({1, 2, 3}), tensor({1, 0, 3}))) == "xxh64:5bc79bbda1853c97");
}

TEST_CASE("A trace whose records disagree is not written") {
    struct Case {
        std::string text;
        void (*spoil)(TraceDocument&);
    };
    const Case cases[] = {
        {"to_json: ops[0].in[0].t: t9 does not exist", [](auto& t) { t.ops[0].in[0].tensor = 9; }},
        {"to_json: ops[0].scope: s7 does not exist", [](auto& t) { t.ops[0].scope = 7; }},
        {"to_json: ops[1].of: a backward op names the forward op it belongs to",
         [](auto& t) { t.ops[1].of = no_record; }},
        {"to_json: ops[0].saved[0]: t-1 does not exist", [](auto& t) { t.ops[0].saved = {-1}; }},
        {"to_json: ops[0].attrs: 'fill' comes twice",
         [](auto& t) { t.ops[0].attrs.push_back(t.ops[0].attrs[0]); }},
        {"to_json: tensors[1].op: o4 does not exist", [](auto& t) { t.tensors[1].op = 4; }},
        {"to_json: tensors[0].grad: t3 does not exist", [](auto& t) { t.tensors[0].grad = 3; }},
        {"to_json: tensors[0].axes: 1 names for shape (2, 3)",
         [](auto& t) { t.tensors[0].axes = {"query"}; }},
        {"to_json: tensors[0].value: holds f32 (3, 2) where the record says f32 (2, 3)",
         [](auto& t) {
             t.tensors[0].value = TraceValue(zeros({3, 2}));
         }},
        {"to_json: tensors[0].value: holds i64 (2, 3) where the record says f32 (2, 3)",
         [](auto& t) {
             t.tensors[0].value = TraceValue(zeros({2, 3}, i64));
         }},
        {"to_json: tensors[0].value: has no elements",
         [](auto& t) { t.tensors[0].value = TraceValue(Tensor()); }},
        {"to_json: tensors[0].key: a name of 4097 bytes; the limit is 4096",
         [](auto& t) { t.tensors[0].key.assign(4097, 'k'); }},
        {"to_json: scopes[1].parent: s1 does not come before s1",
         [](auto& t) { t.scopes[1].parent = 1; }},
        {"to_json: diagnostics[0].tensor: t3 does not exist",
         [](auto& t) { t.diagnostics[0].tensor = 3; }},
        {"to_json: labels: 'token' comes twice",
         [](auto& t) {
             t.header.labels.push_back({"token", {}});
         }},
        {"to_json: dims: 'T' comes twice",
         [](auto& t) {
             t.header.dims.push_back({"T", 4});
         }},
    };
    for (const Case& each : cases) {
        TraceDocument trace = sample_trace();
        each.spoil(trace);
        CHECK_THROWS_WITH(to_json(trace), each.text);
    }
}

TEST_CASE("A name of 4096 bytes is within the limit, and is read again") {
    TraceDocument trace = sample_trace();
    trace.tensors[0].key.assign(4096, 'k');
    CHECK(parse_trace(to_json(trace)).tensors[0].key.size() == 4096);
}

TEST_CASE("Attributes nested beyond 64 levels are not written") {
    TraceDocument trace = sample_trace();
    TraceAttributeValue value = std::int64_t{1};
    for (int i = 0; i < 64; ++i) value = std::vector<TraceAttributeValue>{value};
    trace.ops[0].attrs = {{"deep", value}};
    CHECK_THROWS_WITH(to_json(trace), "to_json: nested deeper than 64 levels");
}
