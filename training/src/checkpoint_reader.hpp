#pragma once

#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/safetensors.hpp>
#include <glassgrad/training/checkpoint.hpp>

namespace glassgrad::detail {

/// A checkpoint that is whole and of a format to come.
class NewerFormat : public FileError {
    using FileError::FileError;
};

/// A checkpoint whose header has proved to be what was written.
class CheckpointReader {
  public:
    /// Throws FileError, NewerFormat.
    explicit CheckpointReader(const std::string& path);

    std::int64_t step() const noexcept { return checkpoint_.step; }
    /// Reads the tensors and compares each with its checksum.
    Checkpoint load() &&;

  private:
    void check_head() const;
    std::int64_t number(std::string_view name) const;
    const std::string& entry(std::string_view name) const;

    std::string where_;
    SafetensorsReader file_;
    Checkpoint checkpoint_;  ///< without tensors
};

}  // namespace glassgrad::detail
