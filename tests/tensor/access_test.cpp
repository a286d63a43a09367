// Building tensors from C++ values, reading and writing single elements, casts.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <array>
#include <cmath>
#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

TEST_CASE("nested lists give their shape and values in every type") {
    const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
    CHECK(x.dtype() == f32);
    CHECK(x.shape() == Shape{2, 3});
    CHECK(x.at<float>({1, 0}) == 4.0f);
    CHECK(tensor({{{1}, {2}}, {{3}, {4}}}, f64).shape() == Shape{2, 2, 1});
    CHECK(tensor(2.5, f64).shape() == Shape{});
    CHECK(tensor(2.5, f64).item() == 2.5);
    CHECK(tensor({9007199254740993}, i64).item<std::int64_t>() == 9007199254740993);
    CHECK(tensor({true, false}, boolean).at<bool>({0}));
    CHECK(tensor({{{{{{{{7}}}}}}}}).rank() == 8);
}

TEST_CASE("spans and vectors of values become tensors") {
    const std::array<double, 6> values{1.5, -2, 3, 4, 5, 6};
    const std::array<double, 3> whole_values{1, -2, 3};
    CHECK(from_values(values, {2, 3}).at({0, 1}) == -2);
    CHECK(from_values(whole_values, {3, 1}, i64).at<std::int64_t>({1, 0}) == -2);
    CHECK(from_span<double>(values, {6}).dtype() == f64);
    const std::array<std::int64_t, 2> whole{std::numeric_limits<std::int64_t>::max(), -1};
    CHECK(from_span<std::int64_t>(whole, {2}).at<std::int64_t>({0}) == whole[0]);
    CHECK(from_values({}, {0, 3}).shape() == Shape{0, 3});
}

TEST_CASE("ranks 0 to 8 work everywhere, rank 9 is refused") {
    Shape shape;
    for (int rank = 0; rank <= max_rank; ++rank) {
        const Tensor x = full(shape, 3, f64);
        CHECK(x.rank() == rank);
        CHECK(sum(x).item() == 3.0 * double(x.numel()));
        CHECK(allclose(add(x, x), scale(x, 2)));
        CHECK(reshape(x, {-1}).numel() == x.numel());
        CHECK(allclose(exp(log(x)), x));
        if (rank == max_rank) break;
        CHECK(stack({x, x}).rank() == rank + 1);
        shape.push_back(rank % 3 == 0 ? 2 : 1);
    }
    CHECK(message_of([&] { shape.push_back(1); }) == "shape: rank 9 is above the limit of 8");
    CHECK(message_of([] { Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}; }) ==
          "shape: rank 9 is above the limit of 8");
    CHECK(message_of([] { tensor({{{{{{{{{7}}}}}}}}}); }) ==
          "shape: rank 9 is above the limit of 8");
}

TEST_CASE("shapes print as tuples and compare by their sizes") {
    CHECK(to_string(Shape{}) == "()");
    CHECK(to_string(Shape{3}) == "(3,)");
    CHECK(to_string(Shape{2, 0, 5}) == "(2, 0, 5)");
    CHECK(Shape{2, 3} == Shape{2, 3});
    CHECK(Shape{2, 3} != Shape{2, 3, 1});
    CHECK(Shape{2, 3} != Shape{3, 2});
    Shape shape{2, 3};
    shape.insert(1, 7);
    CHECK(shape == Shape{2, 7, 3});
    shape.erase(0);
    CHECK(shape == Shape{7, 3});
    CHECK(shape.back() == 3);
    CHECK(shape.numel() == 21);
    CHECK(Shape{}.numel() == 1);
    CHECK(ones({2, 7}).size(-1) == 7);
    CHECK(ones({2, 7}).size(0) == 2);
}

TEST_CASE("elements are read and written by index, negative ones from the end") {
    Tensor x = reshape(arange(6), {2, 3});
    CHECK(x.at({1, 2}) == 5);
    CHECK(x.at({-1, -3}) == 3);
    CHECK(x.at<std::int64_t>({0, -1}) == 2);
    x.set({-2, 0}, -9);
    CHECK(x.at({0, 0}) == -9);
    Tensor scalar = zeros({});
    scalar.set({}, 4);
    CHECK(scalar.at({}) == 4);
    CHECK(scalar.item<float>() == 4.0f);
    Tensor flags = zeros({2}, boolean);
    flags.set({1}, 5);
    CHECK(flags.at<bool>({1}));
    CHECK(ones({1, 1, 1}, i64).item() == 1);
    Tensor large = zeros({1}, f32);
    large.set({0}, 0.1);
    CHECK(large.item<float>() == 0.1f);
}

TEST_CASE("casts refuse what i64 cannot hold and cut the rest towards zero") {
    const double inf = std::numeric_limits<double>::infinity();
    CHECK(tensor({-2.9, 2.9}, f64).astype(i64).at<std::int64_t>({0}) == -2);
    CHECK(tensor({-9223372036854775808.0}, f64).astype(i64).item<std::int64_t>() ==
          std::numeric_limits<std::int64_t>::min());
    CHECK(message_of([&] { (void)tensor({inf}, f64).astype(i64); }) ==
          "astype: inf does not fit i64");
    CHECK(message_of([&] {
              (void)tensor({1, std::nan("")}).astype(i64);
          }) == "astype: nan does not fit i64");
    CHECK(message_of([&] { (void)tensor({9223372036854775808.0}, f64).astype(i64); }) ==
          "astype: 9.223372036854776e+18 does not fit i64");
    CHECK(message_of([&] { (void)full({2}, 1e300, i64); }) == "full: 1e+300 does not fit i64");
    CHECK(message_of([&] {
              Tensor x = zeros({1}, i64);
              x.set({0}, inf);
          }) == "set: inf does not fit i64");
    CHECK(tensor({std::nan(""), 0, -0.0}).astype(boolean).at<bool>({0}));
    CHECK(tensor({1e300}, f64).astype(f32).item() == inf);
    const Tensor same = ones({2});
    CHECK(same.astype(f32).shares_buffer_with(same));
}
