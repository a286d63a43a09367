#include <glassgrad/tensor/detail/file.hpp>

#include "fail.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace glassgrad::detail {

namespace {

constexpr std::size_t largest_transfer = std::size_t{1} << 30;

[[noreturn]] void fail_system(const std::string& where, std::string_view what, int error = errno) {
    fail<FileError>("{}: {}: {}", where, what, std::generic_category().message(error));
}

void check_name(const std::string& where, const std::string& path) {
    if (path.empty()) fail<FileError>("{}the name of the file is empty", where);
    if (path.find('\0') != path.npos) {
        fail<FileError>("{}the name of the file has a NUL byte in it", where);
    }
}

template <class Call>
auto retried(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) result = call();
    return result;
}

void sync_folder(const std::string& where, const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    const int descriptor = retried([&] {
        return ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    });
    if (descriptor < 0) {
        if (errno == EACCES) return;  // a folder that may be written but not read
        fail_system(where, "cannot open its folder to sync it");
    }
    const int failed = retried([&] { return ::fsync(descriptor); });
    const int error = errno;
    ::close(descriptor);
    if (failed != 0 && error != EINVAL) fail_system(where, "cannot sync its folder", error);
}

}  // namespace

InputFile::InputFile(const std::string& op, const std::string& path) : where_(op + ": " + path) {
    check_name(op + ": ", path);
    // Not blocking, so that a pipe without a writer is refused below instead of waited for.
    descriptor_ = retried([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
    if (descriptor_ < 0) fail_system(where_, "cannot open");
    struct stat status {};
    const int failed = ::fstat(descriptor_, &status);
    const int error = errno;
    if (failed != 0 || !S_ISREG(status.st_mode)) {
        ::close(descriptor_);
        if (failed != 0) fail_system(where_, "cannot look at it", error);
        fail<FileError>("{}: not a regular file{}", where_,
                        S_ISDIR(status.st_mode) ? " but a directory" : "");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

void InputFile::read(std::uint64_t offset, std::byte* out, std::size_t count) const {
    while (count > 0) {
        const std::size_t wanted = std::min(count, largest_transfer);
        const ssize_t got =
            retried([&] { return ::pread(descriptor_, out, wanted, static_cast<off_t>(offset)); });
        if (got < 0) fail_system(where_, "cannot read");
        if (got == 0) fail<FileError>("{}: became shorter while it was read", where_);
        out += got;
        offset += static_cast<std::uint64_t>(got);
        count -= static_cast<std::size_t>(got);
    }
}

MappedFile::MappedFile(const std::string& op, const std::string& path)
    : file_(op, path), where_(op + ": " + path) {
    if (file_.size() == 0) return;
    const auto size = static_cast<std::size_t>(file_.size());
    void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file_.descriptor(), 0);
    if (memory == MAP_FAILED) fail_system(where_, "cannot map it into memory");
    bytes_ = {static_cast<const std::byte*>(memory), size};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::check() const {
    struct stat status {};
    if (::fstat(file_.descriptor(), &status) != 0) fail_system(where_, "cannot look at it");
    if (static_cast<std::uint64_t>(status.st_size) < bytes_.size()) {
        fail<FileError>("{}: became shorter while it was read", where_);
    }
}

void MappedFile::drop(std::span<const std::byte> part) const noexcept {
    static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto begin = static_cast<std::size_t>(part.data() - bytes_.data());
    const std::size_t first = (begin + page - 1) / page * page;
    const std::size_t last = (begin + part.size()) / page * page;
    if (first >= last) return;
    (void)::madvise(const_cast<std::byte*>(bytes_.data()) + first, last - first, MADV_DONTNEED);
}

OutputFile::OutputFile(const std::string& op, const std::string& path)
    : where_(op + ": " + path), path_(path) {
    check_name(op + ": ", path);
    struct stat status {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        fail<FileError>("{}: not a regular file{}", where_,
                        S_ISDIR(status.st_mode) ? " but a directory" : "");
    }
    if (exists) {
        std::error_code error;
        const std::filesystem::path target = std::filesystem::canonical(path, error);
        if (!error) path_ = target.string();
    }
    static std::atomic<unsigned> serial{0};
    do {
        temporary_ = fmt::format("{}.tmp.{}.{}", path_, ::getpid(), serial++);
        descriptor_ = retried([&] {
            return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        });
    } while (descriptor_ < 0 && errno == EEXIST);
    if (descriptor_ < 0) fail_system(where_, "cannot create a file beside it");
    if (exists) (void)::fchmod(descriptor_, status.st_mode & 07777);
}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::write(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    while (count > 0) {
        const std::size_t wanted = std::min(count, largest_transfer);
        const ssize_t done = retried([&] { return ::write(descriptor_, from, wanted); });
        if (done < 0) fail_system(where_, "cannot write");
        from += done;
        count -= static_cast<std::size_t>(done);
    }
}

void OutputFile::close() {
    const int descriptor = descriptor_;
    descriptor_ = -1;
    if (::close(descriptor) != 0 && errno != EINTR) fail_system(where_, "cannot close");
}

void OutputFile::reserve(std::uint64_t bytes) {
    if (bytes == 0) return;
    // Not posix_fallocate, which writes all the bytes where the system can't reserve.
    const int failed =
        retried([&] { return ::fallocate(descriptor_, 0, 0, static_cast<off_t>(bytes)); });
    if (failed == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return;
    fail_system(where_, fmt::format("cannot take room for {} bytes", bytes));
}

void OutputFile::sync() {
    if (retried([&] { return ::fsync(descriptor_); }) != 0) fail_system(where_, "cannot sync");
}

void OutputFile::commit() {
    sync();
    close();
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
        fail_system(where_, "cannot give the file its name");
    }
    temporary_.clear();
    sync_folder(where_, path_);
}

void sync_folder_of(const std::string& op, const std::string& path) {
    sync_folder(op + ": " + path, path);
}

}  // namespace glassgrad::detail
