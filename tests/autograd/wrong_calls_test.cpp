// Wrong calls and what they say: the op, the shapes and types, the names of the tensors that have
// one, the layer, and the likely fix. One table; every text is exact.

#include "autograd/support/checks.hpp"

#include <functional>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

using In = std::span<const Variable>;

struct WrongCall {
    std::string what;
    std::function<void()> call;
    std::string text;
};

const Variable x = parameter(uneven({2, 3}), "x");
const Variable unnamed = parameter(uneven({2, 3}));
const Variable narrow = parameter(ones({2, 3}), "narrow");
const Variable W_Q = parameter(uneven({4, 3}), "W_Q");
const Variable W_K = parameter(uneven({3, 4}), "W_K");
const Variable hidden = parameter(uneven({5, 2, 3}), "hidden");
const Variable pair = parameter(uneven({2, 2}), "pair");
const Variable bias = parameter(uneven({3}), "bias");
const Variable bias4 = parameter(uneven({4}), "bias4");
const Variable scalar = parameter(tensor(2.0, f64), "scalar");
const Variable none = parameter(zeros({0, 3}, f64), "none");
const Variable ids = Variable(tensor({0, 7}, i64)).set_name("ids");
const Variable mask = Variable(ones({2, 3}, boolean)).set_name("mask");

template <class F>
auto in_layer(const F& f) {
    const Scope blocks("blocks");
    const Scope first("1");
    const Scope attention("attention");
    return f();
}

Variable under_no_grad() {
    const NoGrad off;
    return sum(x);
}

void twice() {
    const Variable y = sum(x * x);
    grad({y}, {x});
    backward(y);
}

void inside_a_hook() {
    const Variable y = sum(x * x);
    Variable z = y * 2.0;
    z.register_hook([&](const Variable& g) {
        backward(y);
        return g;
    });
    backward(z);
}

void wrong_hook() {
    Variable y = x * 2.0;
    y.register_hook([](const Variable& g) { return sum(g); });
    backward(sum(y));
}

