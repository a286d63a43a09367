#pragma once
// Hugging Face's safetensors: a JSON header and the bytes of named tensors. Files are taken as
// hostile: every size is compared with the file before memory is asked for, every byte of the data
// belongs to exactly one tensor, and names are keys, never paths.

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {

/// Limits of files, read and written alike.
inline constexpr std::size_t safetensors_max_header_bytes = 100'000'000;
inline constexpr std::size_t safetensors_max_tensors = 65'536;  ///< and as many metadata
inline constexpr std::size_t safetensors_max_name_bytes = 4096;

struct SafetensorsFile {
    std::vector<std::pair<std::string, Tensor>> tensors;  ///< in the order of the header
    std::vector<std::pair<std::string, std::string>> metadata;
};

/// All tensors of a file.
///
///     F16 BF16 F32 -> f32   F64 -> f64   I8 I16 I32 I64 U8 U16 U32 U64 -> i64   BOOL -> boolean
///
/// Every bit of F32, F64, I64 and BOOL is kept, narrower types are widened exactly. Refused: what
/// the format forbids (holes, overlaps, bytes after the last tensor, a name that comes twice), a
/// U64 value of 2^63 or more, a BOOL byte other than 0 and 1, rank above 8 and, unlike the
/// reference reader, members of a tensor other than dtype, shape and data_offsets. Blanks before
/// the header's brace are let in, as there. Only a regular file is read; it must not become shorter
/// meanwhile. Throws FileError that names the file, the tensor and what is wrong.
SafetensorsFile load_safetensors(const std::string& path);

/// As `load_safetensors`, from the bytes of a file; errors call them `name`.
SafetensorsFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name);

/// Writes the tensors in their order. Names must be UTF-8, all different, at most 4,096 bytes. The
/// same arguments give the same bytes. They go to a file beside `path` that is synced and then
/// renamed, so `path` holds the old or the new tensors at any moment. Throws FileError, ValueError.
void save_safetensors(const std::string& path,
                      std::span<const std::pair<std::string, Tensor>> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata = {});

/// The bytes that `save_safetensors` writes.
std::string to_safetensors(std::span<const std::pair<std::string, Tensor>> tensors,
                           std::span<const std::pair<std::string, std::string>> metadata = {});

/// One file, opened and checked as a whole; tensors are read one at a time, when they are asked
/// for.
class SafetensorsReader {
  public:
    struct Info {
        std::string_view dtype;  ///< the format's name, `BF16`
        Shape shape;
        std::uint64_t bytes = 0;  ///< in the file
    };

    /// Throws as `load_safetensors`; errors begin with `op`.
    explicit SafetensorsReader(const std::string& path,
                               const std::string& op = "SafetensorsReader");
    ~SafetensorsReader();
    SafetensorsReader(SafetensorsReader&&) noexcept;
    SafetensorsReader& operator=(SafetensorsReader&&) noexcept;

    /// In the order of the header.
    const std::vector<std::string>& names() const noexcept;
    bool contains(std::string_view name) const noexcept;
    /// Throws FileError when there is no such tensor.
    Info info(std::string_view name) const;
    Tensor load(std::string_view name) const;
    const std::vector<std::pair<std::string, std::string>>& metadata() const noexcept;
    /// The bytes before the data: eight for the length of the header, and the header.
    std::string_view head() const noexcept;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace glassgrad
