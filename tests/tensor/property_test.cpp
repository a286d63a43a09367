// Laws that hold for all shapes: adjoints, inverses, symmetries. Values come from a generator,
// shapes have sizes that differ wherever the law allows it.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string_view>
#include <vector>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

/// Integers as f64, so that sums are exact in any order.
Tensor whole(RandomState& random, const Shape& shape) {
    return random.randint(-9, 10, shape).astype(f64);
}

double dot(const Tensor& a, const Tensor& b) { return sum(mul(a, b)).item(); }

bool same(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && allclose(a, b, {.rtol = 0, .atol = 0});
}

Shape random_shape(RandomState& random, std::int64_t max_axes) {
    Shape shape;
    const std::int64_t rank = random.randint(0, max_axes + 1, {}).item<std::int64_t>();
    for (std::int64_t i = 0; i < rank; ++i) {
        shape.push_back(random.randint(0, 12, {}).item<std::int64_t>() % 5 + (i == 0 ? 0 : 1));
    }
    return shape;
}

/// A shape that broadcasts to `shape`.
Shape narrowed(RandomState& random, const Shape& shape) {
    Shape result;
    const std::int64_t first = random.randint(0, shape.rank() + 1, {}).item<std::int64_t>();
    for (int i = int(first); i < shape.rank(); ++i) {
        result.push_back(random.next_interval(1) == 0 ? 1 : shape[i]);
    }
    return result;
}

}  // namespace

TEST_CASE("sum_to is the adjoint of broadcast_to") {
    RandomState random(1);
    for (int i = 0; i < 500; ++i) {
        const Shape shape = random_shape(random, 6);
        const Shape narrow = narrowed(random, shape);
        INFO(to_string(narrow) << " to " << to_string(shape));
        const Tensor x = whole(random, narrow);
        const Tensor y = whole(random, shape);
        CHECK(dot(broadcast_to(x, shape), y) == dot(x, sum_to(y, narrow)));
        CHECK(sum_to(y, narrow).shape() == narrow);
    }
}

TEST_CASE("slice_scatter is the adjoint of slice, and slicing what it wrote gives it back") {
    RandomState random(2);
    for (int i = 0; i < 500; ++i) {
        Shape shape = random_shape(random, 4);
        shape.push_back(1 + i % 6);
        const std::int64_t axis =
            random.randint(-shape.rank(), shape.rank(), {}).item<std::int64_t>();
        SliceOptions options;
        if (i % 2) options.start = random.randint(-8, 9, {}).item<std::int64_t>();
        if (i % 3) options.stop = random.randint(-8, 9, {}).item<std::int64_t>();
        options.step = random.randint(1, 4, {}).item<std::int64_t>() * (i % 5 < 2 ? -1 : 1);
        const Tensor x = whole(random, shape);
        const Tensor part = slice(x, axis, options);
        const Tensor y = whole(random, part.shape());
        const Tensor back = slice_scatter(y, shape, axis, options);
        CHECK(dot(part, y) == dot(x, back));
        CHECK(same(slice(back, axis, options), y));
    }
}

TEST_CASE("permute undoes its inverse, and reshape any other shape of as many elements") {
    RandomState random(3);
    for (int i = 0; i < 300; ++i) {
        const Shape shape = random_shape(random, 8);
        const Tensor x = whole(random, shape);
        const Tensor order = random.permutation(shape.rank());
        const auto axes = order.values<std::int64_t>();
        std::vector<std::int64_t> inverse(axes.size());
        for (std::size_t k = 0; k < axes.size(); ++k)
            inverse[std::size_t(axes[k])] = std::int64_t(k);
        const Tensor y = permute(x, axes);
        CHECK(same(permute(y, inverse), x));
        CHECK(sum(y).item() == sum(x).item());
        CHECK(same(reshape(reshape(x, {x.numel()}), shape), x));
        CHECK(reshape(x, {-1}).shares_buffer_with(x));
        if (shape.rank() < 2) continue;
        CHECK(same(transpose(transpose(x, 0, -1), 0, -1), x));
    }
}

