#pragma once
// Where time goes: what each op and each layer took, forward and backward, and when.

#include <glassgrad/autograd/observer.hpp>

#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace glassgrad {

struct ProfileCost {
    std::int64_t calls = 0;
    std::int64_t nanoseconds = 0;
    std::int64_t bytes = 0;  ///< of inputs and results; backward, of gradients that came and went
};

/// An op by its name, or a layer by its path (`blocks.1.self_attn`; empty: all).
struct ProfileRow {
    std::string name;
    ProfileCost forward;  ///< with what a checkpoint computes again
    ProfileCost backward;

    std::int64_t nanoseconds() const noexcept { return forward.nanoseconds + backward.nanoseconds; }
};

struct ProfileOptions {
    /// Most runs that are kept for `chrome_trace`, 64 bytes each. Sums go on beyond.
    std::size_t max_runs = 1'000'000;
};

/// Measures what the threads run on which an `Observing` of it lives. It wants no steps, so the ops
/// that are measured are those that run when nobody looks, fused ones as one.
///
///     Profile profile;
///     {
///         const Observing watch(profile);
///         backward(cross_entropy(model(ids), targets));
///     }
///     std::cout << profile.text();
///     profile.write_chrome_trace("step.json");
class Profile final : public Observer {
  public:
    explicit Profile(const ProfileOptions& options = {}) : options_(options) {}

    /// The slowest first.
    std::vector<ProfileRow> by_op() const;
    /// In the order of first use, a layer before those inside, whose costs it has as well.
    std::vector<ProfileRow> by_layer() const;
    /// Both as tables.
    std::string text() const;

    /// JSON for chrome://tracing and ui.perfetto.dev: a complete event for each run, inside one for
    /// each layer in which runs follow each other, inside one for the pass. Times in microseconds
    /// since the first run.
    std::string chrome_trace() const;
    /// Writes it beside `path`, syncs it and renames it. Throws FileError naming the path.
    void write_chrome_trace(const std::string& path) const;

    void clear();

    bool wants_steps() const override { return false; }
    void on_run(const RunEvent& event) override;

  private:
    struct Costs {
        ProfileCost forward;
        ProfileCost backward;
    };
    struct Run {
        const OpRow* row;
        const ScopeNode* scope;
        std::int64_t begin;
        std::int64_t end;
        std::int64_t bytes;
        std::int64_t output_id;
        int thread;
        RunEvent::Pass pass;
        bool recomputed;
    };

    ProfileOptions options_;
    mutable std::mutex mutex_;
    std::vector<Run> runs_;
    std::int64_t not_kept_ = 0;
    std::unordered_map<const OpRow*, Costs> ops_;
    std::unordered_map<const ScopeNode*, Costs> scopes_;  // without those inside
    std::vector<const ScopeNode*> order_;                 // of the scopes' first use
    std::vector<std::thread::id> threads_;
};

}  // namespace glassgrad
