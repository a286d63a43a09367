#pragma once
// What is likely wrong with a gradient, told from the pattern over all elements and cotangents.

#include "gradcheck_compare.hpp"

#include <span>
#include <string>

namespace glassgrad::proof {

struct Diagnosis {
    GradFault fault = GradFault::unknown;
    std::string text;
};

/// For a table with wrong entries; `tables` holds those of all slots, `results` the function's
/// values. `second` words it for gradients of gradients.
Diagnosis diagnose(const Problem& problem, std::span<const Cotangent> cotangents,
                   std::span<const double> results, std::span<const Table> tables,
                   std::size_t which, bool second);

/// What a constant ratio analytic / numeric may come from: `2`, `1/4 (the size of axis 1 of x)`.
std::string explain_ratio(double ratio, const Problem& problem);

}  // namespace glassgrad::proof
