// What a reader takes, beyond what the writer makes.

#include "sample.hpp"

#include <support/catch.hpp>

#include <glassgrad/tensor.hpp>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

/// A document around the JSON of one tensor's members after the id.
std::string around(const std::string& members) {
    return R"({"format":"glassgrad-trace","version":"1.0","producer":{"name":"h","version":"0"},)"
           R"("run":{"id":"r","mode":"eval","step":0,"seed":0,"default_dtype":"f32"},)"
           R"("capture":{"values":"full","max_elements":9,"stats":false,"timing":false},)"
           R"("scopes":[],"tensors":[{"id":"t0",)" +
           members + R"(}],"ops":[],"diagnostics":[],"end":{"complete":true,"ops":0,"tensors":1}})";
}

std::string x_with(const std::string& dtype, const std::string& shape, const std::string& value) {
    return around(R"("name":"x","key":"x","role":"input","dtype":")" + dtype + R"(","shape":)" +
                  shape + R"(,"op":null,"value":)" + value);
}

}  // namespace

TEST_CASE("Members come in any order, and those not known are passed over") {
    const TraceDocument trace = parse_trace(
        around(R"("value":{"data":[[1,2.5],[-3e1,"NaN"]],"later":[{}],"enc":"list"},"op":null,)"
               R"("x-mine":{"a":[1,{"b":null}]},"shape":[2,2],"dtype":"f64","role":"buffer",)"
               R"("key":"k","name":"n")"));
    CHECK(trace.tensors[0].role == TraceRole::buffer);
    CHECK(first_tensor(trace).at({1, 0}) == -30);
    CHECK(std::isnan(first_tensor(trace).at({1, 1})));
}

TEST_CASE("A later minor version is read, and written as the version of the library") {
    std::string json = to_json(sample_trace());
    json.replace(json.find("\"1.0\""), 5, "\"1.42\"");
    const TraceDocument trace = parse_trace(json);
    CHECK(trace.header.version == "1.42");
    CHECK(to_json(trace) == to_json(sample_trace()));
}

TEST_CASE("Floats take integers as numbers, and the nearest value of too many digits") {
    const Tensor x = first_tensor(parse_trace(
        x_with("f32", "[5]", R"({"enc":"list","data":[1,-0,0.10000000149011612,1E2,0e999]})")));
    CHECK(x.at<float>({0}) == 1);
    CHECK(std::signbit(x.at<float>({1})));
    CHECK(x.at<float>({2}) == 0.1F);
    CHECK(x.at<float>({3}) == 100);
    CHECK(x.at<float>({4}) == 0);
}

TEST_CASE("Integers beyond 2^53 are exact as numbers and as texts") {
    const Tensor x = first_tensor(parse_trace(
        x_with("i64", "[3]", R"({"enc":"list","data":[9007199254740993,"9007199254740995",-5]})")));
    CHECK(x.at<std::int64_t>({0}) == 9007199254740993);
    CHECK(x.at<std::int64_t>({1}) == 9007199254740995);
    CHECK(x.at<std::int64_t>({2}) == -5);
}

TEST_CASE("A fill larger than memory stays one element") {
    const TraceDocument trace =
        parse_trace(x_with("f32", "[100000,100000]", R"({"enc":"fill","data":0.5})"));
    CHECK(trace.tensors[0].value.kind == TraceValue::Kind::fill);
    CHECK(trace.tensors[0].value.data.item() == 0.5);
    CHECK(trace.tensors[0].shape == Shape{100000, 100000});
    CHECK(to_json(trace).find(R"("value":{"enc":"fill","data":0.5})") != std::string::npos);
}

TEST_CASE("A fill is spread out on request") {
    const Tensor x =
        first_tensor(parse_trace(x_with("f64", "[2,3]", R"({"enc":"fill","data":"-Infinity"})")));
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.at({1, 2}) == -std::numeric_limits<double>::infinity());
}

TEST_CASE("References to files, samples and absent values are kept") {
    const auto value = [](const std::string& json) {
        const TraceDocument trace = parse_trace(x_with("f32", "[4,5]", json));
        CHECK(to_json(trace).find("\"value\":" + json) != std::string::npos);
        return trace.tensors[0];
    };
    CHECK(value(R"({"enc":"ref","uri":"run.safetensors","key":"x","sha256":"00ff"})").value.uri ==
          "run.safetensors");
    const TraceTensor sample =
        value(R"({"enc":"sample","why":"large","index":[0,19],"data":[1.0,-2.0]})");
    CHECK(sample.value.data.at({1}) == -2);
    CHECK_THROWS_WITH(elements(sample), "elements: the trace does not hold all of x (large)");
    CHECK_THROWS_WITH(elements(value(R"({"enc":"none"})")),
                      "elements: the trace does not hold all of x");
}

TEST_CASE("Attributes keep their kind: integer, real, flag, text and lists") {
    const TraceDocument trace = parse_trace(to_json(sample_trace()));
    const auto& attrs = trace.ops[0].attrs;
    using Kind = TraceAttributeValue::Kind;
    CHECK(attrs[0].value.kind == Kind::real);
    CHECK(attrs[0].value.real == -std::numeric_limits<double>::infinity());
    CHECK(attrs[1].value.kind == Kind::flag);
    CHECK(attrs[2].value.kind == Kind::integer);
    CHECK(attrs[3].value.integer == 9007199254740993);
    CHECK(attrs[4].value.kind == Kind::real);
    CHECK(attrs[5].value.text == "tri");
    CHECK(attrs[6].value.items[1].integer == 3);
}

TEST_CASE("Escapes, surrogate pairs and bytes of labels are decoded") {
    std::string json = to_json(sample_trace());
    json.replace(json.find("\"the\""), 5, R"("\u0041\ud83d\ude00\/\b\f\u00e9")");
    const std::vector<std::string> items = parse_trace(json).header.labels[0].items;
    CHECK(items[0] == "A\xF0\x9F\x98\x80/\b\f\xC3\xA9");
    CHECK(items[1] == "c\"at");
    CHECK(items[2] == "\xC3");
}

TEST_CASE("Lines that stop short are read up to there, wherever they are cut") {
    const std::string lines = to_json_lines(sample_trace());
    const std::size_t header = lines.find('\n');
    std::size_t cut_lines = 0;
    for (std::size_t size = header + 1; size < lines.size(); ++size) {
        CAPTURE(size);
        const TraceDocument trace = parse_trace(lines.substr(0, size));
        if (lines.substr(0, size).find("\"rec\":\"end\",\"complete\":false,\"ops\":2,\"tensors\":3,"
                                       "\"reason\":\"stopped by hand\"}") != std::string::npos) {
            continue;  // only the last line break is missing
        }
        CHECK_FALSE(trace.end.complete);
        if (trace.end.reason.starts_with("truncated in line ")) {
            ++cut_lines;
        } else {
            CHECK(trace.end.reason == "no end record");
        }
        const std::string json = to_json(trace);
        CHECK(to_json(parse_trace(json)) == json);
    }
    CHECK(cut_lines > 1000);
}
