#pragma once
// The names of an op's inputs: those of its row, or from the formula of its gradients, where
// `ga = gy bᵀ; gb = aᵀ gy` has the inputs a and b.

#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/trace/document.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace glassgrad::detail {

/// The pieces between separators, without blanks around them; empty ones are left out.
std::vector<std::string> split(std::string_view text, char separator);

/// One name an input; x, or a and b, or x1, x2, … where the formula names none.
std::vector<std::string> input_names(const OpRow& row, std::size_t count);

/// The name under which `tensor` went into or came out of the op `of`, else `s` and `place`.
std::string saved_name(const TraceOp& of, std::int64_t tensor, std::size_t place);

}  // namespace glassgrad::detail
