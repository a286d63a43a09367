// Checkpoints: what was written is what is read, and all else is refused.
#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <glassgrad/tensor/detail/hash.hpp>
#include <glassgrad/training.hpp>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include <unistd.h>

namespace fs = std::filesystem;
using namespace glassgrad;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using glassgrad::testing::read_file;
using glassgrad::testing::TemporaryFolder;
using glassgrad_tests::text_of;

namespace {

void write_file(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

/// All types, no elements, rank 0, values that compare unlike themselves, names that are escaped.
Checkpoint sample(std::int64_t step = 420) {
    Tensor odd = tensor({0., -0., std::numeric_limits<double>::infinity()});
    const std::uint32_t payload = 0x7fc01234;
    std::memcpy(odd.mutable_data<float>(), &payload, sizeof(payload));
    Checkpoint checkpoint{.step = step};
    checkpoint.add("model", {{"weight", tensor({{1.5, 2.5, -3.5}, {4., 5., 6.}}, f64)},
                             {"odd\x1f name é", odd},
                             {"mask", tensor({1., 0., 1.}, boolean)}});
    checkpoint.add("optimizer", {{"steps", full({}, 420, i64)}, {"none", zeros({0, 3}, f64)}});
    checkpoint.metadata = {{"config", "{\"d_model\": 4}"}, {"best", "0x1.8p+1 \x01"}};
    return checkpoint;
}

bool same(const Tensor& a, const Tensor& b) {
    return a.dtype() == b.dtype() && a.shape() == b.shape() &&
           std::memcmp(a.bytes(), b.bytes(),
                       static_cast<std::size_t>(a.numel()) * item_size(a.dtype())) == 0;
}

bool same(const Checkpoint& a, const Checkpoint& b) {
    return a.step == b.step && a.metadata == b.metadata &&
           std::equal(a.tensors.begin(), a.tensors.end(), b.tensors.begin(), b.tensors.end(),
                      [](const auto& x, const auto& y) {
                          return x.first == y.first && same(x.second, y.second);
                      });
}

std::string load_error(const std::string& path) {
    return text_of<FileError>([&] { load_checkpoint(path); });
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
        names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
}

void flip_bit(const std::string& path, std::streamoff byte, int bit) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(byte);
    const char old = static_cast<char>(file.get());
    file.seekp(byte);
    file.put(static_cast<char>(old ^ (1 << bit)));
}

/// The same file with another text in its header, and the checksum that it then needs: where that
/// stands and what it covers never change.
std::string with_header(std::string bytes, const std::string& from, const std::string& to) {
    const std::string opening = R"({"__metadata__":{"checkpoint.checksum":")";
    REQUIRE(bytes.compare(8, opening.size(), opening) == 0);
    REQUIRE(from.size() == to.size());
    bytes.replace(bytes.find(from), from.size(), to);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof(length));
    const std::size_t place = 8 + opening.size();
    bytes.replace(place, 16, 16, '0');
    const std::string_view head = std::string_view(bytes).substr(0, 8 + length);
    return bytes.replace(place, 16, detail::hash_text(detail::xxh64(head)));
}

}  // namespace

TEST_CASE("a checkpoint is read as it was written, to the bit") {
    const TemporaryFolder folder;
    const Checkpoint checkpoint = sample();
    save_checkpoint(folder / "a", checkpoint);
    const Checkpoint read = load_checkpoint(folder / "a");
    CHECK(same(read, checkpoint));
    CHECK(read.part("model").size() == 3);
    CHECK(read.part("model")[1].first == "odd\x1f name é");
    CHECK(read.part("mod").empty());
    CHECK(read.find("config") == "{\"d_model\": 4}");
    CHECK(!read.find("checkpoint.step"));
    save_checkpoint(folder / "b", read);
    CHECK(read_file(folder / "a") == read_file(folder / "b"));
    CHECK(load_safetensors(folder / "a").tensors.size() == 5);

    save_checkpoint(folder / "c", {});
    CHECK(same(load_checkpoint(folder / "c"), Checkpoint{}));
    CHECK(folder.files() == 3);
}

