// Every wrong call of a tensor function, with the whole text that the caller gets.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "tensor/support/data.hpp"

#include <functional>
#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

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

const Tensor a34 = ones({3, 4});
const Tensor b25 = ones({2, 5});
const Tensor i34 = ones({3, 4}, i64);
const Tensor d34 = ones({3, 4}, f64);
const Tensor flags = ones({3, 4}, boolean);
constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("shapes that do not broadcast are named, with the axis that differs") {
    const std::string fix = "; sizes must agree or be 1, counted from the right";
    const std::string pair =
        ": cannot broadcast (3, 4) with (2, 5): sizes 3 and 2 differ at axis -2" + fix;
    check_all<ShapeError>({
        {[] { add(a34, b25); }, "add" + pair},
        {[] { sub(a34, b25); }, "sub" + pair},
        {[] { mul(a34, b25); }, "mul" + pair},
        {[] { div(a34, b25); }, "div" + pair},
        {[] { pow(a34, b25); }, "pow" + pair},
        {[] { maximum(a34, b25); }, "maximum" + pair},
        {[] { minimum(a34, b25); }, "minimum" + pair},
        {[] { equal(a34, b25); }, "equal" + pair},
        {[] { not_equal(a34, b25); }, "not_equal" + pair},
        {[] { less(a34, b25); }, "less" + pair},
        {[] { less_equal(a34, b25); }, "less_equal" + pair},
        {[] { greater(a34, b25); }, "greater" + pair},
        {[] { greater_equal(a34, b25); }, "greater_equal" + pair},
        {[] { allclose(a34, b25); }, "allclose" + pair},
        {[] { a34 + b25; }, "add" + pair},
        {[] { a34 - b25; }, "sub" + pair},
        {[] { a34* b25; }, "mul" + pair},
        {[] { a34 / b25; }, "div" + pair},
        {[] {
             Tensor x = a34;
             x += b25;
         },
         "add" + pair},
        {[] { where(flags, a34, b25); }, "where" + pair},
        {[] {
             logical_and(flags, ones({3, 5}, boolean));
         },
         "logical_and: cannot broadcast (3, 4) with (3, 5): sizes 4 and 5 differ at axis -1" + fix},
        {[] {
             logical_or(ones({2, 1}, boolean), ones({3, 1}, boolean));
         },
         "logical_or: cannot broadcast (2, 1) with (3, 1): sizes 2 and 3 differ at axis -2" + fix},
        {[] {
             add(ones({2, 3, 4}), ones({3, 1, 1}));
         },
         "add: cannot broadcast (2, 3, 4) with (3, 1, 1): sizes 2 and 3 differ at axis -3" + fix},
        {[] {
             add(ones({5}), ones({2, 3, 4}));
         },
         "add: cannot broadcast (5,) with (2, 3, 4): sizes 5 and 4 differ at axis -1" + fix},
        {[] { add(ones({0}), ones({2})); },
         "add: cannot broadcast (0,) with (2,): sizes 0 and 2 differ at axis -1" + fix},
        {[] {
             Tensor x = ones({4});
             x += a34;
         },
         "add: cannot write (3, 4) into shape (4,)"},
        {[] {
             Tensor x = ones({1, 4});
             x *= a34;
         },
         "mul: cannot write (3, 4) into shape (1, 4)"},
        {[] {
             broadcast_to(a34, {5, 4});
         },
         "broadcast_to: cannot broadcast (3, 4) with (5, 4): sizes 3 and 5 differ at axis -2" +
             fix},
        {[] { broadcast_to(a34, {4}); }, "broadcast_to: (3, 4) does not broadcast to (4,)"},
        {[] {
             broadcast_to(a34, {1, 4});
         },
         "broadcast_to: (3, 4) does not broadcast to (1, 4)"},
        {[] { broadcast_to(ones({1}), {-1}); }, "broadcast_to: size -1 in shape (-1,) is negative"},
        {[] {
             sum_to(a34, {2, 4});
         },
         "sum_to: cannot broadcast (3, 4) with (2, 4): sizes 3 and 2 differ at axis -2" + fix},
        {[] {
             sum_to(a34, {2, 3, 4});
         },
         "sum_to: (3, 4) is not a broadcast of (2, 3, 4)"},
        {[] {
             sum_to(ones({1, 4}), {3, 4});
         },
         "sum_to: (1, 4) is not a broadcast of (3, 4)"},
    });
}

