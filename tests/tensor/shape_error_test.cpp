// Shapes that do not fit.

#include <glassgrad/tensor.hpp>

#include "tensor/support/wrong.hpp"

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

const Tensor a34 = ones({3, 4});
const Tensor b25 = ones({2, 5});
const Tensor flags = ones({3, 4}, boolean);

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
         "matmul: cannot multiply (2, 3, 4) by (3, 4, 5): leading axes (2,) and (3,) do not "
         "broadcast; leading axes must agree or be 1, counted from the right"},
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
