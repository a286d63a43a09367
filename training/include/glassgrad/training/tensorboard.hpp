#pragma once
// Event files as TensorBoard reads them: records framed as TFRecords, each an `Event` message of
// TensorFlow's event.proto, written by hand. Scalars only.

#include <glassgrad/training/report.hpp>

#include <memory>

namespace glassgrad {

namespace detail {
class AppendFile;
}

/// CRC-32C (Castagnoli, RFC 3720); that of the text 123456789 is 0xE3069283.
std::uint32_t crc32c(std::string_view bytes) noexcept;

struct TensorBoardOptions {
    /// Of the file's name, and of its events; empty or 0: the system's.
    std::string host = {};
    double wall_time = 0;
};

/// Writes loss, val_loss, lr, grad_norm and tokens_per_s of each step as scalars into a new file
/// `events.out.tfevents.<seconds>.<host>.<process>` in `folder`, which must exist.
///
/// A run that resumes writes a file of its own that tells TensorBoard to drop what earlier ones
/// have from that step on. Throws FileError.
class TensorBoardLog : public Reporter {
  public:
    explicit TensorBoardLog(std::string folder, const TensorBoardOptions& options = {});
    ~TensorBoardLog() override;

    const std::string& path() const noexcept { return path_; }  ///< empty before the start

    void on_start(const RunHeader& header, std::int64_t first_step) override;
    void on_step(const StepReport& report) override;
    void on_save(std::int64_t step) override;

  private:
    void begin(std::int64_t first_step);
    double now() const;

    std::string folder_;
    TensorBoardOptions options_;
    std::string path_;
    std::unique_ptr<detail::AppendFile> file_;
    std::optional<std::int64_t> tokens_;
};

}  // namespace glassgrad
