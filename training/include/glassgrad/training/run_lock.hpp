#pragma once
// A folder that one process works in.

#include <cstdint>
#include <string>

namespace glassgrad {

/// Holds a folder for this process, for as long as the object lives.
///
/// The folder is made if need be. The lock is the system's, on the file `lock` in it, so that of a
/// process that was killed is free at once. Throws FileError that names the process which has it.
class RunLock {
  public:
    explicit RunLock(const std::string& folder);
    ~RunLock();
    RunLock(const RunLock&) = delete;
    RunLock& operator=(const RunLock&) = delete;

  private:
    int descriptor_ = -1;
};

struct ProbeOptions {
    std::uint64_t bytes = 4096;  ///< that will be needed
};

/// Throws FileError, with the reason, if a file of that many bytes can't be made, written and
/// synced in the folder: read-only, full, over quota, not a folder. Nothing is left there.
void probe_folder(const std::string& folder, const ProbeOptions& options = {});

}  // namespace glassgrad
