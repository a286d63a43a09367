#pragma once
// A .npy from bytes that lie in a file, in memory or in a member of an archive.

#include "npy_header.hpp"

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace glassgrad::detail {

struct NpySource {
    std::string where;  ///< how errors start
    std::uint64_t size = 0;
    /// Reads go forward, but for the first 12 bytes, which may be read again.
    std::function<void(std::uint64_t offset, std::byte* out, std::size_t count)> read;
};

/// Throws FileError.
Tensor read_npy(const NpySource& source);

/// What np.save puts before the data of `x`.
std::string npy_head(const Tensor& x);

}  // namespace glassgrad::detail
