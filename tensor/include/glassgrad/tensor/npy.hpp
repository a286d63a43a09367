#pragma once
// NumPy's array files. Files are taken as hostile: sizes are compared with the file before any
// memory is asked for, nothing in a header is evaluated, and pickles are refused unread.

#include <glassgrad/tensor/tensor.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace glassgrad {

inline constexpr std::size_t npy_max_header_bytes = std::size_t{1} << 20;

/// The array of a .npy file, versions 1.0 to 3.0, either order of axes and of bytes.
///
///     f2 f4 -> f32   f8 -> f64   i1 i2 i4 i8 u1 u2 u4 u8 -> i64   b1 -> boolean
///
/// Every bit of f4, f8, i8 and b1 is kept, narrower types are widened exactly. Refused: a u8 value
/// of 2^63 or more, a b1 byte other than 0 and 1, rank above 8, a header above 1 MiB, and, unlike
/// NumPy, bytes after the data and a key that stands twice. Only a regular file is read.
/// Throws FileError that names the file and what is wrong.
Tensor load_npy(const std::string& path);

/// As `load_npy`, from the bytes of a file; errors call them `name`.
Tensor parse_npy(std::span<const std::byte> bytes, std::string_view name);

/// The bytes that `save_npy` writes.
std::string to_npy(const Tensor& x);

/// Writes the bytes that `np.save` writes. They go to a file beside `path` that is synced and then
/// renamed, so `path` holds the old or the new array at any moment. Throws FileError.
void save_npy(const std::string& path, const Tensor& x);

}  // namespace glassgrad