TEST_CASE("a checkpoint of the first format is read and written as ever") {
    const TemporaryFolder folder;
    const std::string stored = GLASSGRAD_TEST_DATA "/training/format_1.checkpoint.safetensors";
    CHECK(same(load_checkpoint(stored), sample()));
    save_checkpoint(folder / "a", sample());
    CHECK(read_file(folder / "a") == read_file(stored));
    CHECK(detail::xxh64("", 2654435761) == 0xAC75FDA2929B17EF);
}

TEST_CASE("every flipped bit, every cut and every byte too many of a checkpoint is found") {
    const TemporaryFolder folder;
    const std::string path = folder / "a";
    save_checkpoint(path, sample());
    const std::string bytes = read_file(path);
    int unseen = 0;
    for (std::size_t byte = 0; byte < bytes.size(); ++byte) {
        for (int bit = 0; bit < 8; ++bit) {
            flip_bit(path, static_cast<std::streamoff>(byte), bit);
            const std::string error = load_error(path);
            if (!error.starts_with("load_checkpoint: " + path + ": ")) {
                ++unseen;
                UNSCOPED_INFO("byte " << byte << ", bit " << bit << ": " << error);
            }
            flip_bit(path, static_cast<std::streamoff>(byte), bit);
        }
    }
    CHECK(unseen == 0);
    CHECK(read_file(path) == bytes);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        write_file(path, bytes.substr(0, size));
        if (load_error(path) == "nothing thrown") ++unseen;
    }
    write_file(path, bytes + '\0');
    if (load_error(path) == "nothing thrown") ++unseen;
    CHECK(unseen == 0);
    write_file(path, bytes);
    CHECK(load_error(path) == "nothing thrown");
}

TEST_CASE("what is no checkpoint, or one of a newer format, is refused by name") {
    const TemporaryFolder folder;
    const std::string path = folder / "a";
    const std::string where = "load_checkpoint: " + path + ": ";
    CHECK(load_error(path) == where + "cannot open: No such file or directory");
    save_safetensors(path, StateDict{{"w", tensor({1.})}});
    CHECK(load_error(path) == where + "not a checkpoint: its header doesn't begin with a checksum");

    save_checkpoint(path, sample());
    const std::string bytes = read_file(path);
    flip_bit(path, static_cast<std::streamoff>(bytes.find("d_model")), 0);
    CHECK(load_error(path) == where + "damaged: the header doesn't have its checksum");
    write_file(path, bytes);
    flip_bit(path, static_cast<std::streamoff>(bytes.size()) - 1, 0);
    CHECK(load_error(path) == where + "damaged: tensor 'model.mask' doesn't have its checksum");

    write_file(path,
               with_header(bytes, R"("checkpoint.format":"1")", R"("checkpoint.format":"2")"));
    CHECK(load_error(path) == where +
                                  "a checkpoint of format 2, and format 1 is the newest known "
                                  "here; read it with a newer glassgrad");
    write_file(path, with_header(bytes, R"("checkpoint.step")", R"("checkpoint.stop")"));
    CHECK(load_error(path) == where + "not a checkpoint: 'checkpoint.step' is missing");
    write_file(path, with_header(bytes, R"(step":"420")", R"(step":"-20")"));
    CHECK(load_error(path) == where + "'checkpoint.step' is '-20', not a count");
    write_file(path, with_header(bytes, R"(model.weight)", R"(model.weighs)"));
    CHECK(load_error(path) == where + "damaged: tensor 'model.weighs' doesn't have its checksum");
}

TEST_CASE("no file made to be difficult is a checkpoint, whole ones of another program neither") {
    const std::string root = std::string(GLASSGRAD_SHARED) + "/reliability/files/safetensors";
    if (!std::filesystem::exists(root)) SKIP("no " + root);
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root)) {
        if (entry.path().extension() != ".safetensors") continue;
        const std::string path = entry.path().string();
        INFO(path);
        CHECK(load_error(path).starts_with("load_checkpoint: " + path + ": "));
        ++files;
    }
    CHECK(files > 10);
}

