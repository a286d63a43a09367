// What a reader refuses, and in which words.

#include "sample.hpp"

#include <support/catch.hpp>

#include <glassgrad/tensor.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace glassgrad;
using namespace glassgrad::testing;
using Catch::Matchers::Message;

namespace {

/// The text of the refusal of `json`.
std::string refusal(const std::string& json) {
    try {
        parse_trace(json);
    } catch (const FileError& error) {
        return error.what();
    }
    return "not refused";
}

struct Case {
    std::string from;  ///< replaced in the sample, where it comes first,
    std::string to;    ///< by this
    std::string text;  ///< of the refusal, after the position
};

const std::string base = to_json(sample_trace());

std::string with(const Case& each) {
    std::string json = base;
    const auto found = json.find(each.from);
    REQUIRE(found != std::string::npos);
    json.replace(found, each.from.size(), each.to);
    return json;
}

void check_all(const std::vector<Case>& cases) {
    for (const Case& each : cases) {
        const std::string text = refusal(with(each));
        CAPTURE(each.from, each.to);
        CHECK(text.starts_with("parse_trace: line "));
        const auto column = text.find("column ");
        const auto begin = text.find(": ", column);
        CHECK((begin == std::string::npos ? text : text.substr(begin + 2)) == each.text);
    }
}

}  // namespace

TEST_CASE("Positions count lines and characters from one") {
    CHECK(refusal("") == "parse_trace: line 1, column 1: the file is empty");
    CHECK(refusal("{\n \"a\": \"\xC3\xA9\", x") ==
          "parse_trace: line 2, column 12: a member name in double quotes is expected");
    CHECK(refusal("[1, 2]") ==
          "parse_trace: line 1, column 1: an object is expected, not an array");
    CHECK(refusal("{}") == "parse_trace: line 1, column 1: 'format' is missing");
    CHECK(refusal("{\"format\": 3}") ==
          "parse_trace: line 1, column 12: format: a text is expected, not a number");
    CHECK(refusal("\xEF\xBB\xBF{}") ==
          "parse_trace: line 1, column 1: a byte order mark before the JSON");
}

TEST_CASE("Text that is no JSON is refused") {
    check_all({
        {"\"dims\":{", "\"dims\":{,", "dims: a member name in double quotes is expected"},
        {"\"T\":2,\"H\":3}", "\"T\":2,\"H\":3,}", "dims: a comma before }"},
        {"\"T\":2,", "\"T\":2 ", "dims: expected , or } after a member"},
        {"\"T\":2", "\"T\" 2", "dims: expected : after a member name, not 2"},
        {"[2,3]", "[2,3,]", "tensors[0].shape[1]: a comma before ]"},
        {"[2,3]", "[2 3]", "tensors[0].shape[0]: expected , or ] after an item"},
        {"\"T\":2", "\"T\":02", "dims.T: a number with a leading zero"},
        {"\"T\":2", "\"T\":+2", "dims.T: unexpected +"},
        {"\"T\":2", "\"T\":2.", "dims.T: a digit is expected after the point"},
        {"\"T\":2", "\"T\":2e", "dims.T: a digit is expected in the exponent"},
        {"\"T\":2", "\"T\":yes", "dims.T: unexpected y"},
        {"\"T\":2", "\"T\":tru", "dims.T: true or false; expected an integer"},
        {"\"T\":2", "\"T\":\x01", "dims.T: unexpected byte 0x01"},
        {"\"mask\"", "\"ma\nsk\"", "run.id: a control character inside quotes must be escaped"},
        {"\"mask\"", "\"ma\\qsk\"", "run.id: an escape that JSON does not have"},
        {"\"mask\"", "\"\\u12G4\"", "run.id: four hexadecimal digits are expected after \\u"},
        {"\"mask\"", "\"\\ud800\"", "run.id: half a surrogate pair"},
        {"\"mask\"", "\"\\udc00\"", "run.id: half a surrogate pair"},
        {"\"mask\"", "\"\\ud800\\u0041\"", "run.id: half a surrogate pair"},
        {"\"mask\"", "\"ma\xFFsk\"", "byte 0xff is not UTF-8"},
        {"\"mask\"", "\"\xC0\x80\"", "byte 0xc0 is not UTF-8"},
        {"\"mask\"", "\"\xED\xA0\x80\"", "byte 0xed is not UTF-8"},
    });
    CHECK(refusal(base + "{}").ends_with(": more text after the end"));
    CHECK(refusal(base.substr(0, base.size() - 3)).ends_with("expected , or } after a member") ==
          false);
}

