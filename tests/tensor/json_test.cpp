// The strict JSON that files of all kinds are read with; its refusals in depth are in
// tests/trace/refusal_test.cpp.

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/error.hpp>

#include "support/catch.hpp"
#include "support/throws.hpp"

using glassgrad::FileError;
using glassgrad::detail::JsonCursor;
using glassgrad::detail::read_json;
using glassgrad_tests::text_of;

namespace {

template <class Read>
std::string refusal(std::string_view text, Read read) {
    return text_of<FileError>([&] { read_json(text, "read: ", read); });
}

}  // namespace

TEST_CASE("a JSON integer is exact or refused") {
    const auto integer = [](JsonCursor& in) { in.integer(); };
    const auto whole = [](JsonCursor& in) { in.unsigned_integer(); };
    std::int64_t low = 0;
    std::uint64_t high = 0;
    read_json("-9223372036854775808", "", [&](JsonCursor& in) { low = in.integer(); });
    read_json(" 18446744073709551615\n", "", [&](JsonCursor& in) { high = in.unsigned_integer(); });
    CHECK(low == INT64_MIN);
    CHECK(high == UINT64_MAX);
    CHECK(refusal("9223372036854775808", integer) ==
          "read: line 1, column 1: 9223372036854775808 does not fit an i64");
    CHECK(refusal("18446744073709551616", whole) ==
          "read: line 1, column 1: 18446744073709551616 does not fit 64 bits");
    CHECK(refusal("-1", whole) == "read: line 1, column 1: -1 is negative");
    CHECK(refusal("2.0", integer) == "read: line 1, column 1: 2.0 is no integer");
    CHECK(refusal("2e0", whole) == "read: line 1, column 1: 2e0 is no integer");
    CHECK(refusal("true", whole) ==
          "read: line 1, column 1: a number is expected, not true or false");
}

TEST_CASE("a JSON number that no double holds is refused") {
    const auto real = [](JsonCursor& in) { in.real(); };
    double value = 0;
    read_json("1e-5", "", [&](JsonCursor& in) { value = in.real(); });
    CHECK(value == 1e-5);
    CHECK(refusal("1e999", real) == "read: line 1, column 1: 1e999 is out of range for f64");
    CHECK(refusal("1e-999", real) ==
          "read: line 1, column 1: 1e-999 is too small for f64: it would become zero");
}

TEST_CASE("a refusal of JSON has no control characters in it") {
    const auto read = [](JsonCursor& in) { in.object([&](std::string_view) { in.integer(); }); };
    CHECK(refusal("{\"a\"\x16 1}", read) ==
          "read: line 1, column 5: expected : after a member name, not byte 0x16");
    CHECK(refusal("{\"\\u001b[31m\": 0.5}", read) ==
          "read: line 1, column 16: \\x1b[31m: 0.5 is no integer");
}

TEST_CASE("a refusal of JSON tells line, column and path") {
    const auto read = [](JsonCursor& in) {
        in.object([&](std::string_view) { in.array([&](std::size_t) { in.integer(); }); });
    };
    CHECK(refusal("{\"é\": [1,\n 2, null]}", read) ==
          "read: line 2, column 5: é[2]: a number is expected, not null");
    CHECK(refusal("{\"a\": [], \"a\": []}", read) ==
          "read: line 1, column 11: member 'a' comes twice");
    CHECK(refusal("{} {}", read) == "read: line 1, column 4: more text after the end");
    CHECK(refusal("", read) == "read: line 1, column 1: the file is empty");
    CHECK(refusal("\xEF\xBB\xBF{}", read) ==
          "read: line 1, column 1: a byte order mark before the JSON");
    CHECK(refusal("{\"\xFF\": 1}", read) == "read: line 1, column 3: byte 0xff is not UTF-8");
}
