#pragma once
// The directory of a zip archive, held against the members it speaks of. Stricter than unpackers
// are: one archive has one reading.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace glassgrad::detail {

struct ZipMember {
    std::string name;
    std::uint64_t packed = 0;  ///< bytes in the archive
    std::uint64_t size = 0;    ///< bytes when unpacked, as the directory says
    std::uint16_t method = 0;
    bool encrypted = false;
};

/// The members in the order of the directory. Throws FileError; its text starts with `where`.
std::vector<ZipMember> read_zip_directory(std::span<const std::byte> file,
                                          const std::string& where);

}  // namespace glassgrad::detail