TEST_CASE("pieces cut by slice and joined by concat or stack are the tensor again") {
    RandomState random(4);
    for (int i = 0; i < 200; ++i) {
        Shape shape = random_shape(random, 5);
        shape.push_back(2 + i % 4);
        const Tensor x = whole(random, shape);
        for (std::int64_t axis = -shape.rank(); axis < shape.rank(); ++axis) {
            if (x.size(axis) == 0) continue;
            const std::int64_t cut = random.randint(0, x.size(axis) + 1, {}).item<std::int64_t>();
            CHECK(same(
                concat({slice(x, axis, {.stop = cut}), slice(x, axis, {.start = cut})}, axis), x));
            std::vector<Tensor> rows;
            Shape row = shape;
            row.erase(normalize_axis("test", axis, shape));
            for (std::int64_t k = 0; k < x.size(axis); ++k) {
                rows.push_back(reshape(slice(x, axis, {.start = k, .stop = k + 1}), row));
            }
            CHECK(same(stack(rows, axis), x));
        }
    }
}

TEST_CASE("a reduction over two axes is one over the first and then the other") {
    RandomState random(5);
    for (int i = 0; i < 200; ++i) {
        Shape shape = random_shape(random, 4);
        shape.push_back(3);
        shape.push_back(2 + i % 3);
        const Tensor x = whole(random, shape);
        const std::int64_t a = random.randint(0, shape.rank(), {}).item<std::int64_t>();
        const std::int64_t b = (a + 1) % shape.rank();
        CHECK(same(sum(x, {.axes = {a, b}, .keepdims = true}),
                   sum(sum(x, {.axes = {a}, .keepdims = true}), {.axes = {b}, .keepdims = true})));
        if (x.numel() == 0) continue;
        CHECK(same(max(x, {.axes = {b, a}, .keepdims = true}),
                   max(max(x, {.axes = {a}, .keepdims = true}), {.axes = {b}, .keepdims = true})));
        CHECK(same(min(x), neg(max(neg(x)))));
        CHECK(same(sum(x), sum(x, {.axes = Axes()})));
    }
}

TEST_CASE("matmul: (A B)^T is B^T A^T, flags read what transpose writes, a stack is its products") {
    RandomState random(6);
    for (int i = 0; i < 100; ++i) {
        const std::int64_t m = 1 + i % 7;
        const std::int64_t k = i % 11;
        const std::int64_t n = 1 + i % 5;
        for (const DType dtype : {f32, f64, i64}) {
            const Tensor a = whole(random, {3, m, k}).astype(dtype);
            const Tensor b = whole(random, {3, k, n}).astype(dtype);
            const Tensor c = matmul(a, b);
            CHECK(same(transpose(c), matmul(transpose(b), transpose(a))));
            CHECK(same(c, matmul(transpose(a), b, {.transpose_a = true})));
            CHECK(same(c, matmul(a, transpose(b), {.transpose_b = true})));
            CHECK(same(
                c, matmul(transpose(a), transpose(b), {.transpose_a = true, .transpose_b = true})));
            std::vector<Tensor> parts;
            for (std::int64_t p = 0; p < 3; ++p) {
                const auto at = [&](const Tensor& x) {
                    return reshape(slice(x, 0, {.start = p, .stop = p + 1}),
                                   {x.size(1), x.size(2)});
                };
                parts.push_back(matmul(at(a), at(b)));
            }
            CHECK(same(stack(parts), c));
        }
    }
}

TEST_CASE("rows of softmax sum to one, and log_softmax is its logarithm") {
    RandomState random(7);
    for (const DType dtype : {f32, f64}) {
        const double close = dtype == f32 ? 1e-6 : 1e-14;
        const Tensor x = random.normal(0, 5, {4, 7, 5}, {.dtype = dtype});
        for (const std::int64_t axis : {-1, 0, 1}) {
            const Tensor y = softmax(x, axis);
            CHECK(allclose(sum(y, {.axes = {axis}}), ones({1}, dtype), {.rtol = close, .atol = 0}));
            CHECK(allclose(exp(log_softmax(x, axis)), y, {.rtol = 10 * close, .atol = 0}));
            CHECK(allclose(softmax(add(x, 100.0), axis), y, {.rtol = 1e5 * close, .atol = 0}));
        }
    }
}

TEST_CASE("maximum and minimum share out their operands, where picks them apart") {
    RandomState random(8);
    const Tensor a = whole(random, {5, 1, 4});
    const Tensor b = whole(random, {3, 1});
    CHECK(same(add(maximum(a, b), minimum(a, b)), add(a, b)));
    CHECK(same(maximum(a, b), where(greater(a, b), a, b)));
    CHECK(same(logical_not(less(a, b)).astype(f64), greater_equal(a, b).astype(f64)));
    CHECK(same(logical_or(less(a, b), equal(a, b)).astype(f64), less_equal(a, b).astype(f64)));
    CHECK(same(not_equal(a, b).astype(f64), logical_not(equal(a, b)).astype(f64)));
}

