// Wrong types, axes, indices and values, and where an error says it happened.

#include <glassgrad/tensor.hpp>

#include "tensor/support/wrong.hpp"

#include <limits>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

const Tensor a34 = ones({3, 4});
const Tensor b25 = ones({2, 5});
const Tensor i34 = ones({3, 4}, i64);
const Tensor d34 = ones({3, 4}, f64);
const Tensor flags = ones({3, 4}, boolean);
constexpr double inf = std::numeric_limits<double>::infinity();

}  // namespace

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
