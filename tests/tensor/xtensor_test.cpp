// The bridge to xtensor, views and lazy expressions included.

#include <glassgrad/tensor.hpp>
#include <glassgrad/tensor/xtensor.hpp>

#include "support/catch.hpp"

using namespace glassgrad;

namespace {

/// A lazy expression over locals that are gone when it returns.
Tensor product_of_locals() {
    const xt::xarray<double> a{{1, 2}, {3, 4}};
    const xt::xarray<double> c{{10, 20}, {30, 40}};
    return from_xtensor(a * c);
}

}  // namespace

TEST_CASE("an expression is evaluated at once: its parts may go") {
    const Tensor x = product_of_locals();
    CHECK(x.shape() == Shape{2, 2});
    CHECK(x.dtype() == f64);
    CHECK(x.at({0, 1}) == 40);
    CHECK(x.at({1, 1}) == 160);
}

TEST_CASE("containers of every element type keep their values") {
    const xt::xarray<float> f{{1.5f, 2, 3}, {4, 5, 6}};
    CHECK(from_xtensor(f).dtype() == f32);
    CHECK(from_xtensor(f).shape() == Shape{2, 3});
    CHECK(from_xtensor(f).at({0, 0}) == 1.5);
    const xt::xarray<std::int64_t> i{9007199254740993, -1};
    CHECK(from_xtensor(i).at<std::int64_t>({0}) == 9007199254740993);
    const xt::xarray<int> narrow{7, -8};
    CHECK(from_xtensor(narrow).dtype() == i64);
    CHECK(from_xtensor(narrow).at({1}) == -8);
    const xt::xarray<bool> b{true, false};
    CHECK(from_xtensor(b).dtype() == boolean);
    CHECK(from_xtensor(b).at<bool>({0}));
    const xt::xtensor<double, 3> fixed = xt::xtensor<double, 3>::from_shape({2, 0, 4});
    CHECK(from_xtensor(fixed).shape() == Shape{2, 0, 4});
    const xt::xarray<double> scalar(2.5);
    CHECK(from_xtensor(scalar).shape() == Shape{});
    CHECK(from_xtensor(scalar).item() == 2.5);
    const xt::xarray<double, xt::layout_type::column_major> columns{{1, 2, 3}, {4, 5, 6}};
    CHECK(from_xtensor(columns).at({1, 0}) == 4);
    CHECK(from_xtensor(columns).data<double>()[1] == 2);
}

TEST_CASE("views with negative, odd and zero strides are read right") {
    const xt::xarray<double> m{{2, 3}, {5, 7}, {11, 13}};
    const Tensor column = from_xtensor(xt::view(m, xt::all(), 0));
    const Tensor reversed = from_xtensor(xt::view(m, xt::range(2, xt::placeholders::_, -1), 1));
    CHECK(reversed.shape() == Shape{3});
    CHECK(reversed.at({0}) == 13);
    CHECK(matmul(column, reversed).item() == 94);
    CHECK(matmul(from_xtensor(xt::transpose(m)), column).at({1}) == 2 * 3 + 5 * 7 + 11 * 13);

    const xt::xarray<double> half{0.5};
    const xt::xarray<double> w{{1, 2}, {3, 4}};
    const Tensor x = from_xtensor(xt::broadcast(half, {2}));
    const Tensor y = matmul(x, from_xtensor(w));
    CHECK(y.at({0}) == 2);
    CHECK(y.at({1}) == 3);
    const xt::xarray<double> grid = xt::reshape_view(xt::arange<double>(24), {4, 6});
    const Tensor strided =
        from_xtensor(xt::strided_view(grid, {xt::range(0, 4, 2), xt::range(1, 6, 3)}));
    CHECK(strided.shape() == Shape{2, 2});
    CHECK(strided.at({1, 1}) == 16);
}

TEST_CASE("as_xtensor reads the tensor in place and takes part in expressions") {
    const Tensor x = reshape(arange(0, 6, 1, f32), {2, 3});
    const auto view = as_xtensor<float>(x);
    CHECK(view.dimension() == 2);
    CHECK(view(1, 2) == 5.0f);
    CHECK(&view(0, 0) == x.data<float>());
    const Tensor twice = from_xtensor(2.0f * view + 1.0f);
    CHECK(twice.at({1, 0}) == 7);
    CHECK(x.is_unique());
    CHECK_THROWS_AS(as_xtensor<double>(x), TypeError);
    CHECK_THROWS_AS(as_xtensor<float>(Tensor()), ValueError);
    CHECK(as_xtensor<double>(full({}, 4, f64))() == 4);
    CHECK(as_xtensor<double>(zeros({3, 0}, f64)).size() == 0);
}

TEST_CASE("nine axes are refused") {
    const xt::xarray<double> x = xt::xarray<double>::from_shape({1, 1, 1, 1, 1, 1, 1, 1, 1});
    CHECK_THROWS_AS(from_xtensor(x), ShapeError);
}
