// From a recording to a document: names, keys, values within the limit, statistics, diagnostics.

#include "recording.hpp"

#include <glassgrad/trace/recorder.hpp>
#include <glassgrad/version.hpp>

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <unordered_set>
#include <utility>

namespace glassgrad {
namespace {

using detail::KeyKind;
using detail::RecordedTensor;

struct AxisNames {
    std::string tensor;
    std::vector<std::string> axes;
};

/// Gives each tensor a name and a key that no other has.
class Naming {
  public:
    explicit Naming(const detail::Recording& recording) : recording_(recording) {}

    void give(TraceTensor& record, const RecordedTensor& tensor,
              const std::vector<TraceTensor>& before) {
        if (tensor.of != no_record) {
            const TraceTensor& value = before[static_cast<std::size_t>(tensor.of)];
            record.name = value.name;
            record.key = tensor.kind == KeyKind::part
                             ? unique(fmt::format("{}:part{}", value.key, tensor.part))
                             : unique(value.key + ":grad");
            return;
        }
        const bool is_named = tensor.variable.defined() && !tensor.variable.name().empty();
        record.name = is_named ? tensor.variable.name() : std::string(tensor.fallback);
        const std::string& path = recording_.scopes[static_cast<std::size_t>(tensor.scope)].path;
        record.key = unique(path.empty() ? record.name : path + '/' + record.name);
    }

  private:
    /// `key`, or with the number of its occurrence, `key#2`.
    std::string unique(const std::string& key) {
        if (taken_.insert(key).second) return key;
        for (std::int64_t& occurrence = occurrences_[key];;) {
            occurrence = occurrence < 2 ? 2 : occurrence + 1;
            std::string candidate = fmt::format("{}#{}", key, occurrence);
            if (taken_.insert(candidate).second) return candidate;
        }
    }

    const detail::Recording& recording_;
    std::unordered_set<std::string> taken_;
    std::unordered_map<std::string, std::int64_t> occurrences_;
};

std::int64_t nonfinite(const TraceTensor& tensor) {
    return tensor.stats ? tensor.stats->n - tensor.stats->finite() : 0;
}

/// Position of the first element that is not finite.
std::vector<std::int64_t> first_nonfinite(const Tensor& x) {
    const auto find = [&]<class T>(T) {
        const T* values = x.data<T>();
        std::int64_t i = 0;
        while (i + 1 < x.numel() && std::isfinite(values[i])) ++i;
        return i;
    };
    std::int64_t flat = x.dtype() == f32 ? find(float{}) : find(double{});
    std::vector<std::int64_t> index(static_cast<std::size_t>(x.rank()));
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
        index[static_cast<std::size_t>(axis)] = flat % x.shape()[axis];
        flat /= x.shape()[axis];
    }
    return index;
}

}  // namespace

class Recorder::Impl {
  public:
    explicit Impl(RecorderOptions options) : options_(std::move(options)) {}

    TraceDocument document() const {
        TraceDocument trace;
        fill_header(trace.header);
        trace.scopes = recording.scopes;
        trace.ops = recording.ops;
        Naming naming(recording);
        for (std::size_t i = 0; i < recording.tensors.size(); ++i) {
            TraceTensor record = describe(recording.tensors[i], i);
            naming.give(record, recording.tensors[i], trace.tensors);
            trace.tensors.push_back(std::move(record));
        }
        for (const AxisNames& names : axes) name_axes(trace, names);
        find_births(trace);
        if (!recording.settled()) {
            trace.end = {.complete = false, .reason = "a backward pass did not end"};
        }
        return trace;
    }

    detail::Recording recording;
    std::optional<Observing> observing;
    std::vector<TraceLabels> labels;
    std::vector<TraceAxisLabels> axis_labels;
    std::vector<TraceDimension> dims;
    std::vector<AxisNames> axes;

  private:
    void fill_header(TraceHeader& header) const {
        header.producer_version = GLASSGRAD_VERSION;
        header.run.id = options_.id;
        header.run.mode = options_.mode;
        header.run.step = options_.step;
        header.run.seed = options_.seed;
        header.run.default_dtype = options_.default_dtype;
        header.capture.max_elements = options_.max_elements;
        header.capture.stats = options_.stats;
        for (const RecordedTensor& each : recording.tensors) {
            if (each.value.numel() > options_.max_elements) header.capture.values = "small";
        }
        header.labels = labels;
        header.axis_labels = axis_labels;
        header.dims = dims;
        header.opdefs = recording.definitions;
    }