TEST_CASE("A member that comes twice is refused, also where nobody reads it") {
    check_all({
        {"\"T\":2", "\"T\":2,\"T\":2", "dims: member 'T' comes twice"},
        {"\"dtype\":\"f32\"", "\"dtype\":\"f64\",\"dtype\":\"f32\"",
         "tensors[0]: member 'dtype' comes twice"},
        {"\"dims\":", "\"x-new\":{\"a\":[{\"b\":1,\"b\":2}]},\"dims\":",
         "x-new.a[0]: member 'b' comes twice"},
        {"\"dims\":", "\"x\":{\"\\u0061\":1,\"a\":2},\"dims\":", "x: member 'a' comes twice"},
    });
    std::string many = "\"x\":{";
    for (int i = 0; i < 1000; ++i) many += "\"m" + std::to_string(i) + "\":0,";
    check_all({{"\"dims\":", many + "\"m500\":0},\"dims\":", "x: member 'm500' comes twice"}});
}

TEST_CASE("Nesting of 64 levels is read, 65 are refused, also where nobody reads them") {
    const auto nested = [](int levels) {
        return "\"x\":" + std::string(static_cast<std::size_t>(levels), '[') +
               std::string(static_cast<std::size_t>(levels), ']') + ",\"dims\":";
    };
    CHECK_NOTHROW(parse_trace(with({"\"dims\":", nested(63), ""})));
    const std::string text = refusal(with({"\"dims\":", nested(64), ""}));
    CHECK(text.ends_with("[0][0]: nested deeper than 64 levels"));
    CHECK(refusal(with({"\"dims\":", nested(200000), ""})) == text);
}

TEST_CASE("Numbers that are none, and those out of range, are refused") {
    const std::string finite = "; non-finite ones are the texts NaN, Infinity and -Infinity";
    const std::string at = "tensors[0].value.data[0][0]: ";
    check_all({
        {"[[0.1,", "[[NaN,",
         at + "NaN is no JSON; write the text \"NaN\", \"Infinity\" or \"-Infinity\""},
        {"[[0.1,", "[[-Infinity,",
         at + "-Infinity is no JSON; write the text \"NaN\", \"Infinity\" or \"-Infinity\""},
        {"[[0.1,", "[[nan,",
         at + "nan is no JSON; write the text \"NaN\", \"Infinity\" or \"-Infinity\""},
        {"[[0.1,", "[[null,", at + "null, which is no number; expected a number" + finite},
        {"[[0.1,", "[[true,", at + "true or false; expected a number" + finite},
        {"[[0.1,", "[[{},", at + "an object; expected a number" + finite},
        {"[[0.1,", "[[\"inf\",", at + "'inf' is no number" + finite},
        {"[[0.1,", "[[\"0.1\",", at + "'0.1' is no number" + finite},
        {"[[0.1,", "[[1e999,", at + "1e999 is out of range for f32"},
        {"[[0.1,", "[[-3.5e38,", at + "-3.5e38 is out of range for f32"},
        {"[[0.1,", "[[1e-60,", at + "1e-60 is too small for f32: it would become zero"},
        {"\"min\":-2.5", "\"min\":1e400", "tensors[0].stats.min: 1e400 is out of range for f64"},
        {"\"T\":2", "\"T\":2.0", "dims.T: '2.0' is no integer"},
        {"\"T\":2", "\"T\":-2", "dims.T: -2 is negative"},
        {"\"T\":2", "\"T\":9223372036854775808", "dims.T: 9223372036854775808 does not fit an i64"},
        {"\"seed\":\"18446744073709551615\"", "\"seed\":\"18446744073709551616\"",
         "run.seed: 18446744073709551616 is no seed (0 to 2^64 - 1)"},
        {"\"seed\":\"18446744073709551615\"", "\"seed\":-1",
         "run.seed: -1 is no seed (0 to 2^64 - 1)"},
        {"\"scale\":2.0", "\"scale\":1e999", "ops[0].attrs.scale: 1e999 is out of range"},
        {"\"scale\":2.0", "\"scale\":null", "ops[0].attrs.scale: null is no value of an attribute"},
        {"\"scale\":2.0", "\"scale\":{}",
         "ops[0].attrs.scale: an object is no value of an attribute"},
    });
}

