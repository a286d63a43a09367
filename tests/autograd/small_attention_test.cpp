// Attention in one op, for few tokens, is that of its steps.

#include "autograd/support/special_values.hpp"

#include <algorithm>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

struct Names final : Observer {
    void on_forward(const ForwardEvent& event) override { all.emplace_back(event.row.name); }
    std::vector<std::string> all;
};

}  // namespace

TEST_CASE("a small call in one op has the bits of its steps, in both passes") {
    struct Sizes {
        std::int64_t queries, keys, width, value_width;
    };
    for (const Sizes& size : {Sizes{1, 1, 1, 1}, Sizes{1, 7, 3, 5}, Sizes{5, 3, 4, 2},
                              Sizes{8, 8, 8, 8}, Sizes{15, 16, 9, 17}, Sizes{7, 36, 16, 1}}) {
        for (int drawn = 0; drawn < 32; ++drawn) {
            const DType dtype = drawn % 2 == 0 ? f32 : f64;
            const bool causal = drawn / 2 % 2 == 0;
            const std::int64_t heads = drawn / 4 % 2 == 0 ? 0 : 3;
            const int wild = drawn / 8;  // of none, or in q, k or v
            const std::int64_t across = std::max<std::int64_t>(1, heads);
            std::vector<Tensor> x{
                uneven({2, size.queries, across * size.width}, -2, 2, 1).astype(dtype),
                uneven({2, size.keys, across * size.width}, -2, 2, 2).astype(dtype),
                uneven({2, size.keys, across * size.value_width}, -2, 2, 3).astype(dtype)};
            if (wild > 0) x[static_cast<std::size_t>(wild - 1)].set({1, -1, 0}, causal ? NaN : inf);
            const Variable cotangent(
                uneven({2, size.queries, across * size.value_width}, -2, 2, 4).astype(dtype));
            INFO("queries " << size.queries << ", keys " << size.keys << ", number " << drawn);
            const auto run = [&](AttentionForm form, bool recorded) {
                const std::vector<Variable> in{parameter(x[0]), parameter(x[1]), parameter(x[2])};
                const Variable y = scaled_dot_product_attention(in[0], in[1], in[2],
                                                                {.scale = 0.7,
                                                                 .causal = causal,
                                                                 .form = form,
                                                                 .heads = heads,
                                                                 .kv_heads = heads});
                std::vector<Tensor> all{y.value()};
                const GradOptions kept{
                    .grad_outputs = {cotangent}, .create_graph = recorded, .retain_graph = true};
                for (const Variable& g : grad({y}, in, kept)) all.push_back(g.value());
                for (std::size_t i = 0; i < in.size() && !recorded; ++i) {
                    CHECK(same_bits(grad({y}, {in[i]}, kept)[0].value(), all[i + 1]));
                }
                return all;
            };
            const std::vector<Tensor> named = run(AttentionForm::named, false);
            const std::vector<Tensor> one_op = run(AttentionForm::automatic, false);
            for (std::size_t i = 0; i < named.size(); ++i) {
                INFO("part " << i << "\n" << named[i] << "\n" << one_op[i]);
                CHECK(same_bits(one_op[i], named[i]));
            }
            if (wild > 0 || dtype == f32) continue;
            const std::vector<Tensor> recorded = run(AttentionForm::automatic, true);
            for (std::size_t i = 0; i < named.size(); ++i) {
                INFO("part " << i);
                CHECK(close(recorded[i], named[i], 1e-12));
            }
        }
    }
}

TEST_CASE("attention with its projections in one op is that of its steps, which observers see") {
    for (int drawn = 0; drawn < 24; ++drawn) {
        const bool causal = drawn % 2 == 0;
        const bool batched = drawn / 2 % 2 == 0;
        const DType dtype = drawn / 4 % 2 == 0 ? f64 : f32;
        const int wild = drawn / 8;
        INFO("number " << drawn);
        std::vector<Tensor> x{uneven(batched ? Shape{2, 5, 6} : Shape{5, 6}, -1, 1, 1),
                              uneven({6, 3}, -1, 1, 2), uneven({6, 3}, -1, 1, 3),
                              uneven({6, 4}, -1, 1, 4)};
        if (wild > 0 && batched) x[0].set({1, -1, 2}, wild == 1 ? NaN : inf);
        if (wild > 0 && !batched) x[0].set({-1, 2}, wild == 1 ? NaN : inf);
        const auto run = [&] {
            std::vector<Variable> in;
            for (const Tensor& each : x) in.push_back(parameter(each.astype(dtype)));
            const Variable y = projected_attention(in[0], in[1], in[2], in[3], {.causal = causal});
            std::vector<Tensor> all{y.value()};
            const Tensor cotangent = uneven(y.shape(), -2, 2, 5).astype(dtype);
            for (const Variable& g : grad({y}, in, {.grad_outputs = {Variable(cotangent)}})) {
                all.push_back(g.value());
            }
            CHECK((y.op() == "projected_attention") == !detail::watched());
            return all;
        };
        const std::vector<Tensor> one_op = run();
        Names names;
        const Observing observing(names);
        const std::vector<Tensor> steps = run();
        CHECK(std::count(names.all.begin(), names.all.end(), "softmax") == 1);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            INFO("part " << i << "\n" << steps[i] << "\n" << one_op[i]);
            CHECK((wild > 0 ? close(one_op[i], steps[i], 0) : same_bits(one_op[i], steps[i])));
        }
    }
    const Variable x = parameter(uneven({5, 6}, -1, 1, 1));
    const Variable w = parameter(uneven({4, 3}, -1, 1, 2));
    CHECK(message_of<ShapeError>([&] { projected_attention(x, w, w, w); }) ==
          "matmul: cannot multiply (5, 6) by (4, 3): inner sizes 6 and 4 differ");
}