TEST_CASE("types that differ or do not fit are named, with the cast that helps") {
    const std::string pair =
        ": f32 (3, 4) and f64 (3, 4) have different types; convert one with astype";
    const std::string floats = "; convert with astype(f32) or astype(f64)";
    const std::string numbers = "; convert with astype(i64) or astype(f32)";
    const std::string truth = "; compare first, or convert with astype(boolean)";
    check_all<TypeError>({
        {[] { add(a34, d34); }, "add" + pair},
        {[] { sub(a34, d34); }, "sub" + pair},
        {[] { mul(a34, d34); }, "mul" + pair},
        {[] { div(a34, d34); }, "div" + pair},
        {[] { pow(a34, d34); }, "pow" + pair},
        {[] { maximum(a34, d34); }, "maximum" + pair},
        {[] { minimum(a34, d34); }, "minimum" + pair},
        {[] { equal(a34, d34); }, "equal" + pair},
        {[] { less(a34, d34); }, "less" + pair},
        {[] { allclose(a34, d34); }, "allclose" + pair},
        {[] { where(flags, a34, d34); }, "where" + pair},
        {[] { matmul(a34, d34); }, "matmul" + pair},
        {[] {
             Tensor x = a34;
             x -= d34;
         },
         "sub" + pair},
        {[] { div(i34, i34); }, "div: needs a floating tensor, got i64" + floats},
        {[] { i34 / 2; }, "div: needs a floating tensor, got i64" + floats},
        {[] { exp(i34); }, "exp: needs a floating tensor, got i64" + floats},
        {[] { log(flags); }, "log: needs a floating tensor, got boolean" + floats},
        {[] { sqrt(i34); }, "sqrt: needs a floating tensor, got i64" + floats},
        {[] { tanh(i34); }, "tanh: needs a floating tensor, got i64" + floats},
        {[] { relu(i34); }, "relu: needs a floating tensor, got i64" + floats},
        {[] { mean(i34); }, "mean: needs a floating tensor, got i64" + floats},
        {[] { var(i34); }, "var: needs a floating tensor, got i64" + floats},
        {[] { softmax(i34); }, "softmax: needs a floating tensor, got i64" + floats},
        {[] { log_softmax(i34); }, "log_softmax: needs a floating tensor, got i64" + floats},
        {[] { softmax_vjp(i34, i34, -1); },
         "softmax_vjp: needs a floating tensor, got i64" + floats},
        {[] { add(flags, flags); }, "add: needs numbers, got boolean" + numbers},
        {[] { neg(flags); }, "neg: needs numbers, got boolean" + numbers},
        {[] { abs(flags); }, "abs: needs numbers, got boolean" + numbers},
        {[] { flags + 1; }, "add: needs numbers, got boolean" + numbers},
        {[] { max(flags); }, "max: needs numbers, got boolean" + numbers},
        {[] { argmax(flags); }, "argmax: needs numbers, got boolean" + numbers},
        {[] { matmul(flags, transpose(flags)); }, "matmul: needs numbers, got boolean" + numbers},
        {[] { i34 + 0.5; }, "add: 0.5 is not an integer, the tensor is i64" + floats},
        {[] { i34 * 0.5; }, "scale: 0.5 is not an integer, the tensor is i64" + floats},
        {[] { 0.5 - i34; }, "sub: 0.5 is not an integer, the tensor is i64" + floats},
        {[] { pow(i34, 0.5); }, "pow: 0.5 is not an integer, the tensor is i64" + floats},
        {[] {
             Tensor x = i34;
             x *= 0.5;
         },
         "scale: 0.5 is not an integer, the tensor is i64" + floats},
        {[] { logical_and(flags, a34); },
         "logical_and: needs boolean tensors, got boolean and f32" + truth},
        {[] { logical_not(a34); }, "logical_not: needs a boolean tensor, got f32" + truth},
        {[] { where(a34, a34, a34); },
         "where: the condition must be boolean, got f32 (3, 4)" + truth},
        {[] {
             concat({a34, d34});
         },
         "concat: tensor 0 is f32 (3, 4), tensor 1 is f64 (3, 4); convert one with astype"},
        {[] {
             stack({a34, i34});
         },
         "stack: tensor 0 is f32 (3, 4), tensor 1 is i64 (3, 4); convert one with astype"},
        {[] { arange(0, 3, 1, boolean); }, "arange: needs numbers, got boolean"},
        {[] { linspace(0, 1, 3, i64); },
         "linspace: needs f32 or f64, got i64; use arange for integers"},
        {[] { (void)a34.data<double>(); },
         "tensor: a f32 tensor of shape (3, 4) holds no f64 elements; read it as f32, or convert "
         "with astype(f64)"},
        {[] {
             (void)i34.at<float>({0, 0});
         },
         "tensor: a i64 tensor of shape (3, 4) holds no f32 elements; read it as i64, or convert "
         "with astype(f32)"},
    });
}

