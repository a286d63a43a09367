// safetensors: every file of the manifest with its verdict, round trips, limits, texts.

#include <glassgrad/tensor/safetensors.hpp>

#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/data.hpp"
#include "tensor/support/manifest.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <cstring>

using namespace glassgrad;
using namespace glassgrad::testing;
using glassgrad_tests::text_of;
using nlohmann::json;

namespace {

using Tensors = std::vector<std::pair<std::string, Tensor>>;
using Metadata = std::vector<std::pair<std::string, std::string>>;

const std::string supported =
    "supported are F32, F64, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8 and BOOL";

/// What is refused, and how; a file that is not here loads.
const std::map<std::string, std::string> refusals = {
    {"dtype_lower_case",
     "header: line 1, column 15: w.dtype: element type 'f32' is not known; types are upper case: "
     "F32"},
    {"dtype_missing", "header: line 1, column 6: w: 'dtype' is missing"},
    {"dtype_number", "header: line 1, column 15: w.dtype: a text is expected, not a number"},
    {"dtype_unknown",
     "header: line 1, column 15: w.dtype: element type 'F128' is not known; " + supported},
    {"duplicate_tensor", "header: line 1, column 58: member 'w' comes twice"},
    {"empty", "the file ends after 0 bytes, before the length of its header, 8 bytes"},
    {"f4_partial_byte",
     "header: line 1, column 15: w.dtype: element type F4 is not supported; " + supported},
    {"fp8",
     "header: line 1, column 15: w.dtype: element type F8_E4M3 is not supported; " + supported},
    {"git_lfs_pointer",
     "a Git LFS pointer, which stands for the file; fetch the file itself: git lfs pull"},
    {"header_array", "header: line 1, column 1: an object is expected, not an array"},
    {"header_comment", "header: line 1, column 2: a member name in double quotes is expected"},
    {"header_deep", "header: line 1, column 6: w: an object is expected, not an array"},
    {"header_half_json", "header: line 1, column 2: the text ends too early"},
    {"header_len_u64_max",
     "the header says it has 18446744073709551615 bytes, above the limit of 100000000"},
    {"header_len_zero", "the header is empty, not JSON"},
    {"header_not_utf8", "header: line 1, column 3: byte 0xff is not UTF-8"},
    {"header_nul_padded", "the header ends in NUL bytes; padding must be spaces"},
    {"header_over_cap", "the header says it has 100000001 bytes, above the limit of 100000000"},
    {"header_past_eof", "the header says it has 1000 bytes, 73 follow"},
    {"header_two_documents", "header: line 1, column 58: more text after the end"},
    {"hole", "bytes 16 to 20 of the data belong to no tensor"},
    {"hole_at_start", "bytes 0 to 4 of the data belong to no tensor"},
    {"metadata_list",
     "header: line 1, column 17: __metadata__: an object is expected, not an array"},
    {"metadata_number",
     "header: line 1, column 25: __metadata__.step: a text is expected, not a number"},
    {"missing_all_data", "tensor 'w': its data ends at 16, outside the data of 0 bytes"},
    {"missing_bytes", "tensor 'w': its data ends at 16, outside the data of 14 bytes"},
    {"offsets_float", "header: line 1, column 51: w.data_offsets[0]: 0.0 is no integer"},
    {"offsets_negative", "header: line 1, column 51: w.data_offsets[0]: -16 is negative"},
    {"offsets_past_end", "tensor 'w': its data ends at 32, outside the data of 16 bytes"},
    {"offsets_reversed", "tensor 'w': its data begins at 16 and ends before that, at 0"},
    {"offsets_three", "header: line 1, column 50: w.data_offsets: 3 offsets, not begin and end"},
    {"overlap", "tensors 'a' and 'b' share bytes of the data"},
    {"product_wraps_to_zero",
     "tensor 'w': shape (4294967296, 4294967296) is too large: its bytes exceed 2^62"},
    {"rank_9", "header: line 1, column 46: w.shape[8]: rank above the limit of 8"},
    {"same_region_twice", "tensors 'w0' and 'w1' share bytes of the data"},
    {"seven_bytes", "the file ends after 7 bytes, before the length of its header, 8 bytes"},
    {"shape_above_u64",
     "header: line 1, column 30: w.shape[0]: 18446744073709551616 does not fit 64 bits"},
    {"shape_bool",
     "header: line 1, column 30: w.shape[0]: a number is expected, not true or false"},
    {"shape_exponent", "header: line 1, column 30: w.shape[0]: 2e0 is no integer"},
    {"shape_negative", "header: line 1, column 30: w.shape[0]: -2 is negative"},
    {"shape_string", "header: line 1, column 30: w.shape[0]: a number is expected, not a text"},
    {"size_mismatch", "tensor 'w': F32 of shape (2, 3) needs 24 bytes, its offsets give 16"},
    {"tensor_is_null", "header: line 1, column 6: w: an object is expected, not null"},
    {"trailing_bytes", "the last 8 bytes of the data belong to no tensor"},
    {"unknown_field",
     "header: line 1, column 64: w.note: not known; a tensor has dtype, shape and data_offsets"},
};

SafetensorsFile parse(const std::string& bytes) {
    return parse_safetensors(std::as_bytes(std::span(bytes)), "x");
}

/// The bytes of a file with this header and so many bytes of data.
std::string file_with(const std::string& header, std::size_t data) {
    std::string bytes(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + std::string(data, '\0');
}

std::string refusal(const std::string& bytes) {
    return text_of<FileError>([&] { parse(bytes); });
}

}  // namespace

TEST_CASE("every .safetensors file of the manifest loads or is refused as it says") {
    const std::size_t refused = for_each_file("safetensors", [](const ManifestFile& file) {
        const auto refusal = refusals.find(file.name);
        if (file.is_decided) CHECK(file.valid == (refusal == refusals.end()));
        if (refusal != refusals.end()) {
            CHECK(text_of<FileError>([&] { load_safetensors(file.path); }) ==
                  "load_safetensors: " + file.path + ": " + refusal->second);
            return true;
        }
        const SafetensorsFile content = load_safetensors(file.path);
        if (!file.expect.is_null()) check_arrays(content.tensors, file.expect);
        const std::string bytes = to_safetensors(content.tensors, content.metadata);
        const SafetensorsFile again = parse(bytes);
        CHECK(to_safetensors(again.tensors, again.metadata) == bytes);
        CHECK(again.metadata == content.metadata);
        return false;
    });
    if (refused > 0) CHECK(refused == refusals.size());
}

TEST_CASE("what save_safetensors writes is pinned, wide elements first, names in their order") {
    const Tensors tensors = {{"flag", tensor({1, 0, 1}, boolean)},
                             {"é", tensor({{1.5, -0.0}}, f32)},
                             {"", tensor(NestedList(7), i64)}};
    const std::string header =
        R"({"__metadata__":{"format":"pt"},"flag":{"dtype":"BOOL","shape":[3],"data_offsets":)"
        R"([16,19]},"é":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},"":{"dtype":"I64",)"
        R"("shape":[],"data_offsets":[0,8]}})";
    std::string expected = file_with(header + std::string((8 - header.size() % 8) % 8, ' '), 0);
    expected += std::string("\7\0\0\0\0\0\0\0\0\0\xC0\x3F\0\0\0\x80\1\0\1", 19);
    const Metadata metadata = {{"format", "pt"}};
    CHECK(to_safetensors(tensors, metadata) == expected);

    const TemporaryFolder folder;
    const std::string path = folder / "a.safetensors";
    save_safetensors(path, tensors, metadata);
    CHECK(read_file(path) == expected);
    const SafetensorsFile back = load_safetensors(path);
    REQUIRE(back.tensors.size() == 3);
    CHECK(back.tensors[1].first == "é");
    CHECK(word(back.tensors[1].second.at({0, 1})) == word(-0.0));
    CHECK(back.tensors[2].second.item<std::int64_t>() == 7);
    CHECK(back.metadata == metadata);

    const SafetensorsReader reader(path);
    CHECK(reader.names() == std::vector<std::string>{"flag", "é", ""});
    CHECK(reader.info("é").dtype == "F32");
    CHECK(reader.info("é").shape == Shape{1, 2});
    CHECK(reader.info("flag").bytes == 3);
    CHECK(reader.load("flag").at({2}) == 1);
    CHECK(reader.contains(""));
    CHECK(text_of<FileError>([&] { reader.load("w"); }) ==
          "SafetensorsReader: " + path + ": there is no tensor 'w'");
}

TEST_CASE("the narrow types of safetensors are widened exactly") {
    const auto one = [](const std::string& type, const std::string& data) {
        const std::size_t item = type.ends_with("8")    ? 1
                                 : type.ends_with("16") ? 2
                                 : type.ends_with("32") ? 4
                                                        : 8;
        const std::string header = R"({"w":{"dtype":")" + type + R"(","shape":[)" +
                                   std::to_string(data.size() / item) + R"(],"data_offsets":[0,)" +
                                   std::to_string(data.size()) + "]}}";
        return parse(file_with(header, 0) + data).tensors.at(0).second;
    };
    const auto integers = [](const Tensor& x) {
        const auto values = x.values<std::int64_t>();
        return std::vector<std::int64_t>(values.begin(), values.end());
    };
    CHECK(integers(one("I8", "\x80\x7F")) == std::vector<std::int64_t>{-128, 127});
    CHECK(integers(one("U8", "\x80\xFF")) == std::vector<std::int64_t>{128, 255});
    CHECK(integers(one("I16", std::string("\0\x80", 2))) == std::vector<std::int64_t>{-32768});
    CHECK(integers(one("U16", "\xFF\xFF")) == std::vector<std::int64_t>{65535});
    CHECK(integers(one("I32", "\xFE\xFF\xFF\xFF")) == std::vector<std::int64_t>{-2});
    CHECK(integers(one("U32", "\xFE\xFF\xFF\xFF")) == std::vector<std::int64_t>{4294967294});
    CHECK(text_of<FileError>([&] { one("U64", std::string(8, '\xFF')); }) ==
          "parse_safetensors: x: tensor 'w': element 0, 18446744073709551615, does not fit i64");
    // Every bfloat16 and its f32 have the same upper half; F16 is checked with .npy.
    const Tensor wide = one("BF16", "\x81\x7F");
    CHECK(wide.dtype() == f32);
    CHECK(std::bit_cast<std::uint32_t>(wide.data<float>()[0]) == 0x7F810000u);
}

TEST_CASE("a BOOL byte other than 0 and 1 is refused") {
    const std::string header = R"({"w":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})";
    CHECK(refusal(file_with(header, 0) + "\1\2") ==
          "parse_safetensors: x: tensor 'w': element 1 is 2, not 0 or 1");
}

TEST_CASE("the limits of safetensors hold on both sides") {
    const auto named = [](const std::string& name) {
        return R"({")" + name + R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
    };
    CHECK(parse(file_with(named(std::string(4096, 'n')), 0)).tensors.size() == 1);
    CHECK(refusal(file_with(named(std::string(4097, 'n')), 0)) ==
          "parse_safetensors: x: header: line 1, column 2: a member name of 4097 bytes, above the "
          "limit of 4096");