TEST_CASE("Values that do not fit their shape are refused") {
    const std::string list = "{\"enc\":\"list\",\"data\":[[0.1,-2.5,3.0],[1e-08,0.25,-0.0]]}";
    const std::string at = "tensors[0].value.data";
    check_all({
        {"[1e-08,0.25,-0.0]", "[1e-08]", at + "[1]: 1 item where shape (2, 3) says 3"},
        {"[1e-08,0.25,-0.0]", "[]", at + "[1]: 0 items where shape (2, 3) says 3"},
        {"[1e-08,0.25,-0.0]", "[1,2,3,4]",
         at + "[1][3]: more than the 3 items that shape (2, 3) says"},
        {list, "{\"enc\":\"list\",\"data\":[0.1,-2.5,3.0,1.0,2.0,3.0]}",
         at + "[0]: a number where a list is expected: rank 1 for shape (2, 3)"},
        {list, "{\"enc\":\"list\",\"data\":0.5}",
         at + ": a number where a list is expected: rank 0 for shape (2, 3)"},
        {"[[0.1,", "[[[0.1],", at + "[0][0]: the list is deeper than the shape (2, 3)"},
        {list, "{\"enc\":\"b64le\",\"data\":\"AADAPwAAAMAAAIA+\"}",
         at + ": 12 bytes for a (2, 3) f32, which has 24"},
        {list, "{\"enc\":\"b64le\",\"data\":\"AADAPwAAAMAAAIA+AAAAQ*==\"}",
         at + ": character * in base64"},
        {list, "{\"enc\":\"b64le\",\"data\":\"AADAPwA\"}",
         at + ": base64 of 7 characters, not a multiple of 4"},
        {list, "{\"enc\":\"b64le\",\"data\":\"AB==\"}",
         at + ": base64 ends in bits that belong to no byte"},
        {list, "{\"enc\":\"b64le\",\"data\":\"A===\"}", at + ": character = in base64"},
        {list, "{\"enc\":\"b64le\",\"data\":[1]}", at + ": a text is expected, not an array"},
        {list, "{\"enc\":\"fill\",\"data\":[1]}", at + ": the list is deeper than the shape ()"},
        {list, "{\"enc\":\"sample\",\"index\":[0,6],\"data\":[1.0,2.0]}",
         "tensors[0].value: index 6 is outside shape (2, 3)"},
        {list, "{\"enc\":\"sample\",\"index\":[0,5],\"data\":[1.0]}",
         at + ": 1 item where shape (2,) says 2"},
        {list, "{\"enc\":\"list\"}", "tensors[0].value: 'data' is missing"},
        {list, "{\"enc\":\"ref\",\"uri\":\"a\"}", "tensors[0].value: 'uri' or 'key' is missing"},
        {list, "{\"data\":1}", "tensors[0].value: 'enc' is missing"},
        {list, "{\"enc\":\"zip\",\"data\":1}",
         "tensors[0].value: enc 'zip' is not known (list, b64le, fill, ref, sample, none)"},
        {list, "{\"enc\":\"fill\",\"nan_bits\":\"7f800000\",\"data\":\"NaN\"}",
         "tensors[0].value: nan_bits '7f800000' are no NaN"},
        {list, "{\"enc\":\"fill\",\"nan_bits\":\"7FC00000\",\"data\":\"NaN\"}",
         "tensors[0].value: nan_bits '7FC00000' are not the bits of a f32"},
        {"\"dtype\":\"f32\",\"shape\"", "\"dtype\":\"bool\",\"shape\"",
         at + "[0][0]: a number; expected true or false, the elements of a bool"},
        {"\"dtype\":\"f32\",\"shape\"", "\"dtype\":\"i64\",\"shape\"",
         at + "[0][0]: '0.1' is no integer"},
        {"\"dtype\":\"f32\",\"shape\"", "\"dtype\":\"f16\",\"shape\"",
         "tensors[0].dtype: 'f16' is not known (f32, f64, i64, bool)"},
        {"[2,3]", "[2,3,1,1,1,1,1,1,1]", "tensors[0].shape: rank 9; the limit is 8"},
        {"[2,3]", "[2,-3]", "tensors[0].shape[1]: -3 is negative"},
        {"[2,3]", "[4294967296,4294967296]",
         "tensors[0].shape: shape (4294967296, 4294967296) has too many elements"},
        {"[2,3]", "[1000000,1000000]",
         at + ": shape (1000000, 1000000) has 1000000000000 elements, more than the text could "
              "hold"},
    });
    CHECK(refusal(to_json(trace_of(equal(zeros({2000}), ones({2000}))))) == "not refused");
    std::string bools = to_json(trace_of(equal(arange(2000), scale(arange(2000), 1))));  // a fill
    CHECK(bools.find("\"fill\",\"data\":true") != std::string::npos);
}

