#pragma once
// The verbs of the command. Each returns the exit status; what it throws is printed as one
// sentence and gives exit_failure.

#include <string>

namespace glassgrad::tools {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failure = 1;  ///< unreadable or malformed input, or a failed write
inline constexpr int exit_usage = 2;

int info(const std::string& path);
int schema();
int version();

}  // namespace glassgrad::tools
