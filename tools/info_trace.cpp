// A trace in one screen.

#include "info.hpp"
#include "output.hpp"

#include <glassgrad/trace.hpp>

#include <algorithm>
#include <map>
#include <vector>

namespace glassgrad::tools {
namespace {

constexpr std::size_t listed_records = 64;

std::string header_lines(const TraceDocument& trace) {
    const TraceHeader& header = trace.header;
    std::string text = fmt::format("trace glassgrad-trace {} by {} {}\n", printable(header.version),
                                   printable(header.producer), printable(header.producer_version));
    text += fmt::format("run {}, {}, step {}, seed {}, {}\n", printable(header.run.id),
                        printable(header.run.mode), header.run.step, header.run.seed,
                        name(header.run.default_dtype));
    for (const TraceLabels& labels : header.labels) {
        text +=
            fmt::format("{}: {}\n", printable(labels.name), count(labels.items.size(), "label"));
    }
    if (!trace.end.complete) {
        text +=
            fmt::format("incomplete: {}\n", trace.end.reason.empty() ? "no reason is given"
                                                                     : printable(trace.end.reason));
    }
    return text;
}

/// Values that the file holds, in words: `30 tensors: 12 activation, 15 grad, 3 param`.
std::string tensor_lines(const TraceDocument& trace) {
    static constexpr std::string_view roles[] = {"input", "param", "const", "activation",
                                                 "loss",  "grad",  "buffer"};
    std::map<std::string_view, std::size_t> by_role;
    std::size_t left_out = 0;
    std::size_t nonfinite = 0;
    for (const TraceTensor& tensor : trace.tensors) {
        ++by_role[roles[static_cast<std::size_t>(tensor.role)]];
        if (tensor.value.kind == TraceValue::Kind::none) ++left_out;
        if (tensor.stats && tensor.stats->finite() < tensor.stats->n) ++nonfinite;
    }
    std::vector<std::string> parts;
    parts.reserve(by_role.size());
    for (const auto& [role, n] : by_role) parts.push_back(fmt::format("{} {}", n, role));
    std::string text = count(trace.tensors.size(), "tensor");
    if (!parts.empty()) text += fmt::format(": {}", fmt::join(parts, ", "));
    if (left_out > 0) text += fmt::format("; {} without values", left_out);
    if (nonfinite > 0) text += fmt::format("; {} with NaN or infinity", nonfinite);
    return text + "\n";
}

std::string op_lines(const TraceDocument& trace) {
    std::map<std::string_view, std::size_t> forward;
    std::map<std::string_view, std::size_t> backward;
    std::size_t forward_count = 0;
    for (const TraceOp& op : trace.ops) {
        ++(op.pass == TracePass::forward ? forward : backward)[op.op];
        if (op.pass == TracePass::forward) ++forward_count;
    }
    const auto list = [](const auto& ops) {
        std::vector<std::string> parts;
        parts.reserve(ops.size());
        for (const auto& [name, n] : ops) {
            parts.push_back(n == 1 ? printable(name) : fmt::format("{} {}x", printable(name), n));
        }
        return fmt::format("{}", fmt::join(parts, ", "));
    };
    std::string text = fmt::format("{}: {} forward, {} backward\n", count(trace.ops.size(), "op"),
                                   forward_count, trace.ops.size() - forward_count);
    if (!forward.empty()) text += fmt::format("  forward: {}\n", list(forward));
    if (!backward.empty()) text += fmt::format("  backward: {}\n", list(backward));
    return text;
}

std::string step_lines(const TraceDocument& trace) {
    std::string text;
    const std::size_t n = std::min(trace.ops.size(), listed_records);
    for (std::size_t i = 0; i < n; ++i) {
        const TraceOp& op = trace.ops[i];
        text += fmt::format("o{:<4} {:<20}", i, printable(op.op));
        for (const TracePort& port : op.out) {
            const TraceTensor& out = trace.tensors[static_cast<std::size_t>(port.tensor)];
            text += fmt::format(" {} {}", printable(out.key), to_string(out.shape));
        }
        text += "\n";
    }
    if (n < trace.ops.size()) text += fmt::format("... {} more\n", trace.ops.size() - n);
    return text;
}

std::string diagnostic_lines(const TraceDocument& trace) {
    static constexpr std::string_view severities[] = {"info", "warning", "error"};
    std::string text;
    const std::size_t n = std::min(trace.diagnostics.size(), listed_records);
    for (std::size_t i = 0; i < n; ++i) {
        const TraceDiagnostic& one = trace.diagnostics[i];
        text += fmt::format("{} {}", severities[static_cast<std::size_t>(one.severity)],
                            printable(one.code));
        if (one.op != no_record) {
            text += fmt::format(" in o{} {}", one.op,
                                printable(trace.ops[static_cast<std::size_t>(one.op)].op));
        }
        if (one.tensor != no_record) {
            text += fmt::format(" {}",
                                printable(trace.tensors[static_cast<std::size_t>(one.tensor)].key));
        }
        if (!one.note.empty()) text += fmt::format(": {}", printable(one.note));
        text += "\n";
    }
    if (n < trace.diagnostics.size()) {
        text += fmt::format("... {} more\n", trace.diagnostics.size() - n);
    }
    return text;
}

}  // namespace

std::string describe_trace(const std::string& path) {
    const TraceDocument trace = read_trace(path);
    return header_lines(trace) + tensor_lines(trace) + op_lines(trace) + step_lines(trace) +
           diagnostic_lines(trace);
}

}  // namespace glassgrad::tools