TEST_CASE("A byte of a bool is 0 or 1") {
    Tensor x = zeros({1100}, boolean);
    x.set({7}, 1);
    std::string json = to_json(trace_of(x));
    const auto data = json.find("\"data\":\"") + 8;
    REQUIRE(json.substr(data, 12) == "AAAAAAAAAAEA");
    json.replace(data + 8, 4, "AAIA");
    CHECK(refusal(json).ends_with("tensors[0].value.data: element 7 of a bool is neither 0 nor 1"));
}

TEST_CASE("Records that do not fit together are refused") {
    check_all({
        {"\"in\":[{\"p\":\"x\",\"t\":\"t0\"}]", "\"in\":[{\"p\":\"x\",\"t\":\"t99\"}]",
         "ops[0].in[0].t: t99 does not exist"},
        {"\"saved\":[\"t0\"]", "\"saved\":[\"t5\"]", "ops[0].saved[0]: t5 does not exist"},
        {"\"of\":\"o0\",", "", "ops[1].of: a backward op names the forward op it belongs to"},
        {"\"of\":\"o0\",", "\"of\":\"o9\",", "ops[1].of: o9 does not exist"},
        {"\"id\":\"t1\"", "\"id\":\"t0\"", "tensors[1].id: t0 comes twice"},
        {"\"id\":\"t1\"", "\"id\":\"t3\"", "tensors[1].id: t3 where t1 is next: ids count from 0"},
        {"\"id\":\"t1\"", "\"id\":\"t01\"", "tensors[1].id: 't01' is no id (t and a number)"},
        {"\"id\":\"t1\"", "\"id\":\"o1\"", "tensors[1].id: 'o1' is no id (t and a number)"},
        {"\"id\":\"t1\"", "\"id\":1", "tensors[1].id: a text is expected, not a number"},
        {"\"grad\":\"t2\"", "\"grad\":\"t3\"", "tensors[0].grad: t3 does not exist"},
        {"\"op\":\"o0\"", "\"op\":\"o2\"", "tensors[1].op: o2 does not exist"},
        {"\"parent\":\"s0\"", "\"parent\":\"s1\"", "scopes[1].parent: s1 does not come before s1"},
        {"\"ops\":2,\"tensors\":3", "\"ops\":2,\"tensors\":4", "end.tensors: 4, but there are 3"},
        {"\"ops\":2,\"tensors\":3", "\"ops\":1,\"tensors\":3", "end.ops: 1, but there are 2"},
        {"\"axes\":[\"query\",\"key\"]", "\"axes\":[\"query\"]",
         "tensors[0].axes: 1 names for shape (2, 3)"},
    });
}

