#pragma once
// NumPy's archives of arrays: zip files whose members are .npy files. Archives are taken as
// hostile: names are keys and never paths, nothing is unpacked beyond what an array needs, and
// every member is held against the directory before it is read.

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {

/// Limits of archives.
inline constexpr std::size_t npz_max_members = 40'000;
inline constexpr std::size_t npz_max_name_bytes = 4096;

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

/// All arrays of an archive, in the order of its directory, under the names of their members
/// without
/// `.npy`. Members stored or deflated, ZIP64 or not; other members than .npy files are left out.
/// Elements become what `load_npy` makes of them.
///
/// Refused: bytes before the first member, members that share bytes, names that come twice or
/// differ between the directory and the member, other compression, encryption, a wrong checksum,
/// and a member that is longer than its array. A name is taken as it stands, `../x` too: no file is
/// made of it. Throws FileError that names the file, the member and what is wrong.
NamedArrays load_npz(const std::string& path);

/// As `load_npz`, from the bytes of a file; errors call them `name`.
NamedArrays parse_npz(std::span<const std::byte> bytes, std::string_view name);

struct NpzOptions {
    bool compress = false;  ///< deflated, as np.savez_compressed
};

/// Writes an archive that np.load reads. Names must be UTF-8, all different, at most 4,092 bytes.
/// The same arrays give the same bytes. They go to a file beside `path` that is synced and then
/// renamed. Throws FileError, ValueError.
void save_npz(const std::string& path, std::span<const std::pair<std::string, Tensor>> arrays,
              const NpzOptions& options = {});

/// The bytes that `save_npz` writes.
std::string to_npz(std::span<const std::pair<std::string, Tensor>> arrays,
                   const NpzOptions& options = {});

/// One archive, opened; arrays are read one at a time, when they are asked for, so that one that is
/// damaged or no array doesn't keep the others.
class NpzReader {
  public:
    /// Throws FileError when the directory is wrong.
    explicit NpzReader(const std::string& path);
    ~NpzReader();
    NpzReader(NpzReader&&) noexcept;
    NpzReader& operator=(NpzReader&&) noexcept;

    /// The arrays, without `.npy`.
    const std::vector<std::string>& names() const noexcept;
    /// Members that are no .npy files, by their whole names.
    const std::vector<std::string>& others() const noexcept;
    bool contains(std::string_view name) const noexcept;
    /// Throws FileError when there is no such array, or it is wrong.
    Tensor load(std::string_view name) const;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace glassgrad
