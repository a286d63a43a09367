// Malformed .npy files, built in memory: each is refused with the text in the table.

#include <glassgrad/tensor/npy.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"
#include "tensor/support/npy_bytes.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

struct Malformed {
    std::string bytes;
    std::string text;
};

const std::string evaluated = "; a header is data: nothing in it is evaluated";

/// A header that is wrong, in a file that has data enough.
Malformed header(const std::string& text, const std::string& problem) {
    return {npy(text, std::string(48, 'x')), problem};
}
Malformed descr(const std::string& type, const std::string& problem) {
    return header(npy_header("(2,)", "'" + type + "'"), problem);
}
Malformed shape(const std::string& sizes, const std::string& problem) {
    return header(npy_header(sizes), problem);
}

std::vector<Malformed> malformed_files() {
    const std::string good = npy_header("(3, 4)");
    return {
        {"", "the file is empty, not an array"},
        {"\x93NUM", "the file ends after 4 bytes, before its version"},
        {"\x93NUMPY", "the file ends after 6 bytes, before its version"},
        {"\x93NUMPY\x01", "the file ends after 7 bytes, before its version"},
        {std::string("\x93NUMPY\x01\0\x10", 9),
         "the file ends after 9 bytes, inside the length of its header"},
        {std::string("\x93NUMPY\x02\0\x10\0", 10),
         "the file ends after 10 bytes, inside the length of its header"},
        {"\x94NUMPY\x01",
         "not a .npy file: it starts with '\\x94NUMPY'; np.save writes such files"},
        {"1, 2, 3\n", "not a .npy file: it starts with '1, 2, '; np.save writes such files"},
        {"PK\x03\x04 and more",
         "not a .npy file: it starts with 'PK\\x03\\x04 a'; it is a zip archive, perhaps a .npz of "
         "several arrays"},
        {npy(good, "", 9), "version 9.0 is not known; known are 1.0, 2.0 and 3.0"},
        {npy(good, "", 0), "version 0.0 is not known; known are 1.0, 2.0 and 3.0"},
        {npy(good, "", 1, 7), "version 1.7 is not known; known are 1.0, 2.0 and 3.0"},
        {std::string("\x93NUMPY\x01\0\xff\xff{}", 12),
         "the header says it has 65535 bytes, 2 follow"},
        {std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14),
         "the header says it has 4294967295 bytes, 2 follow"},
        header("", "the header ends before its dictionary does"),
        header("  \n", "the header ends before its dictionary does"),
        header("[1, 2]", "the header is not a dictionary: '[1, 2]'"),
        header("{", "the header ends before its dictionary does"),
        header(good.substr(0, good.size() - 1), "the header ends before its dictionary does"),
        header("{'descr': '<f4", "no quote ends ''<f4' in the header"),
        header("{'descr'", "the header ends before its dictionary does"),
        header("{'descr' '<f4'}", "no colon after key 'descr'"),
        header("{'descr': }", "descr is not a text in quotes: '}'" + evaluated),
        header("{descr: '<f4'}", "no key in quotes at 'descr: '<f4'}'"),
        header("{, 'descr': '<f4'}", "no key in quotes at ', 'descr': '<f4'}'"),
        header("{'descr': '<f4' 'shape': (1,)}", "no comma before ''shape': (1,)}' in the header"),
        header("{'descr': '<f4', 'fortran_order': False, }",
               "key 'shape' is missing in the header"),
        header("{'descr': '<f4', 'shape': (3,), }", "key 'fortran_order' is missing in the header"),
        header("{}", "key 'descr' is missing in the header"),
        header("{'descr': '<f4', 'descr': '<f4'}", "key 'descr' stands twice in the header"),
        header("{'colour': 1}", "key 'colour' is not known"),
        header("{'de\\x73cr': 1}", "escape in the header: 'de\\x73cr'"),
        header("{'d\xc3\xa9': 1}", "key 'd\\xc3\\xa9' is not known"),
        header(good + " + 1", "text after the header: '+ 1'"),
        header(good + good, "text after the header: '{'descr': '<f4', 'fortran_order': False,...'"),
        header(std::string("{'descr': '<f4',\0}", 18), "the header has a NUL byte at offset 16"),
        header(npy_header("(3,)", "str('<f4')"),
               "descr is not a text in quotes: 'str('<f4'), 'fortran_order': False, 'sha...'" +
                   evaluated),
        header(npy_header("(3,)", "'<f4'", "'False'"),
               "fortran_order is ''False'', not True or False"),
        header(npy_header("(3,)", "'<f4'", "Tru"), "fortran_order is 'Tru', not True or False"),
        header(npy_header("(3,)", "'<f4'", "0"), "fortran_order is '0', not True or False"),
        header(npy_header("(3,)", "'<f4'", ""), "fortran_order is '', not True or False"),
        shape("12", "shape is not a tuple: '12, }'"),
        shape("[3, 4]", "shape is not a tuple: '[3, 4], }'"),
        shape("(12)", "shape is not a tuple: '(12)' has no comma"),
        shape("(1+2, 4)", "'+' follows a size in shape" + evaluated),
        shape("(3 4)", "'4' follows a size in shape" + evaluated),
        shape("(3LL,)", "'L' follows a size in shape" + evaluated),
        shape("(,)", "no size in shape at ',), }'"),
        shape("(3,,)", "no size in shape at ',), }'"),
        shape("(-,)", "no size in shape at '-,), }'"),
        shape("(n,)", "no size in shape at 'n,), }'"),
        shape("(True,)", "no size in shape at 'True,), }'"),
        shape("(3", "no size in shape at '}'"),
        shape("((3,),)", "no size in shape at '(3,),), }'"),
        shape(std::string(3000, '('), "no size in shape at '" + std::string(40, '(') + "...'"),
        shape("(3.0, 4)", "size '3.0' is not an integer"),
        shape("(1e3,)", "size '1e3' is not an integer"),
        shape("(-3, 4)", "size -3 is negative"),
        shape("(9223372036854775808,)", "size '9223372036854775808' does not fit 64 bits"),
        shape("(" + std::string(400, '9') + ",)",
              "size '" + std::string(40, '9') + "...' does not fit 64 bits"),
        shape("(1, 1, 1, 1, 1, 1, 1, 1, 1)",
              "rank 9 is above the limit of 8; save it with fewer axes: np.save(path, "
              "x.reshape(...))"),
        shape("(4294967296, 4294967296)",
              "shape (4294967296, 4294967296) is too large: its bytes exceed 2^62"),
        shape("(0, 9223372036854775807)",
              "shape (0, 9223372036854775807) is too large: its bytes exceed 2^62"),
        shape("(9223372036854775807,)",
              "shape (9223372036854775807,) is too large: its bytes exceed 2^62"),
        shape("(274877906944,)",
              "shape (274877906944,) of '<f4' needs 1099511627776 bytes of data, 48 found"),
        shape("(3, 5)", "shape (3, 5) of '<f4' needs 60 bytes of data, 48 found"),
        shape("(3, 3)",
              "12 bytes too many: shape (3, 3) of '<f4' needs 36 bytes of data, 48 found"),
        shape("(0,)", "48 bytes too many: shape (0,) of '<f4' needs 0 bytes of data, 48 found"),
        {npy(good), "shape (3, 4) of '<f4' needs 48 bytes of data, 0 found"},
        descr("", "the element type is empty"),
        descr("<", "element type '<' is not known"),
        descr("q8", "element type 'q8' is not known"),
        descr("<f", "element type '<f' is not known"),
        descr("<f4x", "element type '<f4x' is not known"),
        descr("<f-4", "element type '<f-4' is not supported: a float of -4 bytes"),
        descr("<f99999999999", "element type '<f99999999999' is not known"),
        descr("<f3", "element type '<f3' is not supported: a float of 3 bytes"),
        descr("<f16", "element type '<f16' is not supported: a float of 16 bytes"),
        descr("<i3", "element type '<i3' is not supported: an integer of 3 bytes"),
        descr("|b2", "element type '|b2' is not supported: a boolean of 2 bytes"),
        descr("|O",
              "element type '|O' is Python objects, a pickle, which is never read; save numbers: "
              "np.save(path, x.astype(np.float64), allow_pickle=False)"),
        descr("<c8", "element type '<c8' is complex, not supported; save x.real and x.imag"),
        descr("<U2", "element type '<U2' is text, not supported"),
        descr("|S5", "element type '|S5' is text, not supported"),
        descr("<M8[us]", "element type '<M8[us]' is dates, not supported; save x.astype(np.int64)"),
        descr("|V7", "element type '|V7' is raw bytes, not supported"),
        header(
            npy_header("(1,)", "[('a', '<f4')]"),
            "structured element types are not supported: '[('a', '<f4')], 'fortran_order': False, "
            "...'; save each field on its own: np.save(path, x['field'])"),
        {npy(npy_header("(2,)", "'<u8'"), from_hex("0100000000000000ffffffffffffffff")),
         "element 1 of the data, 18446744073709551615, does not fit i64"},
        {npy(npy_header("(3,)", "'|b1'"), from_hex("010002")),
         "element 2 of the data is 2, not 0 or 1"},
    };
}

}  // namespace