TEST_CASE("a checkpoint that can't be written says why and leaves the old one") {
    const TemporaryFolder folder;
    const std::string path = folder / "a";
    save_checkpoint(path, sample());
    CHECK(text_of<ValueError>([&] { save_checkpoint(path, {.step = -1}); }) ==
          "save_checkpoint: the step -1 is negative");
    CHECK(text_of<ValueError>([&] {
              save_checkpoint(path, {.metadata = {{"checkpoint.mine", ""}}});
          }) ==
          "save_checkpoint: metadata 'checkpoint.mine': names that begin with 'checkpoint.' are "
          "the format's");
    CHECK(text_of<ValueError>([&] {
              save_checkpoint(path, {.tensors = {{"w", Tensor()}}});
          }) == "save_checkpoint: tensor 'w' is undefined");
    CHECK(text_of<FileError>([&] { save_checkpoint(folder / "no/a", {}); }) ==
          "save_checkpoint: " + folder / "no/a" +
              ": cannot create a file beside it: No such file or directory");
    CHECK(same(load_checkpoint(path), sample()));
    CHECK(folder.files() == 1);
}

TEST_CASE("a folder keeps the last checkpoints, the best, and the one that was loaded") {
    const TemporaryFolder temporary;
    const std::string path = temporary / "";
    CheckpointFolder folder(path.substr(0, path.size() - 1), {.keep_last = 2});
    CHECK(!folder.newest());
    CHECK(!folder.best());
    for (std::int64_t step = 1; step <= 4; ++step) {
        folder.save(sample(step), {.best = step == 2});
    }
    CHECK(names_in(path) == std::vector<std::string>{"best.safetensors", "step-000003.safetensors",
                                                     "step-000004.safetensors"});
    CHECK(folder.best()->checkpoint.step == 2);
    CHECK(folder.newest()->path == folder.step_path(4));
    for (std::int64_t step = 5; step <= 7; ++step) folder.save(sample(step));
    CHECK(names_in(path) == std::vector<std::string>{"best.safetensors", "step-000004.safetensors",
                                                     "step-000006.safetensors",
                                                     "step-000007.safetensors"});
    folder.save(sample(1234567), {.best = true});
    CHECK(folder.newest()->path == folder.step_path(1234567));
    fs::remove(folder.step_path(1234567));
    CHECK(folder.newest()->path == folder.best_path());
    // The content decides, not the name.
    fs::copy_file(folder.best_path(), folder.step_path(8));
    CHECK(folder.newest()->path == folder.step_path(8));

    CHECK(text_of<ValueError>([&] { folder.set_keep_last(0); }) ==
          "CheckpointFolder: keep_last 0 must be positive");
}

TEST_CASE("a damaged newest checkpoint is named, and the one before it is used") {
    const TemporaryFolder temporary;
    const std::string path = temporary / "run";
    fs::create_directory(path);
    CheckpointFolder folder(path, {.keep_last = 2});
    for (std::int64_t step = 1; step <= 3; ++step) folder.save(sample(step));
    const auto size = static_cast<std::streamoff>(fs::file_size(folder.step_path(3)));
    flip_bit(folder.step_path(3), size - 1, 0);
    const auto found = folder.newest();
    CHECK(found->checkpoint.step == 2);
    CHECK(found->path == folder.step_path(2));
    CHECK(found->damaged ==
          std::vector<std::string>{folder.step_path(3) +
                                   ": damaged: tensor 'model.mask' doesn't have its checksum"});
    CHECK(fs::exists(folder.step_path(3)));
    // Neither counts among those that are kept, nor goes, until a save of its step replaces it.
    for (std::int64_t step = 4; step <= 6; ++step) folder.save(sample(step));
    CHECK(names_in(path) ==
          std::vector<std::string>{"step-000002.safetensors", "step-000003.safetensors",
                                   "step-000005.safetensors", "step-000006.safetensors"});

    fs::create_symlink("nowhere", folder.step_path(9));  // as one that has gone since it was listed
    CHECK(folder.newest()->checkpoint.step == 6);
    CHECK(folder.newest()->damaged.empty());
    fs::remove(folder.step_path(9));

    const std::string newer = read_file(folder.step_path(6));
    write_file(folder.step_path(6),
               with_header(newer, R"("checkpoint.format":"1")", R"("checkpoint.format":"2")"));
    CHECK_THAT(text_of<FileError>([&] { folder.newest(); }), ContainsSubstring("format 2"));
    for (const auto& entry : fs::directory_iterator(path)) fs::resize_file(entry.path(), 100);
    CHECK_THAT(text_of<FileError>([&] { folder.newest(); }),
               StartsWith("CheckpointFolder: " + path + ": no checkpoint is whole: " + path) &&
                   ContainsSubstring("step-000005.safetensors: the header says") &&
                   Catch::Matchers::EndsWith("; move them away to start anew"));
    CHECK(names_in(path).size() == 4);
}

