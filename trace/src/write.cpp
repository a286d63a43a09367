// The records as JSON, in the order that docs/trace-format.md lists their members.

#include "check.hpp"
#include "value_json.hpp"
#include "vocabulary.hpp"

#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/trace/json.hpp>

#include <cmath>

namespace glassgrad {
namespace detail {
namespace {

void write_id(JsonWriter& out, char letter, std::int64_t id) {
    if (id == no_record) {
        out.null();
    } else {
        out.text(letter + std::to_string(id));
    }
}

void write_texts(JsonWriter& out, const std::vector<std::string>& texts) {
    out.begin_array();
    for (const std::string& text : texts) out.text(text);
    out.end_array();
}

template <class Integer>
void write_integers(JsonWriter& out, const std::vector<Integer>& integers) {
    out.begin_array();
    for (const Integer integer : integers) out.number(integer);
    out.end_array();
}

void write_attribute(JsonWriter& out, const TraceAttributeValue& value) {
    switch (value.kind) {
        case TraceAttributeValue::Kind::integer: out.number(value.integer); break;
        case TraceAttributeValue::Kind::real: write_real(out, value.real); break;
        case TraceAttributeValue::Kind::flag: out.boolean(value.integer != 0); break;
        case TraceAttributeValue::Kind::text: out.text(value.text); break;
        case TraceAttributeValue::Kind::list:
            out.begin_array();
            for (const TraceAttributeValue& item : value.items) write_attribute(out, item);
            out.end_array();
            break;
    }
}

/// Tokens of a byte-level vocabulary need not be UTF-8: their bytes go beside a repaired text.
void write_labels(JsonWriter& out, const TraceLabels& labels) {
    out.name(labels.name).begin_array();
    for (const std::string& item : labels.items) {
        if (find_invalid_utf8(item) == std::string_view::npos) {
            out.text(item);
            continue;
        }
        out.begin_object();
        out.name("text").text(item);
        out.name("bytes").text(to_hex(item));
        out.end_object();
    }
    out.end_array();
}

void write_definition(JsonWriter& out, const TraceOpDefinition& definition) {
    out.name(definition.name).begin_object();
    out.name("v").number(definition.version);
    out.name("fwd").text(definition.forward);
    if (!definition.backward.empty()) out.name("bwd").text(definition.backward);
    if (!definition.holds.empty()) write_texts(out.name("holds"), definition.holds);
    out.end_object();
}

void write_run(JsonWriter& out, const TraceRun& run) {
    out.begin_object();
    out.name("id").text(run.id);
    out.name("mode").text(run.mode);
    out.name("step").number(run.step);
    out.name("seed").number(run.seed);
    out.name("default_dtype").text(word(dtype_words, run.default_dtype));
    if (run.threads) out.name("threads").number(*run.threads);
    if (!run.flags.empty()) write_texts(out.name("flags"), run.flags);
    out.end_object();
}

/// The members of the header, into an object that is open.
void write_header(JsonWriter& out, const TraceHeader& header, bool lines) {
    const auto member = [&](std::string_view name) -> JsonWriter& {
        if (!lines) out.line();
        return out.name(name);
    };
    member("format").text("glassgrad-trace");
    member("version").text("1.0");
    member("producer").begin_object();
    out.name("name").text(header.producer);
    out.name("version").text(header.producer_version);
    out.end_object();
    write_run(member("run"), header.run);
    member("capture").begin_object();
    out.name("values").text(header.capture.values);
    out.name("max_elements").number(header.capture.max_elements);
    out.name("stats").boolean(header.capture.stats);
    out.name("timing").boolean(header.capture.timing);
    out.end_object();
    if (!header.labels.empty()) {
        member("labels").begin_object();
        for (const TraceLabels& labels : header.labels) write_labels(out, labels);
        out.end_object();
    }
    if (!header.axis_labels.empty()) {
        member("axis_labels").begin_object();
        for (const TraceAxisLabels& axis : header.axis_labels) {
            out.name(axis.name).text(axis.labels);
        }
        out.end_object();
    }
    if (!header.dims.empty()) {
        member("dims").begin_object();
        for (const TraceDimension& dim : header.dims) out.name(dim.name).number(dim.size);
        out.end_object();
    }
    if (!header.opdefs.empty()) {
        member("opdefs").begin_object();
        for (const TraceOpDefinition& definition : header.opdefs) {
            if (!lines) out.line();
            write_definition(out, definition);
        }
        out.end_object();
    }
}

void write_scope(JsonWriter& out, const TraceScope& scope, std::int64_t id) {
    write_id(out.name("id"), 's', id);
    write_id(out.name("parent"), 's', scope.parent);
    out.name("name").text(scope.name);
    out.name("path").text(scope.path);
    out.name("kind").text(scope.kind);
    if (scope.layer) out.name("layer").number(*scope.layer);
}

/// Statistics of f32 tensors get the digits of an f32 where one can hold them.
void write_statistic(JsonWriter& out, double x, DType dtype) {
    const auto narrow = static_cast<float>(x);
    const bool fits = std::isfinite(narrow) && (narrow != 0 || x == 0);
    if (dtype == f32 && fits) {
        out.number(narrow);
    } else {
        write_real(out, x);
    }
}

void write_stats(JsonWriter& out, const TraceStats& stats, DType dtype) {
    out.begin_object();
    out.name("n").number(stats.n);
    out.name("nan").number(stats.nan);
    out.name("pinf").number(stats.pinf);
    out.name("ninf").number(stats.ninf);
    out.name("zero").number(stats.zero);
    if (stats.finite() > 0) {
        write_statistic(out.name("min"), stats.min, dtype);
        write_statistic(out.name("max"), stats.max, dtype);
        write_statistic(out.name("mean"), stats.mean, dtype);
        write_statistic(out.name("std"), stats.std, dtype);
        write_statistic(out.name("l2"), stats.l2, dtype);
    }
    out.end_object();
}

void write_tensor(JsonWriter& out, const TraceTensor& tensor, std::int64_t id) {
    write_id(out.name("id"), 't', id);
    out.name("name").text(tensor.name);
    out.name("key").text(tensor.key);
    out.name("role").text(word(role_words, tensor.role));
    out.name("dtype").text(word(dtype_words, tensor.dtype));
    out.name("shape").begin_array();
    for (const std::int64_t size : tensor.shape) out.number(size);
    out.end_array();
    if (!tensor.axes.empty()) write_texts(out.name("axes"), tensor.axes);
    write_id(out.name("op"), 'o', tensor.op);
    if (tensor.grad != grad_not_recorded) write_id(out.name("grad"), 't', tensor.grad);
    if (tensor.stats) write_stats(out.name("stats"), *tensor.stats, tensor.dtype);
    if (tensor.noise) write_real(out.name("noise"), *tensor.noise);
    if (!tensor.digest.empty()) out.name("digest").text(tensor.digest);
    write_value(out.name("value"), tensor);
}

void write_ports(JsonWriter& out, const std::vector<TracePort>& ports) {
    out.begin_array();
    for (const TracePort& port : ports) {
        out.begin_object();
        out.name("p").text(port.name);
        write_id(out.name("t"), 't', port.tensor);
        out.end_object();
    }
    out.end_array();
}

void write_costs(JsonWriter& out, const TraceOp& op) {
    if (!op.file.empty()) {
        out.name("src").begin_object();
        out.name("file").text(op.file);
        out.name("line").number(op.line);
        out.end_object();
    }
    if (op.start_ns || op.dur_ns) {
        out.name("time").begin_object();
        if (op.start_ns) out.name("start_ns").number(*op.start_ns);
        if (op.dur_ns) out.name("dur_ns").number(*op.dur_ns);
        out.end_object();
    }
    if (op.alloc || op.live) {
        out.name("mem").begin_object();
        if (op.alloc) out.name("alloc").number(*op.alloc);
        if (op.live) out.name("live").number(*op.live);
        out.end_object();
    }
    if (op.flops) write_real(out.name("flops"), *op.flops);
}

void write_op(JsonWriter& out, const TraceOp& op, std::int64_t id) {
    write_id(out.name("id"), 'o', id);
    out.name("seq").number(op.seq);
    out.name("pass").text(word(pass_words, op.pass));
    out.name("op").text(op.op);
    if (op.of != no_record) write_id(out.name("of"), 'o', op.of);
    write_id(out.name("scope"), 's', op.scope);
    write_ports(out.name("in"), op.in);
    write_ports(out.name("out"), op.out);
    out.name("attrs").begin_object();
    for (const TraceAttribute& attribute : op.attrs) {
        write_attribute(out.name(attribute.name), attribute.value);
    }
    out.end_object();
    out.name("saved").begin_array();
    for (const std::int64_t tensor : op.saved) write_id(out, 't', tensor);
    out.end_array();
    write_costs(out, op);
}

void write_diagnostic(JsonWriter& out, const TraceDiagnostic& diagnostic, std::int64_t) {
    out.name("code").text(diagnostic.code);
    out.name("severity").text(word(severity_words, diagnostic.severity));
    if (diagnostic.tensor != no_record) write_id(out.name("tensor"), 't', diagnostic.tensor);
    if (diagnostic.op != no_record) write_id(out.name("op"), 'o', diagnostic.op);
    if (!diagnostic.counts.empty()) {
        out.name("counts").begin_object();
        for (const TraceDimension& count : diagnostic.counts) {
            out.name(count.name).number(count.size);
        }
        out.end_object();
    }
    if (!diagnostic.first.empty()) write_integers(out.name("first"), diagnostic.first);
    if (!diagnostic.note.empty()) out.name("note").text(diagnostic.note);
}

void write_end(JsonWriter& out, const TraceDocument& trace) {
    out.name("complete").boolean(trace.end.complete);
    out.name("ops").number(static_cast<std::int64_t>(trace.ops.size()));
    out.name("tensors").number(static_cast<std::int64_t>(trace.tensors.size()));
    if (!trace.end.reason.empty()) out.name("reason").text(trace.end.reason);
}

template <class Record, class F>
void write_list(JsonWriter& out, std::string_view name, const std::vector<Record>& records,
                F&& write_record) {
    out.line();
    out.name(name).begin_array();
    for (std::size_t i = 0; i < records.size(); ++i) {
        out.line();
        out.begin_object();
        write_record(out, records[i], static_cast<std::int64_t>(i));
        out.end_object();
    }
    out.end_array();
}

template <class F>
void write_line(JsonWriter& out, std::string_view kind, F&& write_record) {
    out.new_text();
    out.begin_object();
    out.name("rec").text(kind);
    write_record();
    out.end_object();
    out.end_line();
}

void require_sound(const TraceDocument& trace) {
    const auto fault = find_fault(trace);
    if (!fault) return;
    throw ValueError("to_json: " + place(*fault) + ": " + fault->problem);
}

}  // namespace
}  // namespace detail

std::string to_json(const TraceDocument& trace) {
    using namespace detail;
    require_sound(trace);
    JsonWriter out;
    out.begin_object();
    write_header(out, trace.header, false);
    detail::write_list(out, "scopes", trace.scopes, write_scope);
    detail::write_list(out, "tensors", trace.tensors, write_tensor);
    detail::write_list(out, "ops", trace.ops, write_op);
    detail::write_list(out, "diagnostics", trace.diagnostics, write_diagnostic);
    out.line();
    out.name("end").begin_object();
    write_end(out, trace);
    out.end_object();
    out.end_line();
    out.end_object();
    out.end_line();
    return out.take();
}

std::string to_json_lines(const TraceDocument& trace) {
    using namespace detail;
    require_sound(trace);
    JsonWriter out;
    write_line(out, "header", [&] { write_header(out, trace.header, true); });
    std::int64_t id = 0;
    for (const TraceScope& scope : trace.scopes) {
        write_line(out, "scope", [&] { write_scope(out, scope, id++); });
    }
    // A tensor stands before the op that made it; those that no op made come first.
    std::size_t next = 0;
    const auto write_tensors_up_to = [&](std::int64_t op) {
        while (next < trace.tensors.size() && trace.tensors[next].op <= op) {
            write_line(out, "tensor", [&] {
                write_tensor(out, trace.tensors[next], static_cast<std::int64_t>(next));
            });
            ++next;
        }
    };
    write_tensors_up_to(no_record);
    id = 0;
    for (const TraceOp& op : trace.ops) {
        write_tensors_up_to(id);
        write_line(out, "op", [&] { write_op(out, op, id++); });
    }
    write_tensors_up_to(static_cast<std::int64_t>(trace.ops.size()));
    for (const TraceDiagnostic& diagnostic : trace.diagnostics) {
        write_line(out, "diag", [&] { write_diagnostic(out, diagnostic, 0); });
    }
    write_line(out, "end", [&] { write_end(out, trace); });
    return out.take();
}

}  // namespace glassgrad
