#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace glassgrad {

namespace detail {
class MappedFile;
}

struct CorpusOptions {
    /// Takes the bytes as they are: no UTF-8 is asked for and no mark is left out.
    bool any_bytes = false;
};

/// A text file seen as memory: what isn't read is never loaded. Nothing is changed in it (line ends
/// stay as they are, a NUL is a character); only a byte order mark at its start is left out.
/// A file must not become shorter while it is in use: the system ends the program then.
class Corpus {
  public:
    /// Throws FileError, before anything is trained on it, for a file that cannot be read, is
    /// empty, is UTF-16 or UTF-32 (by its mark, or by a NUL in every other byte), or is not UTF-8
    /// (with the first byte that isn't).
    explicit Corpus(const std::string& path, const CorpusOptions& options = {});
    ~Corpus();
    Corpus(Corpus&&) noexcept;
    Corpus& operator=(Corpus&&) noexcept;

    std::string_view text() const noexcept { return text_; }
    const std::string& path() const noexcept { return path_; }
    /// True when a byte order mark was left out.
    bool had_mark() const noexcept { return had_mark_; }

  private:
    std::string path_;
    std::unique_ptr<detail::MappedFile> file_;
    std::string_view text_;
    bool had_mark_ = false;
};

}  // namespace glassgrad