    const auto shaped = [](const std::string& shape) {
        return R"({"w":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,0]}})";
    };
    CHECK(parse(file_with(shaped("[1,1,1,1,1,1,1,0]"), 0)).tensors.size() == 1);
    CHECK(refusal(file_with(shaped("[1,1,1,1,1,1,1,0,1]"), 0)) ==
          "parse_safetensors: x: header: line 1, column 46: w.shape[8]: rank above the limit of 8");

    const auto many = [](std::size_t count) {
        std::string header = "{";
        for (std::size_t i = 0; i < count; ++i) {
            header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
                      R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
        }
        return file_with(header + "}", 0);
    };
    CHECK(parse(many(65'536)).tensors.size() == 65'536);
    CHECK(refusal(many(65'537)).ends_with("more than 65536 tensors"));
}

TEST_CASE("save_safetensors refuses what would not come back") {
    const Tensor x = tensor({1, 2});
    const auto refused = [](const Tensors& tensors, const Metadata& metadata = {}) {
        return text_of<ValueError>([&] { to_safetensors(tensors, metadata); });
    };
    CHECK(refused({{"a", x}, {"a", x}}) == "save_safetensors: two tensors are named 'a'");
    CHECK(refused({{"__metadata__", x}}) ==
          "save_safetensors: no tensor can be named '__metadata__'");
    CHECK(refused({{"\xFF", x}}) == "save_safetensors: the name '\\xff' is not UTF-8");
    CHECK(refused({{"a", Tensor()}}) == "save_safetensors: tensor 'a' is undefined");
    CHECK(refused({{std::string(4097, 'n'), x}}) ==
          "save_safetensors: a name of 4097 bytes is above the limit of 4096");
    CHECK(refused({}, {{"a", "1"}, {"a", "2"}}) == "save_safetensors: two metadata are named 'a'");
    CHECK(refused({}, {{"a", "\x80"}}) == "save_safetensors: metadata 'a' is not UTF-8");
}
