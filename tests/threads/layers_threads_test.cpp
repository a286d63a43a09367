// Layers give the same bits for any number of threads.

#include "autograd/support/checks.hpp"
#include "support/threads.hpp"

#include <glassgrad/layers.hpp>

using namespace glassgrad;
using namespace glassgrad::testing;

TEST_CASE("a block gives the same bits for 1, 2 and 4 threads") {
    RandomState rng(18);
    TransformerBlock block(
        {.attention = {.d_model = 48,
                       .num_heads = 4,
                       .num_kv_heads = 2,
                       .dropout = 0.1,
                       .rotary = RotaryOptions{}},
         .feed_forward = {.d_model = 48, .d_ff = 96, .activation = Activation::silu, .gated = true},
         .dropout = 0.1},
        rng);
    const Variable x = parameter(rng.randn({3, 70, 48}, {.dtype = f32}), "x");
    const Mask mask = Mask::causal() & Mask::padding(less(rng.rand({3, 70}), full({}, 0.8, f64)));
    std::vector<Tensor> expected;
    for (const int count : {1, 2, 4}) {
        const Threads threads(count);
        seed_dropout(block, 5);
        const Variable y = block(x, {.mask = mask});
        std::vector<Variable> wanted = block.parameters();
        wanted.push_back(x);
        std::vector<Tensor> got{y.value()};
        for (const Variable& each : grad({sum(y * y)}, wanted)) got.push_back(each.value());
        if (expected.empty()) expected = got;
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], expected[i]));
    }
}
