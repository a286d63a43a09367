// Every function refuses an undefined tensor as any operand, with an error and nothing worse.

#include "support/catch.hpp"
#include "support/throws.hpp"
#include "tensor/support/calls.hpp"

#include <set>

using namespace glassgrad;
using namespace glassgrad::testing;
using glassgrad_tests::text_of;
using nlohmann::json;

TEST_CASE("every function refuses an undefined tensor in any place") {
    const json file = load_json("numpy_cases.json");
    std::set<std::string> seen;
    for (const json& item : file["cases"]) {
        const std::string name = item["f"];
        if (item["a"].empty() || !seen.insert(name).second) continue;
        for (std::size_t place = 0; place < item["a"].size(); ++place) {
            for (const DType other : {f32, f64, i64, boolean}) {
                Operands operands(item["a"].size(), ones({2, 3}, other));
                operands[place] = Tensor();
                INFO(name << ", operand " << place << ", others " << glassgrad::name(other));
                const std::string text =
                    text_of<Error>([&] { calls().at(name)(operands, item["o"]); });
                CHECK(text.find("undefined (default-constructed or moved from)") != text.npos);
                CHECK(text.substr(0, 7) != "another");
            }
        }
    }
    CHECK(seen.size() > 45);
}