TEST_CASE("a save removes what killed processes left, and nothing else") {
    const TemporaryFolder temporary;
    const std::string path = temporary / "run";
    fs::create_directory(path);
    const std::string dead = "/step-000001.safetensors.tmp.2147483647.0";
    const std::string own = "/best.safetensors.tmp." + std::to_string(::getpid()) + ".77";
    const std::vector<std::string> others{"/notes.tmp.2147483647.0",
                                          "/step-000001.safetensors.tmp",
                                          "/a.safetensors.tmp.1.0",  // init lives
                                          "/a.safetensors.tmp.2147483647.",
                                          "/a.safetensors.tmp.99999999999.0",
                                          "/a.safetensors.tmp.2147483647.0.bak"};
    write_file(path + dead, "");
    write_file(path + own, "");
    for (const std::string& name : others) write_file(path + name, "");
    CheckpointFolder(path).save(sample());
    CHECK(!fs::exists(path + dead));
    CHECK(!fs::exists(path + own));
    CHECK(names_in(path).size() == others.size() + 1);
}

TEST_CASE("a folder is locked for one at a time") {
    const TemporaryFolder temporary;
    const std::string path = temporary / "deep/run";
    {
        const RunLock lock(path);
        CHECK(text_of<FileError>([&] { const RunLock second(path); }) ==
              "RunLock: " + path + ": process " + std::to_string(::getpid()) +
                  " is working in this folder; wait for it, stop it, or choose another folder");
        CHECK(read_file(path + "/lock") == std::to_string(::getpid()) + "\n");
    }
    write_file(path + "/lock", "2147483647\nof a process that was killed");
    const RunLock lock(path);
    CHECK(read_file(path + "/lock") == std::to_string(::getpid()) + "\n");
    CHECK_THAT(text_of<FileError>([&] { const RunLock bad(path + "/lock"); }),
               StartsWith("RunLock: " + path + "/lock: cannot make this folder: "));
    CHECK(text_of<FileError>([] { const RunLock bad(""); }) ==
          "RunLock: the name of the folder is empty");
}

TEST_CASE("a folder that takes no file is noticed") {
    const TemporaryFolder temporary;
    probe_folder(temporary / "");
    CHECK(temporary.files() == 0);
    CHECK_THAT(text_of<FileError>([&] { probe_folder(temporary / "", {.bytes = 1ULL << 61}); }),
               ContainsSubstring("cannot take room for 2305843009213693952 bytes: "));
    CHECK(temporary.files() == 0);
    CHECK_THAT(text_of<FileError>([&] { probe_folder(temporary / "none"); }),
               ContainsSubstring("cannot create a file beside it: No such file or directory"));
}

TEST_CASE("signals and a file ask a run to stop") {
    const TemporaryFolder temporary;
    const auto handler = [](int number) {
        struct sigaction now {};
        ::sigaction(number, nullptr, &now);
        return now.sa_handler;
    };
    const auto interrupt = handler(SIGINT);
    const auto before = std::signal(SIGTERM, SIG_IGN);
    {
        StopSignals stop(temporary / "stop");
        CHECK(!stop.requested());
        std::raise(SIGTERM);  // was ignored before, and is
        CHECK(!stop.requested());
        CHECK_THROWS_AS(StopSignals(), ValueError);
        std::raise(SIGUSR1);
        CHECK(stop.requested());
        CHECK(stop.exit_status() == 0);
        std::raise(SIGINT);
        CHECK(stop.requested());
        CHECK(stop.exit_status() == 130);
    }
    std::signal(SIGTERM, before);
    {
        StopSignals stop(temporary / "stop");
        CHECK(!stop.requested());
        write_file(temporary / "stop", "");
        CHECK(stop.requested());
        CHECK(stop.requested());
        CHECK(!fs::exists(temporary / "stop"));
        CHECK(stop.exit_status() == 0);
        std::raise(SIGTERM);
        CHECK(stop.exit_status() == 143);
    }
    CHECK(handler(SIGINT) == interrupt);
    CHECK(handler(SIGTERM) == before);
}
