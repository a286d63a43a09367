// Gradients that meet: repeated indices, broadcast operands, reduced axes. The figures of reported
// bugs of other libraries are their right results.

#include "autograd/support/checks.hpp"
#include "support/threads.hpp"

#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

Tensor ids(const NestedList& values) { return tensor(values, i64); }

}  // namespace

TEST_CASE("a broadcast factor gets a gradient of its own shape") {
    // tenstorrent/tt-metal#40008, pytorch/pytorch#1787
    const Variable h = parameter(reshape(arange(0, 24, 1, f64) * 0.1, {2, 1, 4, 3}), "h");
    const Variable m = parameter(reshape(arange(1, 9, 1, f64), {2, 1, 4, 1}), "m");
    backward(sum(h * m));
    CHECK(close(reshape(m.grad(), {8}), tensor({.3, 1.2, 2.1, 3, 3.9, 4.8, 5.7, 6.6}, f64)));
    CHECK(m.grad().shape() == m.shape());
    CHECK(close(reshape(slice(h.grad(), 2, {.stop = 1}), {2, 3}),
                tensor({{1, 1, 1}, {5, 5, 5}}, f64)));

    const Variable a = parameter(full({}, 3, f64), "a");
    const Variable b = parameter(tensor({{1, 2, 3}, {4, 5, 6}}, f64), "b");
    backward(sum(a * b));
    CHECK(a.grad().shape() == Shape());
    CHECK(a.grad().item() == 21);
    CHECK(close(b.grad(), full({2, 3}, 3, f64)));
}

TEST_CASE("a column and a row that broadcast to a matrix both get their sums") {
    // tracel-ai/burn#181
    const Variable x(tensor({{1, -2, .5}, {3, 0, -1}}, f64));
    const Variable w = parameter(tensor({{.5}, {0}, {4}}, f64), "w");
    const Variable b = parameter(tensor({{.1, .2, .3}}, f64), "b");
    const Variable y = matmul(x, w) + b;
    const Variable loss = sum(y * y);
    CHECK(loss.item() == Approx(37.78).epsilon(1e-9));
    backward(loss);
    CHECK(close(w.grad(), tensor({{-25.2}, {-32.4}, {21.9}}, f64), 1e-9));
    CHECK(close(b.grad(), tensor({{.4, .8, 1.2}}, f64), 1e-9));
}

TEST_CASE("a mean divides by what it averaged, over the only axis and over one of two") {
    // pytorch/pytorch#1813, pocketpy/cTensor PR #24
    const Variable x = parameter(ones({5}, f64), "x");
    backward(mean(x * x, {.axes = {0}}));
    CHECK(close(x.grad(), full({5}, .4, f64)));

    const Variable m = parameter(uneven({2, 3}), "m");
    backward(sum(mean(m, {.axes = {1}}) * Variable(tensor({1, 10}, f64))));
    const double third = 1.0 / 3;
    CHECK(close(m.grad(),
                tensor({{third, third, third}, {10 * third, 10 * third, 10 * third}}, f64)));
}

TEST_CASE("rows that are read several times add up their gradients") {
    // pytorch/pytorch#1631, PaddlePaddle/Paddle PR #17662
    const Variable gy(tensor({{1, 2}, {3, 4}, {5, 6}, {7, 8}}, f64));
    const Tensor expected = tensor({{11, 14}, {0, 0}, {5, 6}, {0, 0}}, f64);
    const Tensor at = ids({0, 0, 2, 0});
    const auto gradient = [&](const auto& op) {
        const Variable w = parameter(uneven({4, 2}), "w");
        backward(sum(op(w) * gy));
        return w.grad();
    };
    CHECK(same_bits(gradient([&](const Variable& w) { return embedding(w, at); }), expected));
    CHECK(same_bits(gradient([&](const Variable& w) { return index(w, at); }), expected));
    CHECK(same_bits(gradient([&](const Variable& w) { return index_select(w, 0, at); }), expected));
    CHECK(same_bits(gradient([&](const Variable& w) {
                        return gather(w, 0, ids({{0, 0}, {0, 0}, {2, 2}, {0, 0}}));
                    }),
                    expected));
}

TEST_CASE("20,000 gradients of one row are added up to 1e-6 in f32, with the same bits") {
    // tenstorrent/tt-metal PR #53386; a naive sum in f32 gives 1999.6588
    const double exact = 2000.0000298023224;
    const std::int64_t count = 20000;
    const Tensor tenths = full({count, 1}, 0.1);
    Tensor first;
    for (const int threads : {1, 2, 5}) {
        const Threads many(threads);
        const Variable w = parameter(zeros({3, 1}), "w");
        const Tensor at = full({count}, 1, i64);
        backward(sum(embedding(w, at) * Variable(tenths)));
        CHECK(std::abs(w.grad().at({1, 0}) / exact - 1) <= 1e-6);
        CHECK(w.grad().at({0, 0}) == 0);
        if (!first.defined()) first = w.grad();
        CHECK(same_bits(w.grad(), first));

        const Variable x = parameter(zeros({3, 1}), "x");
        backward(sum(gather(x, 0, reshape(at, {count, 1})) * Variable(tenths)));
        CHECK(same_bits(x.grad(), first));
    }
}

