#pragma once
// Whole files in and out, with the reason when it does not work.

#include <string>
#include <string_view>

namespace glassgrad::detail {

/// Throws FileError `op: path: reason`; only regular files are read.
std::string read_file(std::string_view op, const std::string& path);

/// Writes beside `path`, syncs, renames and syncs the folder. Throws FileError; nothing is left
/// behind then.
void write_file(std::string_view op, const std::string& path, std::string_view content);

}  // namespace glassgrad::detail
