// Runs as events of Chrome's format, each inside its layers and its pass. Source: Google, "Trace
// Event Format".

#include <glassgrad/tensor/detail/file.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/trace/profile.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace glassgrad {
namespace {

using detail::JsonWriter;

/// Microseconds, exact.
std::string microseconds(std::int64_t nanoseconds) {
    return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

/// When something began, on which thread.
struct Span {
    std::int64_t begin;
    std::int64_t end;
    int thread;
};

struct Event {
    std::string_view name;
    std::string_view category;
    Span span;
    const ScopeNode* scope;   ///< null for a pass
    std::int64_t bytes = -1;  ///< of a run
    std::int64_t output_id = 0;
};

/// Puts runs into their pass and layers, which stand before what is in them.
class Nest {
  public:
    std::vector<Event> events;

    void add(std::string_view pass, const Event& run) {
        std::vector<const ScopeNode*> chain;
        for (const ScopeNode* each = run.scope; each && each->parent; each = each->parent) {
            chain.push_back(each);
        }
        std::reverse(chain.begin(), chain.end());
        if (!open_.empty() && (events[open_.front()].name != pass ||
                               events[open_.front()].span.thread != run.span.thread)) {
            open_.clear();
        }
        if (open_.empty()) open({pass, "pass", run.span, nullptr});
        std::size_t same = 0;
        while (same < chain.size() && same + 1 < open_.size() &&
               events[open_[same + 1]].scope == chain[same]) {
            ++same;
        }
        open_.resize(same + 1);
        for (; same < chain.size(); ++same) {
            open({chain[same]->name, "layer", run.span, chain[same]});
        }
        for (const std::size_t each : open_) {
            events[each].span.end = std::max(events[each].span.end, run.span.end);
        }
        events.push_back(run);
    }

  private:
    void open(const Event& event) {
        open_.push_back(events.size());
        events.push_back(event);
    }

    std::vector<std::size_t> open_;  ///< a pass, and layers from the outermost in
};

void write(JsonWriter& out, const Event& event, std::int64_t zero) {
    out.line();
    out.begin_object();
    out.name("name").text(event.name);
    out.name("cat").text(event.category);
    out.name("ph").text("X");
    out.name("ts").raw(microseconds(event.span.begin - zero));
    out.name("dur").raw(microseconds(event.span.end - event.span.begin));
    out.name("pid").number(std::int64_t{0});
    out.name("tid").number(std::int64_t{event.span.thread});
    if (event.bytes >= 0) {
        out.name("args").begin_object();
        out.name("scope").text(event.scope ? event.scope->path : std::string());
        out.name("bytes").number(event.bytes);
        out.name("id").number(event.output_id);
        out.end_object();
    }
    out.end_object();
}

}  // namespace

std::string Profile::chrome_trace() const {
    const std::lock_guard lock(mutex_);
    // An op that runs others ends after them.
    std::vector<Run> runs = runs_;
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
        if (a.thread != b.thread) return a.thread < b.thread;
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::int64_t zero = runs.empty() ? 0 : runs.front().begin;
    Nest nest;
    for (const Run& run : runs) {
        zero = std::min(zero, run.begin);
        const bool forward = run.pass == RunEvent::Pass::forward;
        const char* pass = !forward ? "backward" : run.recomputed ? "forward again" : "forward";
        nest.add(pass, {run.row->name,
                        forward ? "forward" : "backward",
                        {run.begin, run.end, run.thread},
                        run.scope,
                        run.bytes,
                        run.output_id});
    }

    JsonWriter out;
    out.begin_object();
    out.name("displayTimeUnit").text("ns");
    out.name("otherData").begin_object();
    out.name("runs_not_kept").number(not_kept_);
    out.end_object();
    out.name("traceEvents").begin_array();
    for (const Event& event : nest.events) write(out, event, zero);
    out.end_line();
    out.end_array();
    out.end_object();
    out.end_line();
    return out.take();
}

void Profile::write_chrome_trace(const std::string& path) const {
    const std::string json = chrome_trace();
    detail::OutputFile file("write_chrome_trace", path);
    file.write(json.data(), json.size());
    file.commit();
}

}  // namespace glassgrad