TEST_CASE("adding by index has the same bits for any number of threads") {
    const Tensor at = RandomState(3).randint(0, 700, {5000});
    const Tensor src = RandomState(4).randn({5000, 33}, {.dtype = f32});
    std::vector<Tensor> results;
    for (const int threads : {1, 2, 5}) {
        const Threads many(threads);
        results.push_back(index_add(zeros({700, 33}), 0, at, src));
        CHECK(same_bits(results.back(), results.front()));
        CHECK(same_bits(index(src, at), index_select(src, 0, at)));
    }
    // And the right ones.
    Tensor expected = zeros({700, 33}, f64);
    double* out = expected.mutable_data<double>();
    for (std::int64_t i = 0; i < 5000; ++i) {
        for (std::int64_t j = 0; j < 33; ++j) {
            out[at.data<std::int64_t>()[i] * 33 + j] += double(src.data<float>()[i * 33 + j]);
        }
    }
    CHECK(same_bits(results.front(), expected.astype(f32)));
}

TEST_CASE("an index smaller than the tensor scatters and is differentiated by the index alone") {
    // tracel-ai/burn#4063
    const Tensor at = ids({{0, 3}, {3, 1}});
    const auto report =
        gradcheck([&](std::span<const Variable> in) { return scatter_add(in[0], 1, at, in[1]); },
                  {parameter(uneven({3, 4}), "x"), parameter(uneven({2, 2}, -2, 2, 2), "src")});
    INFO(report.text);
    CHECK(report);
    const Tensor y = scatter_add(zeros({3, 4}), 1, at, tensor({{1, 2}, {3, 4}}));
    CHECK(same_bits(y, tensor({{1, 0, 0, 2}, {0, 4, 0, 3}, {0, 0, 0, 0}})));
}

TEST_CASE("an id outside the table is named, with its place and the bound") {
    // sgl-project/sglang PR #27482, ggml-org/llama.cpp#9436
    const Variable w = parameter(uneven({5, 2}), "w");
    CHECK(message_of<IndexError>([&] {
              embedding(w, ids({0, 4, 5}));
          }) ==
          "embedding: id 5 at (2,) is outside 0..4 (5 rows) (weight is 'w'); do the ids belong to "
          "this vocabulary?");
    CHECK(message_of<IndexError>([&] {
              embedding(w, ids({{0, 4, 5}}));
          }) ==
          "embedding: id 5 at (0, 2) is outside 0..4 (5 rows) (weight is 'w'); do the ids belong "
          "to this "
          "vocabulary?");
    CHECK(message_of<IndexError>([&] {
              embedding(w, ids({0, -1}));
          }) ==
          "embedding: id -1 at (1,) is outside 0..4 (5 rows) (weight is 'w'); negative ones do not "
          "count from the "
          "end");
    CHECK(message_of<IndexError>([&] { embedding(w, full({1}, -9223372036854775808.0, i64)); }) ==
          "embedding: id -9223372036854775808 at (0,) is outside 0..4 (5 rows) (weight is 'w'); "
          "negative ones do "
          "not count from the end");
}

TEST_CASE("a gradient that is NaN outside a triangle does not reach the input") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Variable x = parameter(uneven({2, 3}), "x");
    const Variable gy(tensor({{1, nan, nan}, {2, 3, nan}}, f64));
    CHECK(same_bits(grad({tril(x)}, {x}, {.grad_outputs = {gy}})[0].value(),
                    tensor({{1, 0, 0}, {2, 3, 0}}, f64)));
    const Variable below(tensor({{1, 2, 3}, {nan, 5, 6}}, f64));
    CHECK(same_bits(grad({triu(x)}, {x}, {.grad_outputs = {below}})[0].value(),
                    tensor({{1, 2, 3}, {0, 5, 6}}, f64)));
}

TEST_CASE("results may take the name of an operand") {
    Variable x = parameter(uneven({2, 3}), "x");
    const Variable leaf = x;
    x = concat({x, x}, 0);
    x = slice(x, 0, {.start = 1, .stop = 3});
    x = stack({x, x});
    x = select(x, 0, 1);
    backward(sum(x * Variable(tensor({{1, 2, 3}, {4, 5, 6}}, f64))));
    CHECK(same_bits(leaf.grad(), tensor({{4, 5, 6}, {1, 2, 3}}, f64)));

    Tensor t = ones({3});
    t = index_add(t, 0, ids({0, 0, 2}), t);
    CHECK(same_bits(t, tensor({3, 1, 2})));
    t = scatter_add(t, 0, ids({1, 1, 1}), t);
    CHECK(same_bits(t, tensor({3, 7, 2})));
    t = concat({t, flip(t)});
    CHECK(same_bits(t, tensor({3, 7, 2, 2, 7, 3})));
}
