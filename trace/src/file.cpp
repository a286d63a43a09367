// Plain descriptors, since only they can be synced.

#include "file.hpp"

#include <glassgrad/tensor/error.hpp>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glassgrad::detail {
namespace {

struct Place {
    std::string_view op;
    const std::string& path;

    [[noreturn]] void fail(std::string_view problem) const {
        throw FileError(std::string(op) + ": " + path + ": " + std::string(problem));
    }
    [[noreturn]] void fail_errno(std::string_view action, int code) const {
        fail(std::string(action) + ": " + std::generic_category().message(code));
    }
};

class Descriptor {
  public:
    explicit Descriptor(int value) noexcept : value_(value) {}
    ~Descriptor() {
        if (value_ >= 0) ::close(value_);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    bool is_open() const noexcept { return value_ >= 0; }
    int get() const noexcept { return value_; }
    int close() noexcept { return ::close(std::exchange(value_, -1)); }

  private:
    int value_;
};

std::string folder_of(const std::string& path) {
    const auto slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

/// Removes a file of ours unless told that it has its final name.
class Leftover {
  public:
    explicit Leftover(std::string path) : path_(std::move(path)) {}
    ~Leftover() {
        if (!path_.empty()) ::unlink(path_.c_str());
    }
    Leftover(const Leftover&) = delete;
    Leftover& operator=(const Leftover&) = delete;
    void keep() noexcept { path_.clear(); }

  private:
    std::string path_;
};

void write_all(const Place& place, int file, std::string_view content) {
    while (!content.empty()) {
        const ssize_t count = ::write(file, content.data(), content.size());
        if (count < 0) {
            if (errno == EINTR) continue;
            place.fail_errno("cannot write", errno);
        }
        content.remove_prefix(static_cast<std::size_t>(count));
    }
}

}  // namespace

std::string read_file(std::string_view op, const std::string& path) {
    const Place place{op, path};
    // O_NONBLOCK: opening a pipe that nobody writes to must not wait.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file.is_open()) place.fail_errno("cannot open", errno);
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) place.fail_errno("cannot read", errno);
    if (!S_ISREG(info.st_mode)) place.fail("not a regular file");
    std::string content(static_cast<std::size_t>(info.st_size), '\0');
    std::size_t filled = 0;
    while (filled < content.size()) {
        const ssize_t count = ::read(file.get(), content.data() + filled, content.size() - filled);
        if (count < 0) {
            if (errno == EINTR) continue;
            place.fail_errno("cannot read", errno);
        }
        if (count == 0) break;
        filled += static_cast<std::size_t>(count);
    }
    content.resize(filled);
    return content;
}

void write_file(std::string_view op, const std::string& path, std::string_view content) {
    const Place place{op, path};
    const std::string aside = path + ".tmp." + std::to_string(::getpid());
    Descriptor file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file.is_open()) place.fail_errno("cannot create a file beside it", errno);
    Leftover leftover(aside);
    write_all(place, file.get(), content);
    if (::fsync(file.get()) != 0) place.fail_errno("cannot sync", errno);
    if (file.close() != 0) place.fail_errno("cannot close", errno);
    if (::rename(aside.c_str(), path.c_str()) != 0) place.fail_errno("cannot rename to it", errno);
    leftover.keep();
    const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    // Some file systems cannot sync a folder; the rename itself has succeeded.
    if (folder.is_open() && ::fsync(folder.get()) != 0 && errno != EINVAL) {
        place.fail_errno("cannot sync its folder", errno);
    }
}

}  // namespace glassgrad::detail
