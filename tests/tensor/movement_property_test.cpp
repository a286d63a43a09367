// Laws of the functions that move elements and pick them by index. Sizes differ wherever the law
// allows it; values are whole, so that sums are exact.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

Tensor whole(RandomState& random, const Shape& shape) {
    return random.randint(-9, 10, shape).astype(f64);
}

double dot(const Tensor& a, const Tensor& b) { return sum(mul(a, b)).item(); }

bool same(const Tensor& a, const Tensor& b) {
    return a.shape() == b.shape() && allclose(a, b, {.rtol = 0, .atol = 0});
}

std::int64_t number(RandomState& random, std::int64_t low, std::int64_t high) {
    return random.randint(low, high, {}).item<std::int64_t>();
}

Shape random_shape(RandomState& random, int least_axes, int most_axes) {
    Shape shape;
    const std::int64_t rank = number(random, least_axes, most_axes + 1);
    for (std::int64_t i = 0; i < rank; ++i) shape.push_back(number(random, i == 0 ? 0 : 1, 5));
    return shape;
}

}  // namespace

TEST_CASE("flip twice, and roll there and back, give the tensor again") {
    RandomState random(1);
    for (int i = 0; i < 200; ++i) {
        const Shape shape = random_shape(random, 1, 8);
        const Tensor x = whole(random, shape);
        const std::int64_t axis = number(random, -shape.rank(), shape.rank());
        const std::int64_t shift = number(random, -20, 20);
        INFO(to_string(shape) << " along " << axis << " by " << shift);
        CHECK(same(flip(flip(x, axis), axis), x));
        CHECK(same(flip(flip(x)), x));
        CHECK(same(roll(roll(x, shift, axis), -shift, axis), x));
        CHECK(same(roll(flip(x, axis), shift, axis), flip(roll(x, -shift, axis), axis)));
    }
}

TEST_CASE("pieces of split and chunk joined again, and padding cut off, give the tensor again") {
    RandomState random(2);
    for (int i = 0; i < 200; ++i) {
        const Shape shape = random_shape(random, 1, 6);
        const Tensor x = whole(random, shape);
        const std::int64_t axis = number(random, -shape.rank(), shape.rank());
        CHECK(same(concat(split(x, number(random, 1, 4), axis), axis), x));
        CHECK(same(concat(chunk(x, number(random, 1, 4), axis), axis), x));
        std::vector<PadWidth> widths(std::size_t(shape.rank()));
        const int at = normalize_axis("test", axis, shape);
        widths[std::size_t(at)] = {number(random, 0, 3), number(random, 0, 3)};
        const std::int64_t before = widths[std::size_t(at)].before;
        const Tensor padded = pad(x, widths, {.value = 7});
        CHECK(same(slice(padded, at, {.start = before, .stop = before + shape[at]}), x));
        CHECK(sum(padded).item() == sum(x).item() + 7.0 * double(padded.numel() - x.numel()));
        CHECK(same(squeeze(unsqueeze(x, axis), axis < 0 ? axis : at), x));
    }
}

TEST_CASE("the triangles of a matrix on both sides of a diagonal make it up") {
    RandomState random(3);
    for (int i = 0; i < 200; ++i) {
        Shape shape = random_shape(random, 0, 3);
        shape.push_back(number(random, 1, 6));
        shape.push_back(number(random, 1, 6));
        const Tensor x = whole(random, shape);
        const Tensor y = whole(random, shape);
        const std::int64_t k = number(random, -7, 8);
        CHECK(same(add(tril(x, k), triu(x, k + 1)), x));
        CHECK(same(transpose(tril(x, k)), triu(transpose(x), -k)));
        CHECK(dot(tril(x, k), y) == dot(x, tril(y, k)));
    }
}

TEST_CASE(
    "repeat is expand to copies laid side by side, and its sum is the sum times their number") {
    RandomState random(4);
    for (int i = 0; i < 200; ++i) {
        const Shape shape = random_shape(random, 1, 4);
        const Tensor x = whole(random, shape);
        Shape counts;
        for (int k = 0; k < shape.rank(); ++k) counts.push_back(number(random, 0, 4));
        const Tensor y = repeat(x, counts);
        CHECK(sum(y).item() == sum(x).item() * double(counts.numel()));
        const std::int64_t n = number(random, 1, 4);
        CHECK(same(reshape(repeat(reshape(x, {-1}), {n}), {n, x.numel()}),
                   expand(reshape(x, {-1}), {n, -1})));
    }
}

TEST_CASE("picking by index and adding by index are adjoint") {
    RandomState random(5);
    for (int i = 0; i < 300; ++i) {
        Shape shape = random_shape(random, 0, 4);
        shape.push_back(number(random, 1, 6));
        const std::int64_t axis = number(random, -shape.rank(), shape.rank());
        const int at = normalize_axis("test", axis, shape);
        if (shape[at] == 0) continue;
        const Tensor x = whole(random, shape);

        const Tensor indices = random.randint(0, shape[at], {number(random, 0, 7)});
        const Tensor part = index_select(x, axis, indices);
        const Tensor y = whole(random, part.shape());
        CHECK(dot(part, y) == dot(x, index_add(zeros(shape, f64), axis, indices, y)));

        Shape small = shape;
        for (int k = 0; k < shape.rank(); ++k) {
            small[k] = k == at ? number(random, 0, 7) : number(random, 0, shape[k] + 1);
        }
        const Tensor places = random.randint(0, shape[at], small);
        const Tensor read = gather(x, axis, places);
        const Tensor z = whole(random, small);
        CHECK(dot(read, z) == dot(x, scatter_add(zeros(shape, f64), axis, places, z)));
        CHECK(same(scatter_add(zeros(shape), axis, places, z.astype(f32)).astype(f64),
                   scatter_add(zeros(shape, f64), axis, places, z)));

        const std::int64_t one = number(random, 0, shape[at]);
        CHECK(same(unsqueeze(select(x, axis, one), at),
                   index_select(x, axis, full({1}, double(one), i64))));
    }
}

TEST_CASE("an einsum does not depend on the letters or on the order of its operands") {
    RandomState random(6);
    const Tensor a = whole(random, {2, 3, 4});
    const Tensor b = whole(random, {5, 4, 2});
    const Tensor y = einsum("bij,kjb->bki", a, b);
    CHECK(same(y, einsum("Zyx,wxZ->Zwy", a, b)));
    CHECK(same(y, einsum("kjb,bij->bki", b, a)));
    CHECK(same(y, einsum("bij,bjk->bki", a, permute(b, {2, 1, 0}))));
    CHECK(same(y, permute(einsum("bij,kjb->ikb", a, b), {2, 1, 0})));
    CHECK(same(y, transpose(matmul(a, permute(b, {2, 1, 0})))));
}
