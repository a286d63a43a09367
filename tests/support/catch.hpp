#pragma once
// Catch2 2 and 3 under the same names. Tests include this file alone and write Approx or
// Catch::Approx; WithinAbs, WithinRel, ContainsSubstring, StartsWith, EndsWith, Equals and Message
// of Catch::Matchers; GENERATE with values, range, from_range and table; and SKIP("reason"), which
// ends a test case that cannot run here.

#include <string>

#if __has_include(<catch2/catch_test_macros.hpp>)

#include <catch2/catch_approx.hpp>
#include <catch2/catch_message.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <catch2/matchers/catch_matchers_all.hpp>

using Catch::Approx;

#else

#include <catch2/catch.hpp>

namespace Catch {
using Catch::Detail::Approx;
namespace Matchers {
inline auto ContainsSubstring(const std::string& text,
                              CaseSensitive::Choice caseSensitivity = CaseSensitive::Yes) {
    return Contains(text, caseSensitivity);
}
}  // namespace Matchers
}  // namespace Catch

#endif

#ifndef SKIP  // Catch2 before 3.3
#define SKIP(...)          \
    do {                   \
        WARN(__VA_ARGS__); \
        return;            \
    } while (false)
#endif