std::vector<WrongCall> wrong_calls() {
    return {
        {"matmul: inner sizes", [&] { matmul(x, W_Q); },
         "matmul: cannot multiply (2, 3) by (4, 3): inner sizes 3 and 4 differ (a is 'x', b is "
         "'W_Q'); transpose b"},
        {"matmul: inner sizes, nobody has a name", [&] { matmul(unnamed, unnamed); },
         "matmul: cannot multiply (2, 3) by (2, 3): inner sizes 3 and 2 differ; transpose b"},
        {"matmul: transposed where it need not be",
         [&] { matmul(x, W_Q, {.transpose_a = true, .transpose_b = true}); },
         "matmul: cannot multiply (2, 3) transposed by (4, 3) transposed: inner sizes 2 and 3 "
         "differ (a is 'x', b is 'W_Q')"},
        {"matmul: stacks that do not broadcast",
         [&] {
             matmul(hidden, parameter(ones({2, 3, 4}, f64), "W_O"));
         },
         "matmul: cannot multiply (5, 2, 3) by (2, 3, 4): leading axes (5,) and (2,) do not "
         "broadcast (a is 'hidden', b is 'W_O'); leading axes must agree or be 1, counted from the "
         "right"},
        {"matmul: types", [&] { matmul(narrow, W_K); },
         "matmul: f32 (2, 3) and f64 (3, 4) have different types (a is 'narrow', b is 'W_K'); "
         "convert one with astype"},
        {"matmul: a scalar", [&] { matmul(x, scalar); },
         "matmul: needs at least one axis, got (2, 3) and () (a is 'x', b is 'scalar'); use mul or "
         "scale for numbers"},
        {"matmul: a vector of another length", [&] { matmul(W_K, bias); },
         "matmul: cannot multiply (3, 4) by (3,): inner sizes 4 and 3 differ (a is 'W_K', b is "
         "'bias')"},
        {"matmul: in a layer", [&] { in_layer([&] { return matmul(x, W_Q); }); },
         "matmul: cannot multiply (2, 3) by (4, 3): inner sizes 3 and 4 differ (a is 'x', b is "
         "'W_Q'), in blocks.1.attention; transpose b"},
        {"matmul: booleans", [&] { matmul(mask, mask); },
         "matmul: cannot multiply (2, 3) by (2, 3): inner sizes 3 and 2 differ (a is 'mask', b is "
         "'mask'); transpose b"},
        {"add: shapes", [&] { x + W_Q; },
         "add: cannot broadcast (2, 3) with (4, 3): sizes 2 and 4 differ at axis -2 (a is 'x', b "
         "is 'W_Q'); sizes must agree or be 1, counted from the right"},
        {"add: types", [&] { x + narrow; },
         "add: f64 (2, 3) and f32 (2, 3) have different types (a is 'x', b is 'narrow'); convert "
         "one with astype"},
        {"sub: shapes", [&] { x - pair; },
         "sub: cannot broadcast (2, 3) with (2, 2): sizes 3 and 2 differ at axis -1 (a is 'x', b "
         "is 'pair'); sizes must agree or be 1, counted from the right"},
        {"mul: shapes, one without a name", [&] { unnamed* bias4; },
         "mul: cannot broadcast (2, 3) with (4,): sizes 3 and 4 differ at axis -1 (b is 'bias4'); "
         "sizes must agree or be 1, counted from the right"},
        {"div: types", [&] { x / ids; },
         "div: f64 (2, 3) and i64 (2,) have different types (a is 'x', b is 'ids'); convert one "
         "with astype"},
        {"div: integers", [&] { ids / ids; },
         "div: needs a floating tensor, got i64 (a is 'ids', b is 'ids'); convert with astype(f32) "
         "or astype(f64)"},
        {"pow: shapes", [&] { pow(x, W_Q); },
         "pow: cannot broadcast (2, 3) with (4, 3): sizes 2 and 4 differ at axis -2 (a is 'x', b "
         "is 'W_Q'); sizes must agree or be 1, counted from the right"},
        {"add: booleans", [&] { mask + mask; },
         "add: needs numbers, got boolean (a is 'mask', b is 'mask'); convert with astype(i64) or "
         "astype(f32)"},
        {"add: a fraction to integers", [&] { ids + 0.5; },
         "add: 0.5 is not an integer, the tensor is i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"scale: booleans", [&] { mask * 2.0; },
         "scale: needs numbers, got boolean (x is 'mask'); convert with astype(i64) or "
         "astype(f32)"},
        {"exp: integers", [&] { exp(ids); },
         "exp: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"log: booleans", [&] { log(mask); },
         "log: needs a floating tensor, got boolean (x is 'mask'); convert with astype(f32) or "
         "astype(f64)"},
        {"sqrt: integers", [&] { sqrt(ids); },
         "sqrt: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"tanh: integers", [&] { tanh(ids); },
         "tanh: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"where: the condition is a number", [&] { where(x, x, x); },
         "where: the condition must be boolean, got f64 (2, 3) (condition is 'x', a is 'x', b is "
         "'x'); compare first, or convert with astype(boolean)"},
        {"where: shapes", [&] { where(mask, x, W_Q); },
         "where: cannot broadcast (2, 3) with (4, 3): sizes 2 and 4 differ at axis -2 (condition "
         "is 'mask', a is 'x', b is 'W_Q'); sizes must agree or be 1, counted from the right"},
        {"where: types of the branches", [&] { where(mask, x, narrow); },
         "where: f64 (2, 3) and f32 (2, 3) have different types (condition is 'mask', a is 'x', b "
         "is 'narrow'); convert one with astype"},
        {"an operand is undefined", [&] { x + Variable(); },
         "variable: undefined (default-constructed or moved from) (a is 'x')"},
        {"an undefined operand of exp", [&] { exp(Variable()); },
         "variable: undefined (default-constructed or moved from)"},
        {"sum: an axis outside", [&] { sum(x, {.axes = {2}}); },
         "sum: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"sum: an axis twice",
         [&] {
             sum(hidden, {.axes = {1, -2}});
         },
         "sum: axis -2 of shape (5, 2, 3) is named twice (x is 'hidden')"},
        {"mean: an axis outside", [&] { mean(x, {.axes = {-3}}); },
         "mean: axis -3 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"mean: integers", [&] { mean(ids); },
         "mean: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"max: nothing", [&] { max(none, {.axes = {0}}); },
         "max: nothing to reduce: shape (0, 3) has no elements along the axes asked (x is 'none')"},
        {"mean: nothing", [&] { mean(none); },
         "mean: nothing to reduce: shape (0, 3) has no elements along the axes asked (x is "
         "'none')"},
        {"max: an axis outside", [&] { max(x, {.axes = {7}}); },
         "max: axis 7 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"sum_to: a shape that is no source",
         [&] {
             sum_to(x, {2, 2});
         },
         "sum_to: cannot broadcast (2, 3) with (2, 2): sizes 3 and 2 differ at axis -1 (x is 'x'); "
         "sizes must agree or be 1, counted from the right"},
        {"reshape: elements",
         [&] {
             reshape(x, {4, 2});
         },
         "reshape: (2, 3) has 6 elements, (4, 2) has 8 (x is 'x')"},
        {"reshape: two unknown sizes",
         [&] {
             reshape(x, {-1, -1});
         },
         "reshape: size -1 in (-1, -1) appears twice (x is 'x')"},
        {"reshape: does not divide",
         [&] {
             reshape(x, {4, -1});
         },
         "reshape: no size for -1 makes (4, -1) hold the 6 elements of (2, 3) (x is 'x')"},
        {"permute: too few axes",
         [&] {
             permute(hidden, {0, 1});
         },
         "permute: 2 axes given for shape (5, 2, 3), which has 3 (x is 'hidden')"},
        {"permute: an axis twice",
         [&] {
             permute(hidden, {0, 1, 1});
         },
         "permute: axis 1 of shape (5, 2, 3) is named twice (x is 'hidden')"},
        {"permute: an axis outside",
         [&] {
             permute(hidden, {0, 1, 3});
         },
         "permute: axis 3 is outside shape (5, 2, 3) (x is 'hidden'); axes go from -3 to 2"},
        {"transpose: a vector", [&] { transpose(bias); },
         "transpose: needs two axes, shape (3,) has 1 (x is 'bias')"},
        {"transpose: an axis outside", [&] { transpose(x, 0, 2); },
         "transpose: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"slice: step zero", [&] { slice(x, 0, {.step = 0}); },
         "slice: step 0 along axis 0 of shape (2, 3) (x is 'x')"},
        {"slice: an axis outside", [&] { slice(x, 2, {.start = 1}); },
         "slice: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"slice_scatter: another shape",
         [&] {
             slice_scatter(x, {4, 3}, 0, {.step = 1});
         },
         "slice_scatter: the slice of (4, 3) has shape (4, 3), got (2, 3) (x is 'x')"},
        {"concat: sizes",
         [&] {
             concat({x, W_Q}, 1);
         },
         "concat: tensor 0 is (2, 3), tensor 1 is (4, 3): only axis 1 may differ (a is 'x', b is "
         "'W_Q')"},
        {"concat: ranks",
         [&] {
             concat({x, bias}, 0);
         },
         "concat: tensor 0 is (2, 3), tensor 1 is (3,): only axis 0 may differ (a is 'x', b is "
         "'bias')"},
        {"concat: types",
         [&] {
             concat({x, narrow}, 0);
         },
         "concat: tensor 0 is f64 (2, 3), tensor 1 is f32 (2, 3) (a is 'x', b is 'narrow'); "
         "convert one with astype"},
        {"concat: nothing", [&] { concat(std::vector<Variable>(), 0); },
         "concat: no tensors given"},
        {"concat: an axis outside",
         [&] {
             concat({x, x}, 2);
         },
         "concat: axis 2 is outside shape (2, 3) (a is 'x', b is 'x'); axes go from -2 to 1"},
        {"broadcast_to: sizes",
         [&] {
             broadcast_to(x, {4, 3});
         },
         "broadcast_to: cannot broadcast (2, 3) with (4, 3): sizes 2 and 4 differ at axis -2 (x is "
         "'x'); sizes must agree or be 1, counted from the right"},
        {"broadcast_to: fewer axes",
         [&] {
             broadcast_to(hidden, {5, 3});
         },
         "broadcast_to: cannot broadcast (5, 2, 3) with (5, 3): sizes 2 and 5 differ at axis -2 (x "
         "is 'hidden'); sizes must agree or be 1, counted from the right"},
        {"softmax: an axis outside", [&] { softmax(x, 2); },
         "softmax: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"softmax: integers", [&] { softmax(ids); },
         "softmax: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"layer_norm: a weight of another shape", [&] { layer_norm(x, bias4, bias); },
         "layer_norm: weight (4,) does not fit (2, 3), whose axes have the sizes (3,) (x is 'x', "
         "weight is 'bias4', bias is 'bias')"},
        {"layer_norm: types", [&] { layer_norm(x, parameter(ones({3}), "gain"), bias); },
         "layer_norm: weight is f32, x is f64 (x is 'x', weight is 'gain', bias is 'bias'); "
         "convert one with astype"},
        {"rms_norm: a weight of another shape", [&] { rms_norm(x, bias4); },
         "rms_norm: weight (4,) does not fit (2, 3), whose axes have the sizes (3,) (x is 'x', "
         "weight is 'bias4')"},
        {"cross_entropy: fewer targets", [&] { cross_entropy(W_Q, ids); },
         "cross_entropy: targets (2,) do not fit logits (4, 3), they need (4,) (logits is 'W_Q', "
         "target is 'ids'); class numbers have the shape of the logits without the axis of the "
         "classes; probabilities, in f32 or f64, their whole shape"},
        {"cross_entropy: a class outside", [&] { cross_entropy(x, ids); },
         "cross_entropy: target 7 at (1,) is outside 0 to 2, the 3 classes of logits (2, 3) "
         "(logits is 'x', target is 'ids'); targets that do not count have the ignore_index, -100"},
        {"cross_entropy: targets of fractions", [&] { cross_entropy(x, bias); },
         "cross_entropy: probabilities (3,) do not fit logits (2, 3) (logits is 'x', target is "
         "'bias'); class numbers are i64, of the shape of the logits without the axis of the "
         "classes"},
        {"cross_entropy: probabilities of another rank, another axis",
         [&] { cross_entropy(x, bias, {.axis = 0}); },
         "cross_entropy: probabilities (3,) do not fit logits (2, 3); class numbers are i64, of "
         "the shape of the logits without the axis of the classes"},
        {"nll_loss: probabilities, another axis", [&] { nll_loss(x, bias, {.axis = 0}); },
         "nll_loss: targets are f64 (log_p is 'x', target is 'bias'); class numbers are i64"},
        {"cross_entropy_vjp: fewer targets",
         [&] {
             cross_entropy_vjp(W_Q, Variable(tensor({0, 1}, i64)), scalar, {});
         },
         "cross_entropy_vjp: targets (2,) do not fit logits (4, 3), they need (4,); class numbers "
         "have the shape of the logits without the axis of the classes; probabilities, in f32 or "
         "f64, their whole shape"},
        {"cross_entropy_vjp: the gradient",
         [&] {
             const NoGrad off;
             cross_entropy_vjp(x, Variable(tensor({0, 1}, i64)), bias, {});
         },
         "cross_entropy_vjp: the gradient is f64 (3,), the loss of f64 (2, 3) is f64 ()"},
        {"layer_norm_vjp: an undefined gradient", [&] { layer_norm_vjp(x.value(), Tensor(), {}); },
         "layer_norm_vjp: a tensor is undefined (default-constructed or moved from)"},
        {"nll_loss: a class outside", [&] { nll_loss(x, ids); },
         "nll_loss: target 7 at (1,) is outside 0 to 2, the 3 classes of logits (2, 3) (log_p is "
         "'x', target is 'ids'); targets that do not count have the ignore_index, -100"},
        {"attention: sizes of query and key",
         [&] {
             scaled_dot_product_attention(hidden, parameter(ones({2, 5, 4}, f64), "k"), hidden);
         },
         "scaled_dot_product_attention: q (5, 2, 3), k (2, 5, 4) and v (5, 2, 3): q and k have the "
         "widths 3 and 4 (q is 'hidden', k is 'k', v is 'hidden')"},
        {"attention: a negative window",
         [&] { scaled_dot_product_attention(hidden, hidden, hidden, {.window = -1}); },
         "scaled_dot_product_attention: the window -1 is negative (q is 'hidden', k is 'hidden', v "
         "is 'hidden'); pass 0 for none"},
        {"attention: a boolean bias",
         [&] {
             const Tensor allowed = ones({2, 2}, boolean);
             scaled_dot_product_attention(hidden, hidden, hidden, {.bias = allowed});
         },
         "scaled_dot_product_attention: the bias is boolean, q is f64 (q is 'hidden', k is "
         "'hidden', v is 'hidden'); pass it as .mask"},
        {"attention: a bias for other scores",
         [&] {
             const Tensor wide = ones({2, 3}, f64);
             scaled_dot_product_attention(hidden, hidden, hidden, {.bias = wide});
         },
         "scaled_dot_product_attention: cannot broadcast (2, 3) with (5, 2, 2): sizes 3 and 2 "
         "differ at axis -1 (q is 'hidden', k is 'hidden', v is 'hidden'); sizes must agree or be "
         "1, counted from the right"},
        {"attention: slopes for other heads",
         [&] { scaled_dot_product_attention(hidden, hidden, hidden, {.alibi = ones({2}, f64)}); },
         "scaled_dot_product_attention: the slopes of alibi (2,) are not for the 5 heads of the "
         "scores (5, 2, 2) (q is 'hidden', k is 'hidden', v is 'hidden'); one slope a head of q"},
        {"mse_loss: shapes", [&] { mse_loss(x, W_Q); },
         "mse_loss: x (2, 3) and target (4, 3) have different shapes (x is 'x', target is 'W_Q'); "
         "reshape one of them; a loss does not broadcast"},
        {"l1_loss: types", [&] { l1_loss(x, narrow); },
         "l1_loss: x is f64, the target f32 (x is 'x', target is 'narrow'); convert one with "
         "astype"},
        {"huber_loss: shapes", [&] { huber_loss(x, pair); },
         "huber_loss: x (2, 3) and target (2, 2) have different shapes (x is 'x', target is "
         "'pair'); reshape one of them; a loss does not broadcast"},
        {"bce_with_logits: shapes", [&] { bce_with_logits(x, bias4); },
         "bce_with_logits: x (2, 3) and target (4,) have different shapes (x is 'x', target is "
         "'bias4'); reshape one of them; a loss does not broadcast"},
        {"kl_div: types", [&] { kl_div(x, narrow); },
         "kl_div: x is f64, the target f32 (x is 'x', target is 'narrow'); convert one with "
         "astype"},
        {"attention_scores: widths", [&] { attention_scores(hidden, pair); },
         "attention_scores: q (5, 2, 3) and k (2, 2) have the widths 3 and 2 (q is 'hidden', k is "
         "'pair')"},
        {"weighted_sum: sizes", [&] { weighted_sum(x, W_Q); },
         "weighted_sum: weights (2, 3) for 3 keys, but 4 values in (4, 3) (w is 'x', v is 'W_Q')"},
        {"maximum: shapes", [&] { maximum(x, W_Q); },
         "maximum: cannot broadcast (2, 3) with (4, 3): sizes 2 and 4 differ at axis -2 (a is 'x', "
         "b is 'W_Q'); sizes must agree or be 1, counted from the right"},
        {"minimum: types", [&] { minimum(x, narrow); },
         "minimum: f64 (2, 3) and f32 (2, 3) have different types (a is 'x', b is 'narrow'); "
         "convert one with astype"},
        {"clamp: no bound", [&] { clamp(x, {}); },
         "clamp: neither min nor max is given (x is 'x')"},
        {"masked_fill: a mask of numbers", [&] { masked_fill(x, x, 0); },
         "masked_fill: the mask must be boolean, got f64 (2, 3) (x is 'x', mask is 'x'); compare "
         "first, or convert with astype(boolean)"},
        {"masked_fill: the shape of the mask", [&] { masked_fill(W_Q, mask, 0); },
         "masked_fill: cannot broadcast (4, 3) with (2, 3): sizes 4 and 2 differ at axis -2 (x is "
         "'W_Q', mask is 'mask'); sizes must agree or be 1, counted from the right"},
        {"gelu: integers", [&] { gelu(ids); },
         "gelu: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"sigmoid: booleans", [&] { sigmoid(mask); },
         "sigmoid: needs a floating tensor, got boolean (x is 'mask'); convert with astype(f32) or "
         "astype(f64)"},
        {"abs: booleans", [&] { abs(mask); },
         "abs: needs numbers, got boolean (x is 'mask'); convert with astype(i64) or astype(f32)"},
        {"erf: integers", [&] { erf(ids); },
         "erf: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"var: an axis outside", [&] { var(x, {.axes = {2}}); },
         "var: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"std: integers", [&] { glassgrad::std(ids); },
         "std: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"prod: an axis outside", [&] { prod(x, {.axes = {2}}); },
         "prod: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"min: nothing", [&] { min(none, {.axes = {0}}); },
         "min: nothing to reduce: shape (0, 3) has no elements along the axes asked (x is 'none')"},
        {"argmax: a gradient would be lost", [&] { argmax(x); },
         "argmax: has no derivative, and 'x' of shape (2, 3) requires a gradient, which would be "
         "lost; compute it under NoGrad, or on x.detach()"},
        {"argmin: an axis outside", [&] { argmin(x.detach(), {.axis = 2}); },
         "argmin: axis 2 is outside shape (2, 3); axes go from -2 to 1"},
        {"logsumexp: an axis outside", [&] { logsumexp(x, {.axes = {2}}); },
         "logsumexp: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"slice_scatter: a negative size", [&] { slice_scatter(bias, {-1}, 0, {}); },
         "slice_scatter: size -1 in shape (-1,) is negative (x is 'bias')"},
        {"norm: an axis outside, composed", [&] { norm(x, {.axes = 2, .ord = 1}); },
         "norm: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"norm: integers, composed", [&] { norm(ids, {.ord = 1}); },
         "norm: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"masked_fill: NaN in integers",
         [&] { masked_fill(ids, Variable(ones({2}, boolean)), NAN); },
         "masked_fill: nan does not fit i64 (x is 'ids')"},
        {"norm: integers", [&] { norm(ids); },
         "norm: needs a floating tensor, got i64 (x is 'ids'); convert with astype(f32) or "
         "astype(f64)"},
        {"cumsum: an axis outside", [&] { cumsum(x, 2); },
         "cumsum: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"select: outside", [&] { select(x, 0, 2); },
         "select: index 2 is outside axis 0 of shape (2, 3) (x is 'x'); indices go from -2 to 1"},
        {"index_select: an index outside", [&] { index_select(x, 0, ids); },
         "index_select: index 7 at (1,) is outside 0..1 (axis 0 of shape (2, 3)) (x is 'x', "
         "indices is 'ids')"},
        {"index: fractions", [&] { index(x, bias); },
         "index: indices must be i64, got f64 (3,) (x is 'x', indices is 'bias'); convert with "
         "astype(i64)"},
        {"gather: an index outside",
         [&] {
             gather(pair, 0, Variable(tensor({{0, 2}}, i64)).set_name("places"));
         },
         "gather: index 2 at (0, 1) is outside 0..1 (axis 0 of shape (2, 2)) (x is 'pair', index "
         "is 'places')"},
        {"embedding: a token outside the vocabulary", [&] { embedding(W_Q, ids); },
         "embedding: id 7 at (1,) is outside 0..3 (4 rows) (weight is 'W_Q', ids is 'ids'); do the "
         "ids belong to this vocabulary?"},
        {"embedding: tokens of fractions", [&] { embedding(W_Q, bias); },
         "embedding: ids must be i64, got f64 (3,) (weight is 'W_Q', ids is 'bias'); convert with "
         "astype(i64)"},
        {"stack: shapes",
         [&] {
             stack({x, W_Q}, 0);
         },
         "stack: tensor 0 is (2, 3), tensor 1 is (4, 3): shapes must be equal (a is 'x', b is "
         "'W_Q')"},
        {"squeeze: a size of more than one", [&] { squeeze(x, 0); },
         "squeeze: axis 0 of shape (2, 3) has size 2 (x is 'x'); only axes of size 1 can go; "
         "select drops an axis at an index"},
        {"unsqueeze: an axis outside", [&] { unsqueeze(x, 4); },
         "unsqueeze: no place 4 for an axis in shape (2, 3) (x is 'x'); a new axis goes to -3 to "
         "2"},
        {"flip: an axis outside", [&] { flip(x, 2); },
         "flip: axis 2 is outside shape (2, 3) (x is 'x'); axes go from -2 to 1"},
        {"tril: a vector", [&] { tril(bias); },
         "tril: needs two axes, shape (3,) has 1 (x is 'bias')"},
        {"split: sizes that do not add up",
         [&] {
             split(x, {1, 1}, 1);
         },
         "split: sizes (1, 1) do not make up axis 1 of shape (2, 3) (x is 'x'); sizes must add "
         "up to 3"},
        {"pad: too many widths",
         [&] {
             pad(bias, {{1, 1}, {2, 2}});
         },
         "pad: 2 widths given for shape (3,), which has 1 axes (x is 'bias'); give one (before, "
         "after) an axis, the first axis first"},
        {"repeat: too few counts", [&] { repeat(hidden, {2}); },
         "repeat: 1 counts given for shape (5, 2, 3), which has 3 axes (x is 'hidden'); give one "
         "count an axis"},
        {"bmm: ranks", [&] { bmm(x, W_Q); },
         "bmm: needs (batch, m, k) and (batch, k, n), got (2, 3) and (4, 3) (a is 'x', b is "
         "'W_Q'); matmul takes other ranks, and broadcasts"},
        {"outer: ranks", [&] { outer(x, bias); },
         "outer: needs two vectors, got (2, 3) and (3,) (a is 'x', b is 'bias'); reshape to (-1,)"},
        {"einsum: sizes", [&] { einsum("ij,jk->ik", x, W_Q); },
         "einsum: \"ij,jk->ik\": 'j' is 3 in a (2, 3) and 4 in b (4, 3) (a is 'x', b is 'W_Q')"},
        {"einsum: an equation", [&] { einsum("ij,jk", x); },
         "einsum: \"ij,jk\" has 2 input terms, 1 tensor given (x is 'x')"},
        {"backward: no cotangent", [&] { backward(x * 2.0); },
         "backward: result of scale of shape (2, 3) has 6 elements, not one; reduce it with sum or "
         "mean, or pass a cotangent as {.gradient = …}"},
        {"backward: a constant", [&] { backward(ids); },
         "backward: 'ids' of shape (2,) requires no gradient; it was computed from constants, from "
         "detached values or under NoGrad; wrap what should be trained in parameter()"},
        {"backward: a result under NoGrad", [&] { backward(under_no_grad()); },
         "backward: constant of shape () requires no gradient; it was computed from constants, "
         "from detached values or under NoGrad; wrap what should be trained in parameter()"},
        {"backward: the shape of the cotangent",
         [&] {
             backward(x * 2.0, {.gradient = ones({3, 2}, f64)});
         },
         "backward: the cotangent has shape (3, 2), result of scale of shape (2, 3) needs (2, 3)"},
        {"backward: the type of the cotangent",
         [&] {
             backward(x * 2.0, {.gradient = ones({2, 3})});
         },
         "backward: the cotangent is f32, result of scale of shape (2, 3) is f64; convert it with "
         "astype"},
        {"backward: twice", [&] { twice(); },
         "backward: the graph behind the result of sum was swept before, and what it had saved is "
         "gone; pass {.retain_graph = true} to the first backward, or compute the result again"},
        {"backward: inside a hook", [&] { inside_a_hook(); },
         "backward: called inside another backward over the same graph, which holds the result of "
         "sum; finish the first one, or detach() what the inner one needs"},
        {"grad: nothing depends on it", [&] { grad({sum(x)}, {W_Q}); },
         "grad: no output depends on input 0, 'W_Q' of shape (4, 3); the path was severed (detach, "
         "NoGrad, value()) or never there; allow it with {.allow_unused = true}"},
        {"grad: a severed path", [&] { grad({sum(x + bias.detach())}, {bias}); },
         "grad: no output depends on input 0, 'bias' of shape (3,); the path was severed (detach, "
         "NoGrad, value()) or never there; allow it with {.allow_unused = true}"},
        {"grad: of a constant",
         [&] {
             grad({sum(x)}, {x, mask});
         },
         "grad: input 1, 'mask' of shape (2, 3), requires no gradient; make it a parameter before "
         "computing with it"},
        {"grad: cotangents",
         [&] {
             grad({sum(x)}, {x}, {.grad_outputs = {Variable(), Variable()}});
         },
         "grad: 1 outputs but 2 cotangents"},
        {"parameter: integers", [&] { parameter(arange(3), "ids"); },
         "parameter: a i64 tensor of shape (3,) has no gradient; convert it with astype(f32) or "
         "astype(f64)"},
        {"parameter: undefined", [&] { parameter(Tensor()); },
         "parameter: the tensor is undefined"},
        {"set_value: shape",
         [&] {
             Variable(x).set_value(zeros({3, 2}, f64));
         },
         "set_value: the value of 'x' has shape (2, 3), got (3, 2)"},
        {"set_value: type",
         [&] {
             Variable(x).set_value(zeros({2, 3}));
         },
         "set_value: the value of 'x' is f64, got f32; convert it with astype"},
        {"set_value: on a result",
         [&] {
             exp(x).set_value(zeros({2, 3}, f64));
         },
         "set_value: result of exp of shape (2, 3) is the result of exp; writing to it would lose "
         "its gradient; use detach() for a constant copy"},
        {"mutable_value: on a result", [&] { exp(x).mutable_value(); },
         "mutable_value: result of exp of shape (2, 3) is the result of exp; writing to it would "
         "lose its gradient; use detach() for a constant copy"},
        {"set_grad: shape", [&] { Variable(x).set_grad(zeros({3}, f64)); },
         "set_grad: the value of 'x' has shape (2, 3), got (3,)"},
        {"set_grad: on a constant", [&] { Variable(mask).set_grad(zeros({3}, f64)); },
         "set_grad: 'mask' of shape (2, 3) requires no gradient; make it a parameter first"},
        {"retain_grad: on a constant", [&] { Variable(mask).retain_grad(); },
         "retain_grad: 'mask' of shape (2, 3) requires no gradient; it was computed from constants "
         "or under NoGrad"},
        {"register_hook: on a constant",
         [&] { Variable(mask).register_hook([](const Variable& g) { return g; }); },
         "register_hook: 'mask' of shape (2, 3) requires no gradient; it was computed from "
         "constants or under NoGrad"},
        {"set_requires_grad: on a result", [&] { exp(x).set_requires_grad(false); },
         "set_requires_grad: result of exp of shape (2, 3) is the result of exp; only leaves can "
         "be changed; use detach() for a constant copy"},
        {"set_requires_grad: integers", [&] { Variable(ids).set_requires_grad(true); },
         "set_requires_grad: a i64 tensor of shape (2,) has no gradient; convert it with "
         "astype(f32) or astype(f64)"},
        {"item: several elements", [&] { x.item(); },
         "item: shape (2, 3) has 6 elements, not one; name an element with at({…})"},
        {"size: an axis outside", [&] { x.size(2); },
         "size: axis 2 is outside shape (2, 3); axes go from -2 to 1"},
        {"a hook that returns another shape", [&] { wrong_hook(); },
         "hook: returned a gradient of f64 (), the value is f64 (2, 3)"},
        {"checkpoint: an undefined input",
         [&] {
             checkpoint([](In in) { return in[0]; }, {x, Variable()});
         },
         "checkpoint: input 1 is undefined"},
        {"checkpoint: the error inside",
         [&] {
             in_layer([&] { return checkpoint([&](In in) { return matmul(in[0], W_Q); }, {x}); });
         },
         "matmul: cannot multiply (2, 3) by (4, 3): inner sizes 3 and 4 differ (a is 'x', b is "
         "'W_Q'), in blocks.1.attention; transpose b"},
        {"unused_parameters: an undefined result", [&] { unused_parameters(Variable(), {x}); },
         "unused_parameters: the result is undefined"},
    };
}

}  // namespace

TEST_CASE("every wrong call says what is wrong, with which tensors, and what to do") {
    const std::vector<WrongCall> calls = wrong_calls();
    CHECK(calls.size() >= 130);
    for (const WrongCall& each : calls) {
        INFO(each.what);
        CHECK(message_of(each.call) == each.text);
        CHECK(grad_enabled());
        CHECK(current_scope()->path.empty());
    }
    CHECK_FALSE(x.has_grad());
}
