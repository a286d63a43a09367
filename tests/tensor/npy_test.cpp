// .npy files that are well-formed, and how files are written.

#include <glassgrad/tensor/npy.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <csignal>

#include <sys/resource.h>
#include <sys/stat.h>

using namespace glassgrad;
using namespace glassgrad::testing;
using nlohmann::json;

namespace {

void check_same(const Tensor& got, const Tensor& expected) {
    CHECK(got.shape() == expected.shape());
    CHECK(got.dtype() == expected.dtype());
    CHECK(to_hex(element_bytes(got)) == to_hex(element_bytes(expected)));
}

}  // namespace

TEST_CASE("save_npy writes the bytes of np.save, and load_npy reads them back") {
    const TemporaryFolder folder;
    const json file = load_json("npy_cases.json");
    for (const json& item : file["cases"]) {
        if (item["what"] != "save") continue;
        INFO(item["x"].dump().substr(0, 100));
        const Tensor x = tensor_of(item["x"]);
        const std::string path = folder / "x.npy";
        save_npy(path, x);
        CHECK(to_hex(bytes_of(read_file(path))) == item["bytes"].get<std::string>());
        check_same(load_npy(path), x);
    }
    CHECK(folder.files() == 1);
}

TEST_CASE("every width, order of bytes, order of axes and version of NumPy's is read exactly") {
    int count = 0;
    const json file = load_json("npy_cases.json");
    for (const json& item : file["cases"]) {
        const std::string bytes = from_hex(item["bytes"]);
        INFO(item["x"].dump().substr(0, 100));
        check_same(parse_npy(bytes_of(bytes), "x"), tensor_of(item["x"]));
        ++count;
    }
    CHECK(count == 64);
}

TEST_CASE("NaN payloads, signed zeros and denormals keep their bits") {
    const std::string hex =
        "0100c07f0000c0ff0000807f000080ff0000008001000000ffff7f00fd43ae150100807f";
    const std::string file = npy(npy_header("(9,)"), from_hex(hex));
    const Tensor x = parse_npy(bytes_of(file), "x");
    CHECK(to_hex(element_bytes(x)) == hex);
    const TemporaryFolder folder;
    save_npy(folder / "x.npy", x);
    CHECK(to_hex(element_bytes(load_npy(folder / "x.npy"))) == hex);

    std::string swapped;
    for (std::size_t i = 0; i < hex.size(); i += 8) {
        for (std::size_t k = 8; k > 0; k -= 2) swapped += hex.substr(i + k - 2, 2);
    }
    const std::string big = npy(npy_header("(9,)", "'>f4'"), from_hex(swapped));
    CHECK(to_hex(element_bytes(parse_npy(bytes_of(big), "x"))) == hex);
}

TEST_CASE("halves are widened exactly, NaN and infinity included") {
    const std::string file = npy(npy_header("(6,)", "'<f2'"), from_hex("007c00fc017e0100ff03ff7b"));
    const Tensor x = parse_npy(bytes_of(file), "x");
    CHECK(to_hex(element_bytes(x)) == "0000807f000080ff0020c07f0000803300c07f3800e07f47");
}

TEST_CASE(
    "headers may have any order of keys, quotes, blanks, padding, and Python 2's long sizes") {
    const std::string data(24, '\0');
    for (const std::string header : {
             "{'descr':'<f4','fortran_order':False,'shape':(2,3)}",
             "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"<f4\"}",
             "\t{ 'shape' : ( 2 , 3 , ) ,\n 'descr' : '<f4' , 'fortran_order' : False }\r\n",
             "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L), }",
             "{'descr': '=f4', 'fortran_order': False, 'shape': (2, 3), }",
             "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3), }",
         }) {
        INFO(header);
        for (const int major : {1, 2, 3}) {
            const std::string file = npy(header, data, major);
            check_same(parse_npy(bytes_of(file), "x"), zeros({2, 3}));
        }
        const std::string padded = npy(header + std::string(60000, ' ') + '\n', data);
        check_same(parse_npy(bytes_of(padded), "x"), zeros({2, 3}));
    }
}

