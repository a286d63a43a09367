#pragma once
// What killed processes have left of files that never got their names.

#include <functional>
#include <string>
#include <string_view>

namespace glassgrad::detail {

/// Removes `NAME.tmp.PID.N` from a folder for each NAME that `ours` takes, where the process is
/// gone. One with our own number is none that is being written: this thread would be writing it.
void remove_leftovers(const std::string& folder,
                      const std::function<bool(std::string_view name)>& ours);

}  // namespace glassgrad::detail
