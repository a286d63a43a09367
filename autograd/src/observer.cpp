#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

namespace glassgrad {
namespace {

/// All, and those who want steps; the later ones last.
struct Lists {
    std::vector<Observer*> watchers;
    std::vector<Observer*> observers;
};
Lists& lists() {
    static thread_local Lists instance;
    return instance;
}

void count() {
    detail::watcher_count = static_cast<int>(lists().watchers.size());
    detail::observer_count = static_cast<int>(lists().observers.size());
}

void remove_last(std::vector<Observer*>& list, const Observer* observer) {
    const auto found = std::find(list.rbegin(), list.rend(), observer);
    if (found != list.rend()) list.erase(std::next(found).base());
}

/// When the value of the last op was computed, until the op is recorded.
struct Computed {
    const OpRow* row = nullptr;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};
constinit thread_local Computed computed_last;
/// When the last op that was seen ended.
constinit thread_local std::int64_t last_end = 0;

std::int64_t bytes_of(const Shape& shape, DType dtype) {
    return shape.numel() * static_cast<std::int64_t>(item_size(dtype));
}

void notify_run(const RunEvent& event) {
    last_end = event.end;
    const std::vector<Observer*> watching(lists().watchers);
    for (Observer* watcher : watching) watcher->on_run(event);
}

void notify_forward_run(const OpRow& row, std::span<const Variable> inputs,
                        const Variable& output) {
    Computed times = std::exchange(computed_last, {});
    if (times.row != &row) {
        times.end = detail::clock_now();
        times.begin = last_end == 0 ? times.end : last_end;
    }
    std::int64_t bytes = bytes_of(output.shape(), output.dtype());
    for (const Variable& x : inputs) {
        if (x.defined()) bytes += bytes_of(x.shape(), x.dtype());
    }
    notify_run({row, RunEvent::Pass::forward, output.id(), times.begin, times.end, bytes,
                current_scope(), detail::recomputing});
}

}  // namespace

Observing::Observing(Observer& observer) : observer_(&observer) {
    // What can fail comes first: nobody would take an observer off the lists again.
    const bool steps = observer_->wants_steps();
    lists().watchers.reserve(lists().watchers.size() + 1);
    if (steps) lists().observers.push_back(observer_);
    lists().watchers.push_back(observer_);
    last_end = detail::clock_now();
    count();
}

Observing::~Observing() {
    remove_last(lists().watchers, observer_);
    remove_last(lists().observers, observer_);
    count();
}

std::span<Observer* const> detail::observers() noexcept { return lists().observers; }

std::int64_t detail::clock_now() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void detail::OpClock::note() const noexcept { computed_last = {row_, begin_, clock_now()}; }

void detail::notify_backward_run(const Node& node, std::int64_t begin) {
    const std::int64_t end = clock_now();
    std::int64_t bytes = bytes_of(node.shape(), node.dtype());
    for (const NodePtr& input : node.inputs()) {
        if (input) bytes += bytes_of(input->shape(), input->dtype());
    }
    notify_run({*node.row, RunEvent::Pass::backward, node.id, begin, end, bytes, node.scope});
}

void detail::notify_forward(const OpRow& row, const Attributes& attributes,
                            std::span<const Variable> inputs, const Variable& output) {
    notify_forward_run(row, inputs, output);
    if (!values_observed()) return;
    std::vector<Variable> saved;
    if (output.requires_grad()) output.node()->list_saved(saved);
    const ForwardEvent event{row, attributes, inputs, output, saved, current_scope(), recomputing};
    const std::vector<Observer*> watching(lists().observers);
    for (Observer* observer : watching) observer->on_forward(event);
}

}  // namespace glassgrad
