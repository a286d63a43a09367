#pragma once

#include <string_view>

namespace glassgrad {

/// The instructions that the kernels use: "baseline", "avx2" (with FMA) or "avx512", the best that
/// the processor has unless the environment variable GLASSGRAD_ISA names another at first use.
/// Throws ValueError for a name that isn't one of them or that the processor lacks.
std::string_view instruction_set();

}  // namespace glassgrad
