#pragma once

#include <glassgrad/training/report.hpp>

#include <memory>

namespace glassgrad {

namespace detail {
class AppendFile;
}

struct RunFolderOptions {
    std::vector<std::string> command = {};  ///< that started the run, as run.json shows it
};

/// The folder of a run, with what it says about itself: `run.json` and `samples.txt`.
///
/// `run.json`: the version of glassgrad, and for each start of the run (the first one, and each
/// time that it was resumed) the time, command, process, host, and the header's facts.
/// `samples.txt`: each sample behind a line `=== step 500, 1234 bytes ===`. When a run resumes
/// after n steps, samples of later ones are cut. A start removes what killed processes have left of
/// texts in the folder. Throws FileError.
class RunFolder : public Reporter {
  public:
    /// Makes the folder, and those above it, if need be.
    explicit RunFolder(std::string folder, const RunFolderOptions& options = {});
    ~RunFolder() override;

    const std::string& folder() const noexcept { return folder_; }
    /// `FOLDER/name`
    std::string path(std::string_view name) const;

    void on_start(const RunHeader& header, std::int64_t first_step) override;
    void on_sample(std::int64_t step, std::string_view text) override;
    void on_save(std::int64_t step) override;

  private:
    std::string folder_;
    RunFolderOptions options_;
    std::unique_ptr<detail::AppendFile> samples_;
};

}  // namespace glassgrad
