// .npz: every file of the manifest with its verdict, archives that lie in other ways, round trips.

#include <glassgrad/tensor/npz.hpp>

#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/manifest.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <cstdlib>

using namespace glassgrad;
using namespace glassgrad::testing;
using glassgrad_tests::text_of;

namespace {

/// What is refused, and how; a file that is not here loads.
const std::map<std::string, std::string> refusals = {
    {"empty", "the file is empty, not an archive"},
    {"garbage_after_pk", "no end of a zip directory: not an archive, or one that was cut"},
    {"eocd_cut", "no end of a zip directory: not an archive, or one that was cut"},
    {"cut_in_half", "no end of a zip directory: not an archive, or one that was cut"},
    {"crc_wrong", "member 'w.npy': its checksum is wrong"},
    {"name_mismatch", "member 'w.npy' calls itself 'x.npy'"},
    {"overlapping", "member 'x.npy' calls itself 'w.npy'"},
    {"bomb_64mib",
     "member 'w.npy': 67108864 bytes too many: shape (3, 4) of '<f4' needs 48 bytes of data, "
     "67108912 found"},
    {"claims_1tb",
     "member 'w.npy': shape (137438953472,) of '<f4' needs 549755813888 bytes of data, 48 found"},
    {"object_member",
     "member 'o.npy': element type '|O' is Python objects, a pickle, which is never read; save "
     "numbers: np.save(path, x.astype(np.float64), allow_pickle=False)"},
    {"method_bzip2", "member 'w.npy': compression method 12 is not supported"},
    {"encrypted_flag", "member 'w.npy': it is encrypted"},
    {"eocd_offset_past_end",
     "its directory of 51 bytes at 2147483647 does not reach from there to its end at 262"},
    {"member_npy_inside_is_bad",
     "member 'bad.npy': shape (3, 4) of '<f4' needs 48 bytes of data, 47 found"},
    {"prefix_bytes",
     "its directory of 102 bytes at 398 does not reach from there to its end at 517"},
};

NamedArrays parse(const std::string& bytes) { return parse_npz(bytes_of(bytes), "x"); }

std::string refusal(const std::string& bytes) {
    return text_of<FileError>([&] { parse(bytes); });
}

void put(std::string& bytes, std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

/// Puts `value` over the bytes at `at`.
std::string patched(std::string bytes, std::size_t at, std::uint64_t value, int count) {
    std::string number;
    put(number, value, count);
    return bytes.replace(at, number.size(), number);
}

/// Where the n-th record with this signature begins.
std::size_t record(const std::string& bytes, const std::string& signature, int n = 0) {
    std::size_t at = bytes.find(signature);
    for (; n > 0; --n) at = bytes.find(signature, at + 1);
    return at;
}

const NamedArrays arrays = {{"w", tensor({{1.5, -0.0, 3}, {4, 5, 6}}, f32)},
                            {"größe", tensor({7, 8}, i64)},
                            {"a/b", tensor({true, false}, boolean)},
                            {"empty", zeros({0, 3}, f64)},
                            {"scalar", tensor(NestedList(2.5), f64)}};

}  // namespace

TEST_CASE("every .npz file of the manifest loads or is refused as it says") {
    const std::size_t refused = for_each_file("npz", [](const ManifestFile& file) {
        const auto refusal = refusals.find(file.name);
        if (file.is_decided) CHECK(file.valid == (refusal == refusals.end()));
        if (refusal != refusals.end()) {
            CHECK(text_of<FileError>([&] { load_npz(file.path); }) ==
                  "load_npz: " + file.path + ": " + refusal->second);
            return true;
        }
        const NamedArrays content = load_npz(file.path);
        if (!file.expect.is_null()) check_arrays(content, file.expect);
        for (const bool compress : {false, true}) {
            const std::string bytes = to_npz(content, {.compress = compress});
            CHECK(to_npz(parse(bytes), {.compress = compress}) == bytes);
        }
        return false;
    });
    if (refused > 0) CHECK(refused == refusals.size());
}

TEST_CASE("a damaged member doesn't keep the others") {
    const std::string folder = std::string(GLASSGRAD_SHARED) + "/reliability/files/npz/";
    if (!std::filesystem::exists(folder)) SKIP("no " + folder);
    for (const std::string name : {"object_member", "member_npy_inside_is_bad", "member_is_text"}) {
        const NpzReader reader(folder + name + ".npz");
        CHECK(reader.load("w").shape() == Shape{3, 4});
        CHECK(reader.contains("w"));
        CHECK_FALSE(reader.contains("w.npy"));
    }
    const NpzReader text(folder + "member_is_text.npz");
    CHECK(text.names() == std::vector<std::string>{"w"});
    CHECK(text.others() == std::vector<std::string>{"notes.txt"});
    CHECK(text_of<FileError>([&] { text.load("notes.txt"); }) ==
          "NpzReader: " + folder + "member_is_text.npz: there is no array 'notes.txt'");
}

// tests/tensor/npz_test.py reads the same file with NumPy.
TEST_CASE("what save_npz writes is pinned") {
    const std::string golden = std::string(GLASSGRAD_TEST_DATA) + "/tensor/written.npz";
    if (std::getenv("GLASSGRAD_WRITE_GOLDEN") != nullptr) save_npz(golden, arrays);
    CHECK(to_npz(arrays) == read_file(golden));

    const TemporaryFolder folder;
    for (const bool compress : {false, true}) {
        const std::string path = folder / "a.npz";
        save_npz(path, arrays, {.compress = compress});
        const NamedArrays back = load_npz(path);
        REQUIRE(back.size() == arrays.size());
        for (std::size_t i = 0; i < back.size(); ++i) {
            CHECK(back[i].first == arrays[i].first);
            CHECK(back[i].second.shape() == arrays[i].second.shape());
            CHECK(back[i].second.dtype() == arrays[i].second.dtype());
            CHECK(to_hex(element_bytes(back[i].second)) == to_hex(element_bytes(arrays[i].second)));
        }
    }
    CHECK(folder.files() == 1);
    CHECK(parse(to_npz({})).empty());
}

TEST_CASE("archives that lie about their members are refused") {
    const NamedArrays two = {{"a", tensor({1, 2})}, {"b", tensor({3, 4})}};
    const std::string good = to_npz(two);
    const std::string central = "PK\1\2";
    const std::size_t first = record(good, central);
    const std::size_t second = record(good, central, 1);
    const std::size_t end = record(good, "PK\5\6");
    const auto local = good.find("PK\3\4", 1);

    CHECK(refusal(good + "tail") ==
          "parse_npz: x: no end of a zip directory: not an archive, or one that was cut");
    CHECK(refusal(patched(good, second + 42, 0, 4)) ==
          "parse_npz: x: member 'b.npy' calls itself 'a.npy'");
    CHECK(refusal(patched(good, second + 42, local + 1, 4)) ==
          "parse_npz: x: member 'b.npy' is not where the directory says, at " +
              std::to_string(local + 1));
    CHECK(refusal(patched(good, first + 24, 9999, 4)) ==
          "parse_npz: x: the header of member 'a.npy' differs from the directory");
    CHECK(refusal(patched(good, first + 8, 1, 2)) ==
          "parse_npz: x: the header of member 'a.npy' differs from the directory");
    CHECK(refusal(patched(good, end + 10, 3, 2)) == "parse_npz: x: an archive in several parts");
    CHECK(refusal(patched(patched(good, end + 10, 3, 2), end + 8, 3, 2)) ==
          "parse_npz: x: a directory of 102 bytes has no room for 3 members");
    CHECK(refusal(patched(patched(good, end + 10, 1, 2), end + 8, 1, 2)) ==
          "parse_npz: x: 51 bytes in the directory after its last member");
    CHECK(refusal(patched(patched(good, end + 10, 40'001, 2), end + 8, 40'001, 2)) ==
          "parse_npz: x: 40001 members are above the limit of 40000");
    CHECK(refusal(patched(good, end + 12, 1, 4)).find("does not reach from there") !=
          std::string::npos);
    // Both headers say so: the sizes are checked against each other and the archive.
    const auto packed = [&](std::uint64_t size) {
        return patched(patched(good, first + 20, size, 4), 18, size, 4);
    };
    CHECK(refusal(packed(1u << 30)) ==
          "parse_npz: x: member 'a.npy' of 1073741824 bytes reaches into the directory");
    CHECK(refusal(packed(local)) == "parse_npz: x: members 'a.npy' and 'b.npy' share bytes");
    CHECK(refusal(packed(10)) ==
          "parse_npz: x: member 'a.npy': 10 bytes in the archive cannot be the 136 that the "
          "directory says");
    // The same name twice, in both places.
    std::string twice = good;
    for (std::size_t at = twice.find("b.npy"); at != twice.npos; at = twice.find("b.npy")) {
        twice[at] = 'a';
    }
    CHECK(refusal(twice) == "parse_npz: x: two members are named 'a.npy'");
}

TEST_CASE("a member that unpacks to more or less than it says is refused") {
    const std::string good = to_npz(NamedArrays{{"w", zeros({100}, i64)}}, {.compress = true});
    const std::size_t central = record(good, "PK\1\2");
    const auto with_size = [&](std::uint64_t size) {
        return patched(patched(good, central + 24, size, 4), 22, size, 4);
    };
    CHECK(parse(with_size(928)).size() == 1);
    CHECK(refusal(with_size(927)) ==
          "parse_npz: x: member 'w.npy': shape (100,) of '<i8' needs 800 bytes of data, 799 "
          "found");
    CHECK(refusal(with_size(1u << 31)) ==
          "parse_npz: x: member 'w.npy': 78 bytes in the archive cannot be the 2147483648 that the "
          "directory says");
    CHECK(refusal(with_size(78 * 1032)) ==
          "parse_npz: x: member 'w.npy': 79568 bytes too many: shape (100,) of '<i8' needs 800 "
          "bytes of data, 80368 found");
    CHECK(refusal(patched(good, central, 0, 1)) ==
          "parse_npz: x: no member where the directory has its 1. one");
}

TEST_CASE("save_npz refuses what would not come back") {
    const Tensor x = tensor({1, 2});
    const auto refused = [](const NamedArrays& named) {
        return text_of<ValueError>([&] { to_npz(named); });
    };
    CHECK(refused({{"a", x}, {"a", x}}) == "save_npz: two arrays are named 'a'");
    CHECK(refused({{"\xFF", x}}) == "save_npz: the name '\\xff' is not UTF-8 or has a NUL byte");
    CHECK(refused({{std::string("a\0b", 3), x}}) ==
          "save_npz: the name 'a\\x00b' is not UTF-8 or has a NUL byte");
    CHECK(refused({{"a", Tensor()}}) == "save_npz: array 'a' is undefined");
    CHECK(refused({{std::string(4093, 'n'), x}}) ==
          "save_npz: a name of 4093 bytes is above the limit of 4092");
    CHECK(refused(NamedArrays(40'001, {"a", x})) ==
          "save_npz: 40001 arrays are above the limit of 40000");
    CHECK(refused(NamedArrays(40'000, {"a", x})) == "save_npz: two arrays are named 'a'");
    const std::string longest(4092, 'n');
    CHECK(parse(to_npz(NamedArrays{{longest, x}})).at(0).first == longest);
}