TEST_CASE("heads are merged by a permute and a reshape, not by a reshape alone") {
    const Tensor heads = reshape(arange(1, 9), {1, 2, 2, 2});  // (batch, heads, query, width)
    CHECK(allclose(reshape(permute(heads, {0, 2, 1, 3}), {1, 2, 4}),
                   tensor({{{1, 2, 5, 6}, {3, 4, 7, 8}}}, i64)));
    CHECK_FALSE(allclose(reshape(heads, {1, 2, 4}), tensor({{{1, 2, 5, 6}, {3, 4, 7, 8}}}, i64)));
}

TEST_CASE("reductions of long rows are plain loops, with the same bits for any number of threads") {
    constexpr std::int64_t n = 3 * 65536 + 17;
    const int before = num_threads();
    std::vector<double> values(n);
    for (std::int64_t i = 0; i < n; ++i) {
        values[static_cast<std::size_t>(i)] = static_cast<double>(i * 7919 % 100003) / 100003 - 0.4;
    }
    values[150001] = 3;
    values[180001] = 3;
    values[70001] = -2;
    const auto to = static_cast<double>(n);
    double total = 0, squares = 0, exps = 0;
    for (const double each : values) {
        total += each / to;
        exps += std::exp(each);
        squares += each * each;
    }
    const auto wanted = [&](std::string_view name) {
        if (name == "mean") return total;
        if (name == "logsumexp") return std::log(exps);
        if (name == "std") return std::sqrt(squares / to - total * total);
        return std::sqrt(squares);
    };
    for (const DType dtype : {f32, f64}) {
        const Tensor x = from_values(values, {n}, dtype);
        std::vector<std::vector<Tensor>> results;
        for (const int threads : {1, 2, 3}) {
            set_num_threads(threads);
            results.push_back({mean(x), logsumexp(x), glassgrad::std(x), norm(x), sum(x), max(x),
                               min(x), argmax(x), argmin(x)});
        }
        set_num_threads(before);
        for (std::size_t i = 0; i < results[0].size(); ++i) {
            for (const auto& other : results) CHECK(same(results[0][i], other[i]));
        }
        const double rtol = dtype == f32 ? 1e-6 : 1e-12;
        std::size_t at = 0;
        for (const char* name : {"mean", "logsumexp", "std", "norm"}) {
            CAPTURE(name);
            CHECK(std::abs(results[0][at++].item() / wanted(name) - 1) < rtol);
        }
        CHECK(results[0][5].item() == 3);
        CHECK(results[0][6].item() == -2);
        CHECK(results[0][7].item<std::int64_t>() == 150001);
        CHECK(results[0][8].item<std::int64_t>() == 70001);
        for (const std::size_t place : {std::size_t{5}, std::size_t{65536}, std::size_t{n - 1}}) {
            std::vector<double> wild = values;
            wild[place] = wild[n - 1] = std::numeric_limits<double>::quiet_NaN();
            const Tensor w = from_values(wild, {n}, dtype);
            for (const Tensor& each : {sum(w), max(w), min(w), logsumexp(w)}) {
                CHECK(std::isnan(each.item()));
            }
            CHECK(argmax(w).item<std::int64_t>() == static_cast<std::int64_t>(place));
            CHECK(argmin(w).item<std::int64_t>() == static_cast<std::int64_t>(place));
        }
    }
}

TEST_CASE("sums of f64 that leave its range on the way are finite where their results are") {
    constexpr double large = std::numeric_limits<double>::max() * 0.75;
    for (const std::int64_t n : {4, 1000, 70000}) {
        CAPTURE(n);
        std::vector<double> values(static_cast<std::size_t>(n), large);
        const Tensor all = from_values(values, {n}, f64);
        CHECK(std::abs(mean(all).item() / large - 1) < 1e-12);
        CHECK(std::isinf(sum(all).item()));
        std::fill(values.begin() + n / 2, values.end(), -large);
        CHECK(std::abs(sum(from_values(values, {n}, f64)).item() / large) < 1e-9);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = i % 2 == 0 ? large : -large;
        CHECK(std::abs(sum(from_values(values, {n}, f64)).item() / large) < 1e-9);
    }
}
