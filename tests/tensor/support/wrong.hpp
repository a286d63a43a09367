#pragma once
// Tables of wrong calls, each with the whole text that the caller gets.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <functional>
#include <string>
#include <vector>

namespace glassgrad::testing {

struct Wrong {
    std::function<void()> call;
    std::string text;
};

/// Each call throws an E with the text beside it.
template <class E>
void check_all(const std::vector<Wrong>& table) {
    for (const auto& [call, text] : table) {
        INFO(text);
        CHECK(message_of(call) == text);
        CHECK_THROWS_AS(call(), E);
    }
}

}  // namespace glassgrad::testing
