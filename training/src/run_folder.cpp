#include <glassgrad/training/run_folder.hpp>

#include "append_file.hpp"
#include "leftovers.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/version.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>

#include <sys/utsname.h>
#include <unistd.h>

namespace glassgrad {
namespace {

std::string_view text_of(const detail::MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// Empty where the system doesn't say.
std::string processor_name() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        const std::size_t at = line.find(": ");
        if (line.starts_with("model name") && at != line.npos) return line.substr(at + 2);
    }
    return {};
}

void write_host(detail::JsonWriter& out) {
    utsname system{};
    (void)::uname(&system);
    out.name("host").begin_object();
    out.name("name").text(system.nodename);
    out.name("system").text(
        fmt::format("{} {} {}", system.sysname, system.release, system.machine));
    out.name("processor").text(processor_name());
    out.name("cores").number(std::int64_t{std::thread::hardware_concurrency()});
    const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
    out.name("memory_bytes").number(std::max<std::int64_t>(pages, 0) * ::sysconf(_SC_PAGESIZE));
    out.end_object();
}

std::string start_json(const RunHeader& header, std::int64_t first_step,
                       const std::vector<std::string>& command) {
    detail::JsonWriter out;
    out.begin_object();
    out.name("started").text(utc_now());
    out.name("first_step").number(first_step);
    out.name("glassgrad").text(GLASSGRAD_VERSION);
    out.name("process").number(std::int64_t{::getpid()});
    out.name("command").begin_array();
    for (const std::string& argument : command) out.text(argument);
    out.end_array();
    write_host(out);
    out.name("facts").begin_object();
    for (const auto& [name, value] : header.facts) out.name(name).text(value);
    out.end_object();
    out.end_object();
    return out.take();
}

/// The starts that the file tells of, as they are written there; none if it is no such file.
std::vector<std::string> earlier_starts(const std::string& path) {
    std::vector<std::string> starts;
    if (!detail::file_exists("RunFolder", path)) return starts;
    const detail::MappedFile file("RunFolder", path);
    const std::string_view text = text_of(file);
    try {
        detail::read_json(text, "", [&](detail::JsonCursor& in) {
            in.members({{"starts", detail::JsonCursor::required, [&] {
                             in.array([&](std::size_t) {
                                 in.peek();
                                 const std::size_t begin = in.offset();
                                 in.skip();
                                 starts.emplace_back(text.substr(begin, in.offset() - begin));
                             });
                         }}});
        });
    } catch (const FileError&) {
        starts.clear();
    }
    return starts;
}

constexpr std::string_view sample_begin = "=== step ";

/// How many bytes of the samples are of the first `last` steps. What somebody else wrote stays, and
/// so does all behind it.
std::size_t samples_to_keep(std::string_view text, std::int64_t last) {
    std::size_t at = 0;
    while (at < text.size()) {
        const std::size_t end = text.find('\n', at);
        if (end == text.npos) return at;
        std::int64_t step = 0;
        std::size_t size = 0;
        const std::string_view line = text.substr(at, end - at);
        if (!line.starts_with(sample_begin)) return text.size();
        const char* stop = line.data() + line.size();
        auto [next, error] = std::from_chars(line.data() + sample_begin.size(), stop, step);
        const bool comma = error == std::errc{} && stop - next > 2 && next[0] == ',';
        if (!comma || std::from_chars(next + 2, stop, size).ec != std::errc{}) return text.size();
        if (step > last || size >= text.size() - end - 1) return at;  // later, or half of one
        at = end + 1 + size + 1;
    }
    return text.size();
}

}  // namespace

RunFolder::RunFolder(std::string folder, const RunFolderOptions& options)
    : folder_(std::move(folder)), options_(options) {
    if (folder_.empty()) throw FileError("RunFolder: the name of the folder is empty");
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
        throw FileError("RunFolder: " + folder_ + ": cannot make this folder: " + error.message());
    }
}

RunFolder::~RunFolder() = default;

std::string RunFolder::path(std::string_view name) const {
    return (std::filesystem::path(folder_) / name).string();
}

void RunFolder::on_start(const RunHeader& header, std::int64_t first_step) {
    detail::remove_leftovers(folder_, [](std::string_view name) {
        static constexpr std::string_view ours[] = {"config.toml", "run.json", "metrics.jsonl",
                                                    "samples.txt", "loss.svg"};
        return std::find(std::begin(ours), std::end(ours), name) != std::end(ours);
    });
    const std::string run_path = path("run.json");
    std::vector<std::string> starts;
    if (first_step > 0) starts = earlier_starts(run_path);
    starts.push_back(start_json(header, first_step, options_.command));
    std::string json = R"({"format":"glassgrad-run","starts":[)";
    for (std::size_t i = 0; i < starts.size(); ++i) json += (i > 0 ? ",\n" : "\n") + starts[i];
    detail::replace_file("RunFolder", run_path, json + "\n]}\n");

    samples_.reset();
    const std::string samples_path = path("samples.txt");
    if (!detail::file_exists("RunFolder", samples_path)) return;
    const detail::MappedFile file("RunFolder", samples_path);
    const std::string_view text = text_of(file);
    const std::size_t kept = first_step > 0 ? samples_to_keep(text, first_step) : 0;
    if (kept < text.size()) {
        detail::replace_file("RunFolder", samples_path, text.substr(0, kept));
    }
}

void RunFolder::on_sample(std::int64_t step, std::string_view text) {
    if (!samples_) {
        samples_ = std::make_unique<detail::AppendFile>("RunFolder", path("samples.txt"));
    }
    samples_->write(fmt::format("{}{}, {} bytes ===\n{}\n", sample_begin, step, text.size(), text));
}

void RunFolder::on_save(std::int64_t) {
    if (samples_) samples_->sync();
}

}  // namespace glassgrad
