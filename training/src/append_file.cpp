#include "append_file.hpp"

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/error.hpp>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glassgrad::detail {
namespace {

[[noreturn]] void fail_system(const std::string& where, const std::string& what, int error) {
    throw FileError(where + ": " + what + ": " + std::generic_category().message(error));
}

}  // namespace

AppendFile::AppendFile(const std::string& op, const std::string& path) : where_(op + ": " + path) {
    do {
        descriptor_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) fail_system(where_, "cannot open it to append", errno);
    struct stat status {};
    if (::fstat(descriptor_, &status) == 0) size_ = status.st_size;
}

AppendFile::~AppendFile() { ::close(descriptor_); }

void AppendFile::write(std::string_view record) {
    std::string_view left = record;
    while (!left.empty()) {
        const ssize_t done = ::write(descriptor_, left.data(), left.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) {
            const int error = errno;
            if (left.size() < record.size()) (void)!::ftruncate(descriptor_, size_);
            fail_system(where_, "cannot write", error);
        }
        left.remove_prefix(static_cast<std::size_t>(done));
    }
    size_ += static_cast<std::int64_t>(record.size());
}

void AppendFile::sync() {
    int failed = 0;
    do {
        failed = ::fsync(descriptor_);
    } while (failed != 0 && errno == EINTR);
    // What can't be synced, such as a pipe, is none of ours to keep.
    if (failed != 0 && errno != EINVAL && errno != EROFS) fail_system(where_, "cannot sync", errno);
}

bool file_exists(const std::string& op, const std::string& path) {
    std::error_code error;
    const bool exists = std::filesystem::exists(path, error);
    if (error) fail_system(op + ": " + path, "cannot look at it", error.value());
    return exists;
}

void replace_file(const std::string& op, const std::string& path, std::string_view content) {
    OutputFile file(op, path);
    file.write(content.data(), content.size());
    file.commit();
}

}  // namespace glassgrad::detail
