// A tensor is a value: copies are cheap, writes never reach another tensor.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <algorithm>
#include <utility>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

std::vector<double> values_of(const Tensor& x) {
    const Tensor wide = x.astype(f64);
    const auto values = wide.values<double>();
    return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("a copy shares the buffer until one of the two is written") {
    Tensor a = tensor({1, 2, 3}, f64);
    Tensor b = a;
    CHECK(a.shares_buffer_with(b));
    CHECK_FALSE(a.is_unique());
    b.set({1}, 20);
    CHECK_FALSE(a.shares_buffer_with(b));
    CHECK(a.is_unique());
    CHECK(b.is_unique());
    CHECK(values_of(a) == std::vector<double>{1, 2, 3});
    CHECK(values_of(b) == std::vector<double>{1, 20, 3});

    const double* before = b.data<double>();
    b.mutable_data<double>()[0] = 10;
    CHECK(b.data<double>() == before);  // nobody else holds it: written in place
}

TEST_CASE("a tensor that went through a function that shares is not written through its result") {
    const auto written = [](Tensor x) {
        x.mutable_data<float>()[0] = 100;
        return x;
    };
    const Tensor x = tensor({{1, 2}, {3, 4}});
    (void)written(reshape(x, {4}));
    (void)written(x.with_shape({4}));
    (void)written(permute(x, {0, 1}));
    (void)written(slice(x, 0, {}));
    (void)written(broadcast_to(x, {2, 2}));
    (void)written(sum_to(x, {2, 2}));
    (void)written(x.astype(f32));
    (void)written(x.clone());
    (void)written(concat({x}));
    CHECK(values_of(x) == std::vector<double>{1, 2, 3, 4});
    CHECK(x.is_unique());
}

TEST_CASE("arithmetic in place leaves the copies taken before as they were") {
    for (const DType dtype : {f32, f64, i64}) {
        Tensor a = tensor({2, 3, 5}, dtype);
        const Tensor old = a;
        a += tensor({1, 1, 1}, dtype);
        a *= tensor({2}, dtype);
        a -= tensor({1, 2, 3}, dtype);
        a *= 3;
        CHECK(values_of(a) == std::vector<double>{15, 18, 27});
        CHECK(values_of(old) == std::vector<double>{2, 3, 5});
        const Tensor& self = a;
        a += self;
        CHECK(values_of(a) == std::vector<double>{30, 36, 54});
        a -= self;
        a *= self;
        CHECK(values_of(a) == std::vector<double>{0, 0, 0});
        a += full({}, 7, dtype);
        CHECK(values_of(a) == std::vector<double>{7, 7, 7});
    }
}

TEST_CASE("arithmetic in place on an own buffer moves nothing") {
    Tensor a = ones({100});
    const Tensor b = ones({100});
    const std::byte* before = a.bytes();
    a += b;
    a -= b;
    a *= b;
    a *= 2;
    CHECK(a.bytes() == before);
}

TEST_CASE("assigning a tensor to itself, by copy or by move, keeps it") {
    Tensor a = tensor({1, 2, 3}, f64);
    Tensor& same = a;
    a = same;
    CHECK(values_of(a) == std::vector<double>{1, 2, 3});
    a = std::move(same);
    REQUIRE(a.defined());
    CHECK(values_of(a) == std::vector<double>{1, 2, 3});
    std::swap(a, same);
    CHECK(values_of(a) == std::vector<double>{1, 2, 3});
    CHECK(a.is_unique());
}

TEST_CASE("an undefined or moved-from tensor can be asked, copied and assigned, not read") {
    Tensor a = tensor({1, 2, 3}, f64);
    const Tensor b = std::move(a);
    for (Tensor* each : {&a}) {
        CHECK_FALSE(each->defined());
        CHECK_FALSE(each->is_unique());
        CHECK_FALSE(each->shares_buffer_with(*each));
        CHECK_FALSE(each->shares_buffer_with(b));
        CHECK(message_of([&] { (void)each->data<double>(); }) ==
              "tensor: undefined (default-constructed or moved from)");
        const Tensor copy = *each;
        CHECK_FALSE(copy.defined());
    }
    a = b;
    CHECK(values_of(a) == std::vector<double>{1, 2, 3});
    const Tensor none;
    CHECK(none.shape() == Shape{});
    CHECK(none.dtype() == f32);
}

TEST_CASE("a thousand random programs of copies and writes agree with plain vectors") {
    RandomState random(20);
    const auto below = [&](std::size_t n) { return std::size_t(random.next_interval(n - 1)); };
    for (int program = 0; program < 1000; ++program) {
        constexpr std::size_t count = 5;
        const std::size_t size = 1 + below(6);
        std::vector<Tensor> tensors;
        std::vector<std::vector<double>> model;
        for (std::size_t i = 0; i < count; ++i) {
            tensors.push_back(full({std::int64_t(size)}, double(i), f64));
            model.emplace_back(size, double(i));
        }
        for (int step = 0; step < 40; ++step) {
            const std::size_t i = below(count);
            const std::size_t j = below(count);
            const std::size_t k = below(size);
            const double number = double(step);
            switch (below(9)) {
                case 0:
                case 1:
                    tensors[i] = tensors[j];
                    model[i] = model[j];
                    break;
                case 2:
                    tensors[i].set({std::int64_t(k)}, number);
                    model[i][k] = number;
                    break;
                case 3:
                    tensors[i].mutable_data<double>()[k] = number;
                    model[i][k] = number;
                    break;
                case 4:
                    tensors[i] += tensors[j];
                    for (std::size_t m = 0; m < size; ++m) model[i][m] += model[j][m];
                    break;
                case 5:
                    tensors[i] *= 0.5;
                    for (double& value : model[i]) value *= 0.5;
                    break;
                case 6:
                    tensors[i] = reshape(tensors[j], {1, -1}).with_shape(tensors[i].shape());
                    model[i] = model[j];
                    break;
                case 7:
                    std::swap(tensors[i], tensors[j]);
                    std::swap(model[i], model[j]);
                    break;
                default: {
                    Tensor moved = std::move(tensors[i]);
                    moved.set({-1}, number);
                    model[i].back() = number;
                    tensors[i] = std::move(moved);
                }
            }
        }
        for (std::size_t i = 0; i < count; ++i) REQUIRE(values_of(tensors[i]) == model[i]);
    }
}
