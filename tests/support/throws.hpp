#pragma once
// What a call throws, as text, so that a test can pin it.

#include <exception>
#include <string>

namespace glassgrad_tests {

/// The text of the E that `f` throws; "nothing thrown", or another type's text, named as such.
template <class E, class F>
std::string text_of(const F& f) {
    try {
        f();
    } catch (const E& error) {
        return error.what();
    } catch (const std::exception& error) {
        return std::string("another type: ") + error.what();
    }
    return "nothing thrown";
}

}  // namespace glassgrad_tests
