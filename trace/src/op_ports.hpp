#pragma once
// The names of what an op reads.

#include <glassgrad/trace/document.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad::detail {

/// The name under which `tensor` went into or came out of the op `of`, else `s` and `place`.
std::string saved_name(const TraceOp& of, std::int64_t tensor, std::size_t place);

}  // namespace glassgrad::detail
