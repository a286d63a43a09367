// The .npy files of the folder beside the checkout, each with its verdict in a manifest.

#include <glassgrad/tensor/npy.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <map>

using namespace glassgrad;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

const std::string root = std::string(GLASSGRAD_SHARED) + "/reliability/";

/// What is refused, and how; a file that is not here loads.
const std::map<std::string, std::string> refusals = {
    {"empty", "the file is empty, not an array"},
    {"magic_wrong", "not a .npy file: it starts with '\\x94NUMPY'; np.save writes such files"},
    {"magic_only", "the file ends after 6 bytes, before its version"},
    {"version_9", "version 9.0 is not known; known are 1.0, 2.0 and 3.0"},
    {"version_1_7", "version 1.7 is not known; known are 1.0, 2.0 and 3.0"},
    {"header_len_past_eof", "the header says it has 65535 bytes, 166 follow"},
    {"header_list", "the header is not a dictionary: '[1, 2, 3]'"},
    {"header_unbalanced", "the header ends before its dictionary does"},
    {"header_missing_shape", "key 'shape' is missing in the header"},
    {"header_extra_key", "key 'colour' is not known"},
    {"header_expression",
     "'+' follows a size in shape; a header is data: nothing in it is evaluated"},
    {"header_call",
     "descr is not a text in quotes: 'str('<f4'), 'fortran_order': False, 'sha...'; a header is "
     "data: nothing in it is evaluated"},
    {"header_nul", "the header has a NUL byte at offset 53"},
    {"header_deep_parens", "no size in shape at '((((((((((((((((((((((((((((((((((((((((...'"},
    {"shape_many_digits",
     "size '9999999999999999999999999999999999999999...' does not fit 64 bits"},
    {"shape_not_tuple", "shape is not a tuple: '12, }'"},
    {"shape_float", "size '3.0' is not an integer"},
    {"shape_negative", "size -3 is negative"},
    {"shape_product_wraps", "shape (4294967296, 4294967296) is too large: its bytes exceed 2^62"},
    {"shape_zero_times_huge", "shape (0, 9223372036854775807) is too large: its bytes exceed 2^62"},
    {"shape_int64_max", "shape (9223372036854775807,) is too large: its bytes exceed 2^62"},
    {"shape_claims_1tb",
     "shape (274877906944,) of '<f4' needs 1099511627776 bytes of data, 48 found"},
    {"rank_33",
     "rank 33 is above the limit of 8; save it with fewer axes: np.save(path, x.reshape(...))"},
    {"rank_9",
     "rank 9 is above the limit of 8; save it with fewer axes: np.save(path, x.reshape(...))"},
    {"data_short", "shape (3, 4) of '<f4' needs 48 bytes of data, 47 found"},
    {"data_none", "shape (3, 4) of '<f4' needs 48 bytes of data, 0 found"},
    {"data_trailing", "12 bytes too many: shape (3, 4) of '<f4' needs 48 bytes of data, 60 found"},
    {"fortran_string", "fortran_order is ''False'', not True or False"},
    {"fortran_truncated_word", "fortran_order is 'Tru', not True or False"},
    {"descr_object",
     "element type '|O' is Python objects, a pickle, which is never read; save numbers: "
     "np.save(path, x.astype(np.float64), allow_pickle=False)"},
    {"descr_structured",
     "structured element types are not supported: '[('a', '<f4'), ('b', '<i4')], 'fortran_o...'; "
     "save each field on its own: np.save(path, x['field'])"},
    {"descr_unicode", "element type '<U2' is text, not supported"},
    {"descr_complex", "element type '<c8' is complex, not supported; save x.real and x.imag"},
    {"descr_datetime", "element type '<M8[us]' is dates, not supported; save x.astype(np.int64)"},
    {"descr_f3", "element type '<f3' is not supported: a float of 3 bytes"},
    {"descr_empty", "the element type is empty"},
    {"uint64_big", "element 1 of the data, 18446744073709551615, does not fit i64"},
};

void check_values(const Tensor& x, const json& expect) {
    CHECK(x.shape() == shape_of(expect["shape"]));
    const std::string type = expect["dtype"];
    const std::map<std::string, DType> types = {
        {"float32", f32}, {"float64", f64}, {"int64", i64}, {"bool", boolean}};
    CHECK(x.dtype() == types.at(type));
    if (expect.contains("data_hex")) {
        CHECK(to_hex(element_bytes(x)) == expect["data_hex"].get<std::string>());
        return;
    }
    const json& values = expect["values"];
    REQUIRE(x.numel() == std::int64_t(values.size()));
    const Tensor wide = x.astype(f64);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double got = wide.data<double>()[i];
        const double expected = number_of(values[i]);
        if (std::isnan(expected)) {
            CHECK(std::isnan(got));
        } else {
            CHECK(word(got) == word(expected));
        }
    }
}

}  // namespace

TEST_CASE("every .npy file of the manifest loads or is refused as it says") {
    std::ifstream file(root + "manifest.json");
    if (!file) SKIP("no " + root + "manifest.json");
    const json manifest = json::parse(file);
    std::size_t refused = 0;
    for (const json& item : manifest["files"]) {
        if (item["format"] != "npy") continue;
        const std::string path = root + "files/" + item["file"].get<std::string>();
        const std::string name = std::filesystem::path(path).stem().string();
        INFO(name);
        const auto refusal = refusals.find(name);
        if (item["valid"].is_boolean()) CHECK(item["valid"] == (refusal == refusals.end()));
        if (refusal != refusals.end()) {
            CHECK(message_of([&] { load_npy(path); }) ==
                  "load_npy: " + path + ": " + refusal->second);
            ++refused;
        } else {
            check_values(load_npy(path), item["expect"]);
        }
    }
    CHECK(refused == refusals.size());
}
