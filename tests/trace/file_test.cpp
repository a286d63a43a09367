// Traces as files: written whole or not at all, read only from what is a file.

#include "sample.hpp"

#include <support/catch.hpp>

#include <glassgrad/tensor.hpp>

#include <filesystem>
#include <fstream>

#include <sys/stat.h>
#include <unistd.h>

using namespace glassgrad;
using namespace glassgrad::testing;
namespace fs = std::filesystem;

namespace {

/// An empty folder that goes away with the object.
class Folder {
  public:
    Folder()
        : path_(fs::temp_directory_path() / ("glassgrad_trace_" + std::to_string(::getpid()))) {
        fs::remove_all(path_);
        fs::create_directory(path_);
    }
    ~Folder() { fs::remove_all(path_); }
    std::string file(const std::string& name) const { return (path_ / name).string(); }
    std::size_t count() const {
        return static_cast<std::size_t>(
            std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
    }

  private:
    fs::path path_;
};

}  // namespace

TEST_CASE("A trace goes to a file and comes back, in the form that the name says") {
    const Folder folder;
    const TraceDocument trace = sample_trace();
    write_trace(folder.file("a.trace.json"), trace);
    write_trace(folder.file("a.trace.jsonl"), trace);
    CHECK(folder.count() == 2);
    CHECK(to_json(read_trace(folder.file("a.trace.json"))) == to_json(trace));
    CHECK(to_json(read_trace(folder.file("a.trace.jsonl"))) == to_json(trace));
}

TEST_CASE("Writing over a trace leaves one file, and a refused trace leaves the old one") {
    const Folder folder;
    const std::string path = folder.file("run.trace.json");
    write_trace(path, sample_trace());
    write_trace(path, trace_of(tensor({1, 2})));
    CHECK(folder.count() == 1);
    TraceDocument wrong = sample_trace();
    wrong.ops[0].scope = 9;
    CHECK_THROWS_AS(write_trace(path, wrong), ValueError);
    CHECK(read_trace(path).tensors.size() == 1);
    CHECK(folder.count() == 1);
}

TEST_CASE("A path that cannot be read or written is named with the reason") {
    const Folder folder;
    const std::string absent = folder.file("absent.trace.json");
    CHECK_THROWS_WITH(read_trace(absent),
                      "read_trace: " + absent + ": cannot open: No such file or directory");
    const std::string inside = folder.file("no/such/folder.trace.json");
    CHECK_THROWS_WITH(
        write_trace(inside, sample_trace()),
        "write_trace: " + inside + ": cannot create a file beside it: No such file or directory");
    const std::string here = folder.file("");
    CHECK_THROWS_WITH(read_trace(here),
                      "read_trace: " + here + ": not a regular file but a directory");
    CHECK_THROWS_WITH(read_trace("/dev/zero"), "read_trace: /dev/zero: not a regular file");
    const std::string pipe = folder.file("pipe");
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_WITH(read_trace(pipe), "read_trace: " + pipe + ": not a regular file");
}

TEST_CASE("A malformed file is named with line, column and place") {
    const Folder folder;
    const std::string path = folder.file("bad.trace.json");
    std::string json = to_json(trace_of(tensor({{1, 2}, {3, 4}})));
    json.replace(json.find("[3.0,4.0]"), 9, "[3.0,null]");
    std::ofstream(path) << json;
    CHECK_THROWS_WITH(read_trace(path),
                      "read_trace: " + path +
                          ": line 10, column 139: tensors[0].value.data[1][1]: null, which is no "
                          "number; expected a number; non-finite ones are the texts NaN, Infinity "
                          "and -Infinity");
}
