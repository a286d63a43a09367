#pragma once
// From tables to verdicts and sentences.

#include "gradcheck_diagnosis.hpp"

#include <span>
#include <string>
#include <string_view>

namespace glassgrad::proof {

/// How grave a verdict is; larger is graver.
int gravity(Verdict verdict) noexcept;

/// The verdict on one slot, from its numbers alone.
GradcheckFinding judge(const Setting& setting, std::span<const Table> tables, std::size_t which,
                       bool second);

/// Report on a check that came to numbers. `second` accepts inputs that the gradient does not
/// depend on, as those of a linear op, if there is one that it does depend on.
GradcheckReport report_on(std::string_view op, const Setting& setting,
                          std::span<const Table> tables, std::span<const Breach> breaches,
                          bool second);

GradcheckReport report_on(std::string_view op, const Refusal& refusal);

/// Puts the text of a report together from its findings.
void write_text(std::string_view op, GradcheckReport& report, std::string_view headline = {});

}  // namespace glassgrad::proof