TEST_CASE("every malformed .npy file is refused with its text, from memory and from a file") {
    const TemporaryFolder folder;
    const std::string path = folder / "x.npy";
    for (const Malformed& file : malformed_files()) {
        const std::string& bytes = file.bytes;
        const std::string& text = file.text;
        CHECK(message_of([&] { parse_npy(bytes_of(bytes), "x"); }) == "parse_npy: x: " + text);
        std::ofstream(path, std::ios::binary) << bytes;
        CHECK(message_of([&] { load_npy(path); }) == "load_npy: " + path + ": " + text);
        CHECK_THROWS_AS(load_npy(path), FileError);
    }
}

TEST_CASE("a file cut at any byte is refused") {
    const std::string file = npy(npy_header("(2, 3)") + "\n", std::string(24, 'x'));
    REQUIRE(parse_npy(bytes_of(file), "x").numel() == 6);
    for (std::size_t size = 0; size < file.size(); ++size) {
        CHECK_THROWS_AS(parse_npy(bytes_of(file).first(size), "x"), FileError);
    }
}

TEST_CASE("a size that the file does not hold is refused before memory is asked for") {
    for (const char* sizes : {"(274877906944,)", "(1099511627776, 0, 1)", "(1000000000,)"}) {
        for (const char* type : {"'<f4'", "'|u1'", "'>f8'"}) {
            const std::string file = npy(npy_header(sizes, type, "True"), std::string(48, 'x'));
            reset_peak_memory();
            const std::int64_t before = memory_stats().peak_bytes;
            CHECK_THROWS_AS(parse_npy(bytes_of(file), "x"), FileError);
            CHECK(memory_stats().peak_bytes - before < 100000);
        }
    }
}