TEST_CASE("A record without what it needs, or with a word of its own, is refused") {
    check_all({
        {"\"role\":\"param\",", "", "tensors[0]: 'role' is missing"},
        {"\"role\":\"param\"", "\"role\":\"weight\"",
         "tensors[0].role: 'weight' is not known (input, param, const, activation, loss, grad, "
         "buffer)"},
        {"\"pass\":\"fwd\"", "\"pass\":\"forward\"",
         "ops[0].pass: 'forward' is not known (fwd, bwd, opt)"},
        {"\"severity\":\"warning\"", "\"severity\":\"bad\"",
         "diagnostics[0].severity: 'bad' is not known (info, warning, error)"},
        {"\"complete\":false,", "", "end: 'complete' is missing"},
        {"\"format\":\"glassgrad-trace\"", "\"format\":\"other\"",
         "format: 'other' is not glassgrad-trace"},
        {"\"version\":\"1.0\"", "\"version\":\"2.0\"",
         "version: format version 2.0 is not known; this library reads 1.0 and later 1.x"},
        {"\"version\":\"1.0\"", "\"version\":\"1\"", "version: '1' is no version such as 1.0"},
        {"\"bytes\":\"c3\"", "\"bytes\":\"c\"",
         "labels.token[2].bytes: pairs of digits 0-9a-f are expected"},
        {"\"the\",", "3,", "labels.token[0]: an object is expected, not a number"},
        {"\"v\":1", "\"v\":\"one\"", "opdefs.mask.v: 'one' is no integer"},
    });
    std::string name = "\"" + std::string(4097, 'n') + "\"";
    check_all({{"\"name\":\"scores\"", "\"name\":" + name,
                "tensors[0].name: a name of 4097 bytes; the limit is 4096"}});
}

TEST_CASE("Of the line form, a line that is wrong before its end is refused") {
    const std::string lines = to_json_lines(sample_trace());
    const auto replaced = [&](const std::string& from, const std::string& to) {
        std::string text = lines;
        text.replace(text.find(from), from.size(), to);
        return refusal(text);
    };
    CHECK(replaced("\"rec\":\"scope\",", "\"rec\":\"scope\"") ==
          "parse_trace: line 2, column 15: expected , or } after a member");
    CHECK(replaced("\"role\":\"param\"", "\"role\":\"p\"")
              .starts_with("parse_trace: line 4, column 76: role: 'p' is not known"));
    CHECK(replaced("\"rec\":\"scope\",\"id\":\"s0\"", "\"id\":\"s0\"") ==
          "parse_trace: line 2, column 1: 'rec' is missing");
    CHECK(replaced("\"rec\":\"scope\"", "\"rec\":\"header\"") ==
          "parse_trace: line 2, column 1: a second header");
    CHECK(refusal(lines.substr(lines.find('\n') + 1)) ==
          "parse_trace: line 1, column 1: the first record is no header");
    CHECK(
        refusal(lines + "{\"rec\":\"op\"}\n").ends_with("column 1: a record after the end record"));
    CHECK(refusal(lines + "{\"rec\":\"op\"}x").ends_with("a record after the end record"));
}

TEST_CASE("Cut anywhere, a document is refused") {
    for (std::size_t size = 0; size + 2 < base.size(); ++size) {
        CAPTURE(size);
        REQUIRE(refusal(base.substr(0, size)).starts_with("parse_trace: line "));
    }
}

TEST_CASE("Any byte changed, a trace is refused or read, and what is read can be written") {
    std::string json = base;
    for (std::size_t i = 0; i < base.size(); ++i) {
        for (const char byte : {'\0', '"', '9', '}', '\xFF'}) {
            json[i] = byte;
            try {
                const std::string again = to_json(parse_trace(json));
                REQUIRE(to_json(parse_trace(again)) == again);
            } catch (const FileError&) {
            }
        }
        json[i] = base[i];
    }
}

TEST_CASE("The shared malformed and odd traces get the verdicts of their list") {
    const std::string folder = std::string(GLASSGRAD_SHARED) + "/reliability";
    std::ifstream list(folder + "/manifest.json");
    if (!list) SKIP("no shared files beside the checkout");
    const nlohmann::json manifest = nlohmann::json::parse(list);
    std::size_t count = 0;
    for (const auto& entry : manifest["files"]) {
        if (entry["format"] != "trace") continue;
        const std::string file = entry["file"];
        CAPTURE(file);
        ++count;
        bool is_read = true;
        try {
            read_trace(folder + "/files/" + file);
        } catch (const FileError&) {
            is_read = false;
        }
        if (entry["valid"].is_boolean()) CHECK(is_read == entry["valid"].get<bool>());
    }
    CHECK(count >= 20);
    const TraceDocument cut = read_trace(folder + "/files/trace/truncated.trace.jsonl");
    CHECK(cut.tensors.size() == 1);
    CHECK(cut.end.reason == "truncated in line 3");
}
