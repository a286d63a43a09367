#pragma once
// Checkpoints: all that a run needs to go on, in one file that is whole or not there. The format is
// described in docs/checkpoint-format.md.

#include <glassgrad/layers/module.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace glassgrad {

/// The format that `save_checkpoint` writes, and the newest that `load_checkpoint` reads.
inline constexpr std::int64_t checkpoint_format = 1;

/// A run after `step` steps.
struct Checkpoint {
    std::int64_t step = 0;
    /// `model.head.weight`, `optimizer.exp_avg.head.weight`, counters as i64.
    StateDict tensors = {};
    /// Configuration, versions, the best loss.
    std::vector<std::pair<std::string, std::string>> metadata = {};

    /// Adds a state, its names behind `part` and a dot.
    void add(std::string_view part, const StateDict& state);
    /// The state that was added as `part`; empty if none was.
    StateDict part(std::string_view part) const;
    /// A metadata entry, or nothing.
    std::optional<std::string> find(std::string_view name) const;
};

/// Writes a checkpoint beside `path`, syncs it and gives it its name: at any moment `path` holds
/// the old or the new one. The same checkpoint gives the same bytes. Throws FileError that names
/// the file and the reason; ValueError on a negative step, on metadata whose name begins with
/// `checkpoint.`, and on what `save_safetensors` refuses.
void save_checkpoint(const std::string& path, const Checkpoint& checkpoint);

/// The checkpoint in a file, once all of it has proved to be what was written: a changed bit
/// anywhere is a FileError. So is a newer format, by a text that names both versions.
Checkpoint load_checkpoint(const std::string& path);

struct CheckpointFolderOptions {
    std::int64_t keep_last = 3;
};
struct CheckpointSaveOptions {
    bool best = false;  ///< kept as best.safetensors as well, which no later save removes
};

/// The checkpoints of a run, `step-000420.safetensors`, and the best, `best.safetensors`.
///
/// One process saves at a time (RunLock).
class CheckpointFolder {
  public:
    struct Found {
        Checkpoint checkpoint;
        std::string path;
        std::vector<std::string> damaged;  ///< why others were passed over, `path: reason` each
    };

    /// Throws ValueError unless keep_last is positive.
    explicit CheckpointFolder(std::string folder, const CheckpointFolderOptions& options = {});

    /// Saves, and only then removes the checkpoints of earlier steps beyond `keep_last`; never the
    /// best, nor what this object has loaded or found damaged. What killed processes have left
    /// half-written is removed as well. Throws as `save_checkpoint`; all earlier checkpoints are
    /// whole then.
    void save(const Checkpoint& checkpoint, const CheckpointSaveOptions& options = {});

    /// The checkpoint of the last step, by the step in its content. Damaged ones stay where they
    /// are. Nothing if there is no checkpoint. Throws FileError when there are some and none is
    /// whole, or one is of a newer format.
    std::optional<Found> newest();
    /// As `newest`, of best.safetensors alone.
    std::optional<Found> best();

    /// For a run that finds the number in the checkpoint. Throws as the constructor.
    void set_keep_last(std::int64_t keep_last);

    const std::string& folder() const noexcept { return folder_; }
    std::string step_path(std::int64_t step) const;
    std::string best_path() const;

  private:
    void remove_old(std::int64_t step) const;

    std::string folder_;
    std::int64_t keep_last_ = 0;
    std::set<std::string> kept_;  ///< what was loaded, and what was found damaged
};

}  // namespace glassgrad