TEST_CASE("mutated files are refused, or loaded and saved without change") {
    const TemporaryFolder folder;
    const std::string path = folder / "x.npy";
    RandomState random(17);
    const auto below = [&](std::size_t n) { return std::size_t(random.next_interval(n - 1)); };
    int loaded = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string file =
            npy(npy_header("(2, 3)", i % 2 ? "'>f8'" : "'<i2'", i % 3 ? "True" : "False"),
                std::string(i % 2 ? 48 : 12, 'z'), 1 + i % 3);
        for (std::size_t k = 0; k <= below(3); ++k) {
            const std::size_t at = below(file.size());
            switch (below(5)) {
                case 0: file[at] = char(file[at] ^ (1 << below(8))); break;
                case 1: file[at] = char(below(256)); break;
                case 2: file.erase(at, 1 + below(3)); break;
                case 3: file.insert(at, 1, file[below(file.size())]); break;
                default: file[at] = "0123456789(),'L-"[below(16)]; break;
            }
            if (file.empty()) break;
        }
        try {
            const Tensor x = parse_npy(bytes_of(file), "x");
            ++loaded;
            if (loaded % 8) continue;
            save_npy(path, x);
            const Tensor y = load_npy(path);
            CHECK(y.shape() == x.shape());
            CHECK(to_hex(element_bytes(y)) == to_hex(element_bytes(x)));
        } catch (const FileError&) {
        }
    }
    CHECK(loaded > 100);
    CHECK(loaded < 3000);
}