TEST_CASE("axes and indices outside are named, with the range they have") {
    const std::string range = " is outside shape (3, 4); axes go from -2 to 1";
    check_all<IndexError>({
        {[] { sum(a34, {.axes = {2}}); }, "sum: axis 2" + range},
        {[] { mean(a34, {.axes = {-3}}); }, "mean: axis -3" + range},
        {[] { max(a34, {.axes = {5}}); }, "max: axis 5" + range},
        {[] { min(a34, {.axes = {5}}); }, "min: axis 5" + range},
        {[] { var(a34, {.axes = {5}}); }, "var: axis 5" + range},
        {[] { argmax(a34, {.axis = 2}); }, "argmax: axis 2" + range},
        {[] { softmax(a34, 2); }, "softmax: axis 2" + range},
        {[] { log_softmax(a34, -3); }, "log_softmax: axis -3" + range},
        {[] { softmax_vjp(a34, a34, 2); }, "softmax_vjp: axis 2" + range},
        {[] { slice(a34, 2, {}); }, "slice: axis 2" + range},
        {[] {
             slice_scatter(a34, {3, 4}, 2, {});
         },
         "slice_scatter: axis 2" + range},
        {[] {
             concat({a34, a34}, 2);
         },
         "concat: axis 2" + range},
        {[] { transpose(a34, 0, 2); }, "transpose: axis 2" + range},
        {[] {
             permute(a34, {0, 2});
         },
         "permute: axis 2" + range},
        {[] { (void)a34.size(2); }, "size: axis 2" + range},
        {[] {
             stack({a34, a34}, 3);
         },
         "stack: axis 3 is outside shape (3, 4, 1); axes go from -3 to 2"},
        {[] {
             sum(a34, {.axes = {0, -2}});
         },
         "sum: axis -2 of shape (3, 4) is named twice"},
        {[] {
             permute(a34, {1, 1});
         },
         "permute: axis 1 of shape (3, 4) is named twice"},
        {[] { permute(a34, {1}); }, "permute: 1 axes given for shape (3, 4), which has 2"},
        {[] {
             permute(a34, {0, 1, 2});
         },
         "permute: 3 axes given for shape (3, 4), which has 2"},
        {[] { sum(ones({}), {.axes = {0}}); },
         "sum: axis 0 does not exist in shape (), which has no axes"},
        {[] {
             concat({ones({}), ones({})});
         },
         "concat: axis 0 does not exist in shape (), which has no axes"},
        {[] {
             (void)Axes({0, 1, 2, 3, 4, 5, 6, 7, 8});
         },
         "axes: 9 axes given, a tensor has at most 8"},
        {[] {
             (void)a34.at({3, 0});
         },
         "at: index 3 is outside axis 0 of shape (3, 4)"},
        {[] {
             (void)a34.at({0, -5});
         },
         "at: index -5 is outside axis 1 of shape (3, 4)"},
        {[] { (void)a34.at({0}); }, "at: 1 indices given for shape (3, 4), which has 2 axes"},
        {[] { (void)zeros({0}).at({0}); }, "at: index 0 is outside axis 0 of shape (0,)"},
    });
}

