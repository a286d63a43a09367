#pragma once
// Files that grow by whole records while a run goes on, and are cut when it resumes from before
// their end.

#include <cstdint>
#include <string>
#include <string_view>

namespace glassgrad::detail {

/// Errors (FileError) read `op: path: what is wrong`.
class AppendFile {
  public:
    AppendFile(const std::string& op, const std::string& path);
    ~AppendFile();
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;

    /// All of the record, or on an error none of it; nothing is held back in this process.
    void write(std::string_view record);
    void sync();

  private:
    std::string where_;
    int descriptor_ = -1;
    std::int64_t size_ = 0;
};

/// True for a file to cut or to go on with; false where nothing has this name.
bool file_exists(const std::string& op, const std::string& path);

/// Replaces the content of the file as a whole, or leaves it as it was.
void replace_file(const std::string& op, const std::string& path, std::string_view content);

}  // namespace glassgrad::detail
