#pragma once
// Files as readers and writers of arrays and traces need them: regular ones only to read, and new
// ones that take their name when they are complete and on disk.

#include <cstddef>
#include <cstdint>
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
    void read(std::uint64_t offset, std::byte* out, std::size_t count) const;

  private:
    std::string where_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
};

/// A file beside `path` that `commit` syncs and renames to it; without a commit it is removed.
class OutputFile {
  public:
    OutputFile(const std::string& op, const std::string& path);
    ~OutputFile();
    OutputFile(const OutputFile&) = delete;
    OutputFile& operator=(const OutputFile&) = delete;

    void write(const void* bytes, std::size_t count);
    void commit();

  private:
    void close();

    std::string where_;
    std::string path_;  ///< where links lead
    std::string temporary_;
    int descriptor_ = -1;
};

}  // namespace glassgrad::detail