TEST_CASE("products of wrong shapes name both, with the inner sizes") {
    check_all<ShapeError>({
        {[] { matmul(a34, a34); },
         "matmul: cannot multiply (3, 4) by (3, 4): inner sizes 4 and 3 differ; transpose b"},
        {[] { matmul(a34, b25); },
         "matmul: cannot multiply (3, 4) by (2, 5): inner sizes 4 and 2 differ"},
        {[] { matmul(a34, a34, {.transpose_a = true, .transpose_b = true}); },
         "matmul: cannot multiply (3, 4) transposed by (3, 4) transposed: inner sizes 3 and 4 "
         "differ; do not transpose b"},
        {[] {
             matmul(ones({2, 3, 4}), ones({3, 4, 5}));
         },
         "matmul: cannot broadcast (2,) with (3,): sizes 2 and 3 differ at axis -1; sizes must "
         "agree or be 1, "
         "counted from the right"},
        {[] { matmul(ones({3}), ones({4})); },
         "matmul: cannot multiply (3,) by (4,): inner sizes 3 and 4 differ"},
        {[] { matmul(ones({3}), b25); },
         "matmul: cannot multiply (3,) by (2, 5): inner sizes 3 and 2 differ"},
        {[] { matmul(a34, ones({3})); },
         "matmul: cannot multiply (3, 4) by (3,): inner sizes 4 and 3 differ"},
        {[] { matmul(ones({}), a34); },
         "matmul: needs at least one axis, got () and (3, 4); use mul or scale for numbers"},
        {[] { matmul(ones({3}), a34, {.transpose_a = true}); },
         "matmul: a vector cannot be transposed, got (3,) and (3, 4)"},
    });
}

TEST_CASE("shape functions name the shapes that do not fit") {
    check_all<ShapeError>({
        {[] {
             reshape(a34, {5, 3});
         },
         "reshape: (3, 4) has 12 elements, (5, 3) has 15"},
        {[] {
             reshape(a34, {5, -1});
         },
         "reshape: no size for -1 makes (5, -1) hold the 12 elements of (3, 4)"},
        {[] {
             reshape(a34, {-1, -1});
         },
         "reshape: size -1 in (-1, -1) appears twice"},
        {[] {
             reshape(a34, {-2, 6});
         },
         "reshape: size -2 in (-2, 6) is negative"},
        {[] {
             reshape(zeros({0, 3}), {0, -1});
         },
         "reshape: no size for -1 makes (0, -1) hold the 0 elements of (0, 3)"},
        {[] {
             reshape(a34, {std::int64_t{1} << 40, std::int64_t{1} << 40});
         },
         "reshape: shape (1099511627776, 1099511627776) of f32 is too large: its bytes exceed "
         "2^62"},
        {[] { transpose(ones({3})); }, "transpose: needs two axes, shape (3,) has 1"},
        {[] {
             concat({a34, b25});
         },
         "concat: tensor 0 is (3, 4), tensor 1 is (2, 5): only axis 0 may differ"},
        {[] {
             concat({a34, a34, ones({4})}, -1);
         },
         "concat: tensor 0 is (3, 4), tensor 2 is (4,): only axis 1 may differ"},
        {[] {
             stack({a34, b25});
         },
         "stack: tensor 0 is (3, 4), tensor 1 is (2, 5): shapes must be equal"},
        {[] {
             stack({ones({1, 1, 1, 1, 1, 1, 1, 1})});
         },
         "stack: (1, 1, 1, 1, 1, 1, 1, 1) has 8 axes, no room for another"},
        {[] {
             slice_scatter(a34, {3, 4}, 0, {.stop = 2});
         },
         "slice_scatter: the slice of (3, 4) has shape (2, 4), got (3, 4)"},
        {[] { softmax_vjp(a34, b25, -1); },
         "softmax_vjp: result f32 (3, 4) and gradient f32 (2, 5) differ"},
        {[] {
             tensor({{1, 2}, {3}});
         },
         "tensor: ragged list: 1 items at depth 1 where shape (2, 2) has 2"},
        {[] {
             tensor({{1, 2}, 3});
         },
         "tensor: ragged list: a number at depth 1 where shape (2, 2) has a list"},
        {[] {
             tensor({1, {2}});
         },
         "tensor: ragged list: 1 items at depth 1 where shape (2,) has a number"},
        {[] {
             from_values(std::vector<double>{1, 2, 3}, {2, 2});
         },
         "from_values: shape (2, 2) holds 4 elements, 3 given"},
        {[] {
             from_span<float>(std::vector<float>{1, 2, 3}, {2});
         },
         "from_span: shape (2,) holds 2 elements, 3 given"},
        {[] {
             zeros({2, -1});
         },
         "tensor: size -1 in shape (2, -1) is negative"},
        {[] { eye(-1); }, "tensor: size -1 in shape (-1, -1) is negative"},
        {[] {
             ones({2, 2, 1, 2305843009213693952});
         },
         "tensor: shape (2, 2, 1, 2305843009213693952) of f32 is too large: its bytes exceed 2^62"},
        {[] {
             zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}, boolean);
         },
         "tensor: shape (1099511627776, 1099511627776) of boolean is too large: its bytes exceed "
         "2^62"},
        {[] {
             zeros({0, std::int64_t{1} << 62, 4});
         },
         "tensor: shape (0, 4611686018427387904, 4) of f32 is too large: its bytes exceed 2^62"},
        {[] {
             broadcast_to(ones({1}), {std::int64_t{1} << 31, std::int64_t{1} << 31});
         },
         "broadcast_to: shape (2147483648, 2147483648) of f32 is too large: its bytes exceed 2^62"},
        {[] { arange(0, 2e18); }, "arange: 0 to 2e+18 by 1 is 2e+18 elements, too many"},
        {[] { arange(0, 1e18); },
         "tensor: shape (1000000000000000000,) of i64 is too large: its bytes exceed 2^62"},
        {[] { arange(-1e308, 1e308); }, "arange: -1e+308 to 1e+308 by 1 is inf elements, too many"},
    });
}