TEST_CASE("limits hold on both sides: rank 8, a header of 1 MiB") {
    const std::string eight = npy(npy_header("(1, 1, 1, 1, 1, 1, 1, 1)"), "abcd");
    CHECK(parse_npy(bytes_of(eight), "x").rank() == 8);
    std::string header = npy_header("(1,)");
    header.resize(npy_max_header_bytes, ' ');
    const std::string long_header = npy(header, "abcd", 2);
    CHECK(parse_npy(bytes_of(long_header), "x").shape() == Shape{1});
    const std::string longer = npy(header + ' ', "abcd", 2);
    CHECK(message_of([&] { parse_npy(bytes_of(longer), "x"); }) ==
          "parse_npy: x: the header has 1048577 bytes, above the limit of 1048576");
}

TEST_CASE("a file that is replaced keeps its mode, and a link its target") {
    const TemporaryFolder folder;
    save_npy(folder / "x.npy", ones({2}));
    REQUIRE(::chmod((folder / "x.npy").c_str(), 0640) == 0);
    std::filesystem::create_symlink("x.npy", folder / "link.npy");
    save_npy(folder / "link.npy", full({3}, 7));
    CHECK(std::filesystem::is_symlink(folder / "link.npy"));
    CHECK(load_npy(folder / "x.npy").shape() == Shape{3});
    struct stat status {};
    REQUIRE(::stat((folder / "x.npy").c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0640);
}

TEST_CASE("a save that fails says why, leaves no file behind and keeps the old one") {
    const TemporaryFolder folder;
    const std::string path = folder / "x.npy";
    save_npy(path, tensor({1, 2, 3}));
    const std::string before = read_file(path);

    rlimit old{};
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &old) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{4096, old.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
    const std::string text = message_of([&] { save_npy(path, zeros({10000})); });
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &old) == 0);
    std::signal(SIGXFSZ, handler);

    CHECK(text == "save_npy: " + path + ": cannot write: File too large");
    CHECK(read_file(path) == before);
    CHECK(folder.files() == 1);
}

TEST_CASE("files that cannot be opened or written name the path and the reason") {
    const TemporaryFolder folder;
    const auto check = [](const auto& call, const std::string& text) {
        CHECK(message_of(call) == text);
    };
    const std::string none = folder / "none.npy";
    check([&] { load_npy(none); },
          "load_npy: " + none + ": cannot open: No such file or directory");
    check([&] { load_npy(folder / ""); },
          "load_npy: " + (folder / "") + ": not a regular file but a directory");
    check([&] { load_npy("/dev/zero"); }, "load_npy: /dev/zero: not a regular file");
    check([&] { load_npy("/dev/null"); }, "load_npy: /dev/null: not a regular file");
    const std::string fifo = folder / "fifo.npy";
    REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
    check([&] { load_npy(fifo); }, "load_npy: " + fifo + ": not a regular file");
    check([&] { load_npy(""); }, "load_npy: the name of the file is empty");
    check([&] { load_npy(std::string("/dev/null\0.npy", 14)); },
          "load_npy: the name of the file has a NUL byte in it");

    const Tensor x = ones({2});
    const std::string deep = folder / "none/x.npy";
    check([&] { save_npy(deep, x); },
          "save_npy: " + deep + ": cannot create a file beside it: No such file or directory");
    check([&] { save_npy(folder / "", x); },
          "save_npy: " + (folder / "") + ": not a regular file but a directory");
    check([&] { save_npy("/dev/null", x); }, "save_npy: /dev/null: not a regular file");
    check([&] { save_npy(fifo, x); }, "save_npy: " + fifo + ": not a regular file");
    check([&] { save_npy("", x); }, "save_npy: the name of the file is empty");
    check([&] { save_npy(none, Tensor()); },
          "tensor: undefined (default-constructed or moved from)");
    CHECK(folder.files() == 1);
}
