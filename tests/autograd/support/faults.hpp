#pragma once
// Derivatives that are wrong on purpose, as tables.

#include "autograd/support/checks.hpp"

namespace glassgrad::testing {

using In = std::span<const Variable>;

struct Fault {
    std::string what;
    std::vector<Variable> inputs;
    CheckedFunction f;
    GradFault fault;
    std::string text;
};

inline Variable named(const Tensor& value, const char* name) { return parameter(value, name); }

inline const Tensor x43 = uneven({4, 3});

/// Each is caught at the default settings, and named.
inline void expect_caught(const std::vector<Fault>& faults) {
    for (const Fault& each : faults) {
        INFO(each.what);
        const GradcheckReport report = gradcheck(each.f, each.inputs);
        INFO(report.text);
        CHECK(report.verdict == Verdict::failed);
        CHECK_FALSE(report);
        CHECK(name(report.fault) == name(each.fault));
        CHECK_THAT(report.text, Catch::Matchers::ContainsSubstring(each.text));
    }
}

}  // namespace glassgrad::testing