TEST_CASE("values that are not allowed are named") {
    const std::string none =
        ": nothing to reduce: shape (0, 4) has no elements along the axes asked";
    check_all<ValueError>({
        {[] {
             mean(zeros({0, 4}));
         },
         "mean" + none},
        {[] {
             max(zeros({0, 4}));
         },
         "max" + none},
        {[] {
             min(zeros({0, 4}), {.axes = {0}});
         },
         "min" + none},
        {[] {
             var(zeros({0, 4}));
         },
         "var" + none},
        {[] {
             argmax(zeros({0, 4}), {.axis = 0});
         },
         "argmax" + none},
        {[] { var(ones({1}), {.correction = 1}); },
         "var: 1 elements with correction 1 leave no degree of freedom"},
        {[] { pow(i34, -1.0); },
         "pow: i64 1 to the negative power -1 is not an integer; convert with astype(f64)"},
        {[] {
             pow(i34, full({3, 4}, -2, i64));
         },
         "pow: i64 1 to the negative power -2 is not an integer; convert with astype(f64)"},
        {[] { i34 + 1e300; }, "add: 1e+300 does not fit i64"},
        {[] { i34 * -inf; }, "scale: -inf does not fit i64"},
        {[] { slice(a34, 1, {.step = 0}); }, "slice: step 0 along axis 1 of shape (3, 4)"},
        {[] {
             slice_scatter(a34, {3, 4}, -1, {.step = 0});
         },
         "slice_scatter: step 0 along axis -1 of shape (3, 4)"},
        {[] { concat({}); }, "concat: no tensors given"},
        {[] { stack({}); }, "stack: no tensors given"},
        {[] { (void)a34.item(); },
         "item: shape (3, 4) has 12 elements, not one; name an element with at({…})"},
        {[] { (void)zeros({0}).item(); },
         "item: shape (0,) has 0 elements, not one; name an element with at({…})"},
        {[] { arange(0, 5, 0); }, "arange: cannot count from 0 to 5 by 0"},
        {[] { arange(0, inf); }, "arange: cannot count from 0 to inf by 1"},
        {[] { linspace(0, 1, -2); }, "linspace: -2 values asked for"},
        {[] { tensor({1e300}, i64); }, "tensor: 1e+300 does not fit i64"},
        {[] { from_values(std::vector<double>{inf}, {1}, i64); },
         "from_values: inf does not fit i64"},
    });
}

TEST_CASE("errors say in which scope they happened, before the likely fix") {
    const Scope block("blocks.1");
    const Scope attention("attention");
    CHECK(message_of([] { matmul(a34, a34); }) ==
          "matmul: cannot multiply (3, 4) by (3, 4): inner sizes 4 and 3 differ, in "
          "blocks.1.attention; "
          "transpose b");
    CHECK(message_of([] { reshape(a34, {7}); }) ==
          "reshape: (3, 4) has 12 elements, (7,) has 7, in blocks.1.attention");
}
