#pragma once
// The elements of a tensor as JSON.

#include <glassgrad/tensor/detail/json_cursor.hpp>
#include <glassgrad/tensor/detail/json_writer.hpp>
#include <glassgrad/trace/document.hpp>

namespace glassgrad::detail {

void write_value(JsonWriter& out, const TraceTensor& tensor);
/// `shape` and `dtype` are those of the tensor. Throws JsonFailure.
TraceValue read_value(JsonCursor& in, const Shape& shape, DType dtype);

/// A number, or the text of one that is not finite.
void write_real(JsonWriter& out, double x);
double read_real(JsonCursor& in);
std::int64_t read_integer(JsonCursor& in);

}  // namespace glassgrad::detail