    TraceTensor describe(const RecordedTensor& tensor, std::size_t place) const {
        TraceTensor record;
        record.role = tensor.role;
        record.dtype = tensor.value.dtype();
        record.shape = tensor.value.shape();
        record.op = tensor.op;
        record.grad = tensor.grad;
        const bool could_have = tensor.role != TraceRole::grad && is_floating(record.dtype);
        if (record.grad == grad_not_recorded && could_have && place < recording.swept) {
            record.grad = grad_no_path;
        }
        if (tensor.value.numel() <= options_.max_elements) {
            record.value = TraceValue(tensor.value);
        } else {
            record.value.why = fmt::format("more than {} elements", options_.max_elements);
            record.digest = tensor_digest(tensor.value);
        }
        if (options_.stats && is_floating(record.dtype)) record.stats = tensor_stats(tensor.value);
        return record;
    }

    void name_axes(TraceDocument& trace, const AxisNames& names) const {
        std::size_t found = 0;
        for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
            TraceTensor& tensor = trace.tensors[i];
            const std::int64_t of = recording.tensors[i].of;
            const TraceTensor& value =
                of == no_record ? tensor : trace.tensors[static_cast<std::size_t>(of)];
            if (value.name != names.tensor && value.key != names.tensor) continue;
            ++found;
            if (names.axes.size() == static_cast<std::size_t>(tensor.shape.rank())) {
                tensor.axes = names.axes;
            } else if (of == no_record) {
                warn(trace, "axes.rank", static_cast<std::int64_t>(i),
                     fmt::format("{} axes named, shape is {}", names.axes.size(),
                                 to_string(tensor.shape)));
            }
        }
        if (found == 0) {
            warn(trace, "axes.unused", no_record,
                 fmt::format("axes named for '{}', which was not recorded", names.tensor));
        }
    }

    static void warn(TraceDocument& trace, std::string code, std::int64_t tensor,
                     std::string note) {
        TraceDiagnostic one;
        one.code = std::move(code);
        one.severity = TraceSeverity::warning;
        one.tensor = tensor;
        one.note = std::move(note);
        trace.diagnostics.push_back(std::move(one));
    }

    /// Ops that made NaN or infinity out of finite inputs.
    void find_births(TraceDocument& trace) const {
        for (std::size_t id = 0; id < trace.ops.size(); ++id) {
            const TraceOp& op = trace.ops[id];
            const auto tensor = [&](const TracePort& port) -> const TraceTensor& {
                return trace.tensors[static_cast<std::size_t>(port.tensor)];
            };
            bool carried = false;
            for (const TracePort& port : op.in) carried = carried || nonfinite(tensor(port)) > 0;
            if (carried) continue;
            for (const TracePort& port : op.out) {
                if (nonfinite(tensor(port)) == 0) continue;
                const TraceStats& stats = *tensor(port).stats;
                TraceDiagnostic one;
                one.code = "nonfinite.born";
                one.severity = TraceSeverity::warning;
                one.op = static_cast<std::int64_t>(id);
                one.tensor = port.tensor;
                one.counts = {{"nan", stats.nan}, {"pinf", stats.pinf}, {"ninf", stats.ninf}};
                one.first =
                    first_nonfinite(recording.tensors[static_cast<std::size_t>(port.tensor)].value);
                one.note = "all inputs are finite";
                trace.diagnostics.push_back(std::move(one));
            }
        }
    }

    RecorderOptions options_;
};

Recorder::Recorder(RecorderOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
    start();
}
Recorder::~Recorder() = default;

void Recorder::start() {
    if (!impl_->observing) impl_->observing.emplace(impl_->recording);
}
void Recorder::stop() noexcept { impl_->observing.reset(); }
bool Recorder::recording() const noexcept { return impl_->observing.has_value(); }

void Recorder::label(std::string_view name, std::vector<std::string> items,
                     std::vector<std::string> axes) {
    std::erase_if(impl_->labels, [&](const TraceLabels& each) { return each.name == name; });
    impl_->labels.push_back({std::string(name), std::move(items)});
    for (std::string& axis : axes) {
        std::erase_if(impl_->axis_labels,
                      [&](const TraceAxisLabels& each) { return each.name == axis; });
        impl_->axis_labels.push_back({std::move(axis), std::string(name)});
    }
}

void Recorder::label_axes(std::string_view tensor, std::vector<std::string> axes) {
    impl_->axes.push_back({std::string(tensor), std::move(axes)});
}

void Recorder::dim(std::string_view name, std::int64_t size) {
    std::erase_if(impl_->dims, [&](const TraceDimension& each) { return each.name == name; });
    impl_->dims.push_back({std::string(name), size});
}

TraceDocument Recorder::document() const { return impl_->document(); }

}  // namespace glassgrad
