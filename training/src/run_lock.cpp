#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/training/run_lock.hpp>

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace glassgrad {
namespace {

[[noreturn]] void fail_system(std::string_view folder, std::string_view what, int error = errno) {
    throw FileError(
        fmt::format("RunLock: {}: {}: {}", folder, what, std::generic_category().message(error)));
}

/// The number in the lock file; nothing while it is being written.
std::optional<pid_t> holder(int descriptor) {
    std::array<char, 32> text{};
    const ssize_t size = ::pread(descriptor, text.data(), text.size(), 0);
    pid_t process = 0;
    if (size <= 0) return std::nullopt;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + size, process);
    if (error != std::errc{} || *stop != '\n' || process < 1) return std::nullopt;
    return process;
}

[[noreturn]] void refuse(const std::string& folder, int descriptor) {
    // The process that has the lock writes its number in the next moment; until then the file has
    // that of an earlier one, which is gone.
    std::optional<pid_t> process;
    for (int tries = 0; tries < 100; ++tries) {
        process = holder(descriptor);
        if (process && (::kill(*process, 0) == 0 || errno != ESRCH)) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::close(descriptor);
    throw FileError(fmt::format("RunLock: {}: {} is working in this folder", folder,
                                process ? fmt::format("process {}", *process) : "another process"),
                    "wait for it, stop it, or choose another folder");
}

void write_number(const std::string& folder, int descriptor) {
    const std::string text = fmt::format("{}\n", ::getpid());
    ssize_t done = -1;
    if (::ftruncate(descriptor, 0) == 0) {
        do {
            done = ::pwrite(descriptor, text.data(), text.size(), 0);
        } while (done < 0 && errno == EINTR);
    }
    if (done == static_cast<ssize_t>(text.size())) return;
    const int error = done < 0 ? errno : ENOSPC;
    ::close(descriptor);
    fail_system(folder, "cannot write its lock", error);
}

}  // namespace

RunLock::RunLock(const std::string& folder) {
    if (folder.empty()) throw FileError("RunLock: the name of the folder is empty");
    std::error_code error;
    if (std::filesystem::create_directories(folder, error)) {
        detail::sync_folder_of("RunLock", folder);
    }
    if (error) fail_system(folder, "cannot make this folder", error.value());
    const std::string path = folder + "/lock";
    do {
        descriptor_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) fail_system(folder, "cannot open its lock");
    int failed = 0;
    do {
        failed = ::flock(descriptor_, LOCK_EX | LOCK_NB);
    } while (failed != 0 && errno == EINTR);
    if (failed != 0 && errno == EWOULDBLOCK) refuse(folder, descriptor_);
    if (failed != 0) {
        const int reason = errno;
        ::close(descriptor_);
        fail_system(folder, "cannot lock it", reason);
    }
    write_number(folder, descriptor_);
}

RunLock::~RunLock() { ::close(descriptor_); }

void probe_folder(const std::string& folder, const ProbeOptions& options) {
    detail::OutputFile file("probe_folder", folder + "/probe.safetensors");
    file.reserve(options.bytes);
    const std::array<std::byte, 4096> block{};
    file.write(block.data(), block.size());
    file.sync();
}

}  // namespace glassgrad
