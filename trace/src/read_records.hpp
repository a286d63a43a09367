#pragma once
// Each kind of record from JSON. Members come in any order; unknown ones are skipped. Throws
// JsonFailure.

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/trace/document.hpp>

#include <string>
#include <vector>

namespace glassgrad::detail {

TraceRun read_run(JsonCursor& in);
TraceCapture read_capture(JsonCursor& in);
std::vector<TraceLabels> read_labels(JsonCursor& in);
std::vector<TraceAxisLabels> read_axis_labels(JsonCursor& in);
std::vector<TraceDimension> read_dimensions(JsonCursor& in);
std::vector<TraceOpDefinition> read_definitions(JsonCursor& in);

/// `place` is where the record will stand, which its id must say.
TraceScope read_scope(JsonCursor& in, std::size_t place);
TraceTensor read_tensor(JsonCursor& in, std::size_t place);
TraceOp read_op(JsonCursor& in, std::size_t place);
TraceDiagnostic read_diagnostic(JsonCursor& in);

}  // namespace glassgrad::detail
