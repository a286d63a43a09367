#pragma once
// Files as readers and writers of arrays and traces need them: regular ones only to read, and new
// ones that take their name when they are complete and on disk.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace glassgrad::detail {

/// A regular file, open to read. Errors (FileError) read `op: path: what is wrong`.
class InputFile {
  public:
    InputFile(const std::string& op, const std::string& path);
    ~InputFile();
    InputFile(const InputFile&) = delete;
    InputFile& operator=(const InputFile&) = delete;

    std::uint64_t size() const noexcept { return size_; }
    int descriptor() const noexcept { return descriptor_; }
    void read(std::uint64_t offset, std::byte* out, std::size_t count) const;

  private:
    std::string where_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
};

/// A regular file seen as memory, which need not be aligned to anything. A file that another
/// process shortens is refused by `check`; one that is shortened after that ends the program.
class MappedFile {
  public:
    MappedFile(const std::string& op, const std::string& path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    void check() const;
    /// The whole pages among these bytes leave memory; they come back when they are read.
    void drop(std::span<const std::byte> part) const noexcept;

  private:
    InputFile file_;
    std::string where_;
    std::span<const std::byte> bytes_;
};

/// A file beside `path` that `commit` syncs and renames to it; without a commit it is removed.
class OutputFile {
  public:
    OutputFile(const std::string& op, const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(const void* bytes, std::size_t count);
    /// Takes room for that many bytes; not every file system can.
    void reserve(std::uint64_t bytes);
    void sync();
    void commit();

  private:
    void close();

    std::string where_;
    std::string path_;  ///< where links lead
    std::string temporary_;
    int descriptor_ = -1;
};

/// Syncs the folder that `path` is in, so that the name itself is on disk.
void sync_folder_of(const std::string& op, const std::string& path);

}  // namespace glassgrad::detail
