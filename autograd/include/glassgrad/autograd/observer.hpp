#pragma once
// Those who watch: recorders, watchdogs, profilers. They see every op forward and backward; when
// there are none, an op pays one branch.

#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/scope.hpp>

#include <cstdint>
#include <span>

namespace glassgrad {

/// An op was computed (and recorded, if `output.requires_grad()`).
struct ForwardEvent {
    const OpRow& row;
    const Attributes& attributes;
    std::span<const Variable> inputs;
    const Variable& output;
    std::span<const Variable> saved;  ///< what the backward pass will read; empty if not recorded
    const ScopeNode* scope;
    bool recomputed = false;  ///< a backward pass runs a checkpoint's function again
};

/// A sweep computed the gradients of an op's inputs.
struct BackwardEvent {
    const OpRow& row;
    std::int64_t output_id;               ///< id() of the op's result, so of its ForwardEvent
    const Variable& gradient;             ///< gy, the whole gradient of the result
    std::span<const Variable> saved;      ///< values read, under the ids that they had in forward
    std::span<const Variable> gradients;  ///< gx of each input; undefined where none is wanted
    std::span<const std::int64_t> input_ids;  ///< id() of each input; 0 where none is wanted
    const ScopeNode* scope;                   ///< where the op was computed forward
};

/// Several gradients of one value were added up, in this order.
struct AccumulateEvent {
    std::int64_t of;  ///< id() of the value
    std::span<const Variable> contributions;
    const Variable& total;
    const ScopeNode* scope;
};

/// The whole gradient of a value is known: after the sum and the hooks.
struct GradientEvent {
    std::int64_t of;  ///< id() of the value
    const Variable& gradient;
};

/// An op ran, forward or backward: for those who measure. Times are std::chrono::steady_clock's, in
/// nanoseconds. Forward, it is the time of the kernels; an op that names its value without saying
/// how it is computed began when the one before it ended. Backward, it is the time of the rule and
/// of adding its gradients up.
struct RunEvent {
    enum class Pass { forward, backward };

    const OpRow& row;
    Pass pass;
    std::int64_t output_id;  ///< id() of the op's result
    std::int64_t begin;
    std::int64_t end;
    /// Of the inputs and the result, or of the gradient that arrived and those that were given.
    std::int64_t bytes;
    const ScopeNode* scope;   ///< where the op was computed forward
    bool recomputed = false;  ///< a backward pass runs a checkpoint's function again
};

class Observer {
  public:
    virtual ~Observer() = default;
    /// Whether ops are recorded as their named steps, and values shown. One that says no gets
    /// `on_run` alone, and unless somebody else says yes, what runs is what runs when nobody looks:
    /// fused kernels in both passes. Asked once, when the watching begins.
    virtual bool wants_steps() const { return true; }
    virtual void on_run(const RunEvent&) {}
    virtual void on_forward(const ForwardEvent&) {}
    virtual void on_backward(const BackwardEvent&) {}
    virtual void on_accumulate(const AccumulateEvent&) {}
    virtual void on_gradient(const GradientEvent&) {}
};

/// `observer` sees what this thread does for the lifetime of the object.
class Observing {
  public:
    explicit Observing(Observer& observer);
    ~Observing();
    Observing(const Observing&) = delete;
    Observing& operator=(const Observing&) = delete;

  private:
    Observer* observer_;
};

namespace detail {

/// All who watch, and of these, those who want steps.
inline constinit thread_local int watcher_count = 0;
inline constinit thread_local int observer_count = 0;
/// True inside a pullback of a pass that is not recorded: its inner steps are not ops of their own.
inline constinit thread_local bool observers_paused = false;

/// True while a checkpoint's function runs again.
inline constinit thread_local bool recomputing = false;

/// Observers that were there when a checkpoint's function began to run again, and whether its
/// first run was watched: see `watched`.
inline constinit thread_local int observers_before = 0;
inline constinit thread_local bool watched_first = false;
/// Whether an op that has a form for observers takes it. Inside a checkpoint's second run it is
/// what it was in the first, which has to give the same bits.
inline bool watched() noexcept { return watched_first || observer_count > observers_before; }

inline bool observed() noexcept { return watcher_count > 0 && !observers_paused; }
/// Whether values have to be shown, so that a backward pass runs on Variables.
inline bool values_observed() noexcept { return observer_count > 0 && !observers_paused; }

/// Those who want steps.
std::span<Observer* const> observers() noexcept;

std::int64_t clock_now() noexcept;

/// Notes when an op's value was computed, while somebody watches.
class OpClock {
  public:
    explicit OpClock(const OpRow& row) noexcept : row_(observed() ? &row : nullptr) {
        if (row_) [[unlikely]]
            begin_ = clock_now();
    }
    ~OpClock() {
        if (row_) [[unlikely]]
            note();
    }
    OpClock(const OpClock&) = delete;
    OpClock& operator=(const OpClock&) = delete;

  private:
    void note() const noexcept;

    const OpRow* row_;
    std::int64_t begin_ = 0;
};

/// Of the rule of `node`, for a gradient that arrived; `begin` is when it was called.
void notify_backward_run(const Node& node, std::int64_t begin);
void notify_forward(const OpRow& row, const Attributes& attributes,
                    std::span<const Variable> inputs, const Variable& output);

}  // namespace detail
}  // namespace glassgrad
