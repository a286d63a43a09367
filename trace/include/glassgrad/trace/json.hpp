#pragma once
// Traces as JSON, format glassgrad-trace 1.0 (docs/trace-format.md): written so that every bit of
// every element survives, read so that nothing malformed gets in.

#include <glassgrad/trace/document.hpp>

#include <string>
#include <string_view>

namespace glassgrad {

/// The document form, one record a line. The same trace gives the same bytes. Throws ValueError
/// when records disagree (an id that does not exist, a value of another shape).
std::string to_json(const TraceDocument& trace);

/// The line form: each record a JSON text of its own, the header first.
std::string to_json_lines(const TraceDocument& trace);

/// Writes `to_json` (`to_json_lines` for a path that ends in .jsonl) beside `path`, syncs it and
/// renames it: `path` holds the old file or the whole new one. Throws FileError naming the path.
void write_trace(const std::string& path, const TraceDocument& trace);

/// Reads either form. Members it does not know are left out, so they do not survive a write.
/// Throws FileError `read_trace: PATH: line 3, column 14: tensors[2].value.data: ...`. A line form
/// that stops short is read up to there, with `end.complete` false.
TraceDocument read_trace(const std::string& path);

/// As `read_trace`, from memory.
TraceDocument parse_trace(std::string_view json);

/// The JSON Schema (draft 2020-12) of the document form.
std::string_view trace_schema() noexcept;

}  // namespace glassgrad
