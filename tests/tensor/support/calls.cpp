#include "tensor/support/calls.hpp"

#include <limits>

namespace glassgrad::testing {

namespace {

std::vector<std::int64_t> list(const Options& o, const char* key) {
    return o.at(key).get<std::vector<std::int64_t>>();
}
double number(const Options& o, const char* key = "number") { return number_of(o.at(key)); }
Shape shape(const Options& o) { return shape_of(o.at("shape")); }
std::int64_t axis(const Options& o) { return o.at("axis").get<std::int64_t>(); }

DType dtype(const Options& o) {
    const std::string name = o.at("dtype");
    return name == "float32" ? f32 : name == "float64" ? f64 : name == "int64" ? i64 : boolean;
}

std::int64_t whole(const Options& o, const char* key) { return o.at(key).get<std::int64_t>(); }
std::size_t part(const Options& o) { return o.at("part").get<std::size_t>(); }
Axes axes(const Options& o) { return o.contains("axes") ? Axes(list(o, "axes")) : Axes(); }

std::vector<PadWidth> pad_widths(const Options& o) {
    const auto before = list(o, "before");
    const auto after = list(o, "after");
    std::vector<PadWidth> widths;
    for (std::size_t i = 0; i < before.size(); ++i) widths.push_back({before[i], after[i]});
    return widths;
}

ReduceOptions reduce_options(const Options& o) {
    ReduceOptions options;
    if (o.contains("axes")) options.axes = Axes(list(o, "axes"));
    options.keepdims = o.value("keepdims", false);
    return options;
}

VarOptions var_options(const Options& o) {
    const ReduceOptions common = reduce_options(o);
    return {
        .axes = common.axes, .keepdims = common.keepdims, .correction = number(o, "correction")};
}

VectorNormOptions norm_options(const Options& o) {
    const ReduceOptions common = reduce_options(o);
    const double ord =
        o.at("ord") == "inf" ? std::numeric_limits<double>::infinity() : o.at("ord").get<double>();
    return {.axes = common.axes, .keepdims = common.keepdims, .ord = ord};
}

ClampOptions clamp_options(const Options& o) {
    ClampOptions options;
    if (o.contains("min")) options.min = number(o, "min");
    if (o.contains("max")) options.max = number(o, "max");
    return options;
}

ArgOptions arg_options(const Options& o) {
    ArgOptions options;
    if (o.contains("axis")) options.axis = axis(o);
    options.keepdims = o.value("keepdims", false);
    return options;
}

SliceOptions slice_options(const Options& o) {
    SliceOptions options;
    if (o.contains("start")) options.start = o["start"].get<std::int64_t>();
    if (o.contains("stop")) options.stop = o["stop"].get<std::int64_t>();
    options.step = o.value("step", std::int64_t{1});
    return options;
}

CloseOptions close_options(const Options& o) {
    CloseOptions options;
    options.rtol = o.value("rtol", options.rtol);
    options.atol = o.value("atol", options.atol);
    options.equal_nan = o.value("equal_nan", false);
    return options;
}

Call unary(Tensor (*f)(const Tensor&)) {
    return [f](const Operands& a, const Options&) { return f(a.at(0)); };
}
Call binary(Tensor (*f)(const Tensor&, const Tensor&)) {
    return [f](const Operands& a, const Options&) { return f(a.at(0), a.at(1)); };
}
Call with_number(Tensor (*f)(const Tensor&, double)) {
    return [f](const Operands& a, const Options& o) { return f(a.at(0), number(o)); };
}
Call reduction(Tensor (*f)(const Tensor&, const ReduceOptions&)) {
    return [f](const Operands& a, const Options& o) { return f(a.at(0), reduce_options(o)); };
}
Call created(Tensor (*f)(const Shape&, DType)) {
    return [f](const Operands&, const Options& o) { return f(shape(o), dtype(o)); };
}

Tensor in_bool(bool value) { return full({}, value, boolean); }

}  // namespace

const std::map<std::string, Call>& calls() {
    static const std::map<std::string, Call> table = {
        {"add", binary(add)},
        {"sub", binary(sub)},
        {"mul", binary(mul)},
        {"div", binary(div)},
        {"pow", binary(pow)},
        {"maximum", binary(maximum)},
        {"minimum", binary(minimum)},
        {"equal", binary(equal)},
        {"not_equal", binary(not_equal)},
        {"less", binary(less)},
        {"less_equal", binary(less_equal)},
        {"greater", binary(greater)},
        {"greater_equal", binary(greater_equal)},
        {"logical_and", binary(logical_and)},
        {"logical_or", binary(logical_or)},
        {"add_scalar", with_number(add)},
        {"sub_scalar", with_number(operator-)},
        {"mul_scalar", with_number(operator*)},
        {"div_scalar", with_number(operator/)},
        {"pow_scalar", with_number(pow)},
        {"scale", with_number(scale)},
        {"scalar_sub", [](const Operands& a, const Options& o) { return number(o) - a.at(0); }},
        {"scalar_div", [](const Operands& a, const Options& o) { return number(o) / a.at(0); }},
        {"neg", unary(neg)},
        {"exp", unary(exp)},
        {"log", unary(log)},
        {"sqrt", unary(sqrt)},
        {"tanh", unary(tanh)},
        {"abs", unary(abs)},
        {"relu", unary(relu)},
        {"sign", unary(sign)},
        {"square", unary(square)},
        {"expm1", unary(expm1)},
        {"log1p", unary(log1p)},
        {"rsqrt", unary(rsqrt)},
        {"reciprocal", unary(reciprocal)},
        {"sin", unary(sin)},
        {"cos", unary(cos)},
        {"chain_mul", binary(chain_mul)},
        {"chain_div", binary(chain_div)},
        {"clamp",
         [](const Operands& a, const Options& o) { return clamp(a.at(0), clamp_options(o)); }},
        {"masked_fill", [](const Operands& a,
                           const Options& o) { return masked_fill(a.at(0), a.at(1), number(o)); }},
        {"logical_not", unary(logical_not)},
        {"where",
         [](const Operands& a, const Options&) { return where(a.at(0), a.at(1), a.at(2)); }},
        {"allclose",
         [](const Operands& a, const Options& o) {
             return in_bool(allclose(a.at(0), a.at(1), close_options(o)));
         }},
        {"sum", reduction(sum)},
        {"mean", reduction(mean)},
        {"max", reduction(max)},
        {"min", reduction(min)},
        {"var",
         [](const Operands& a, const Options& o) {
             return var(a.at(0), o.empty() ? VarOptions() : var_options(o));
         }},
        {"std", [](const Operands& a,
                   const Options& o) { return glassgrad::std(a.at(0), var_options(o)); }},
        {"prod", reduction(prod)},
        {"prod_vjp",
         [](const Operands& a, const Options& o) {
             return prod_vjp(a.at(0), a.at(1), Axes(list(o, "axes")));
         }},
        {"amax", reduction(amax)},
        {"amin", reduction(amin)},
        {"logsumexp", reduction(logsumexp)},
        {"norm",
         [](const Operands& a, const Options& o) { return norm(a.at(0), norm_options(o)); }},
        {"cumsum",
         [](const Operands& a, const Options& o) {
             return cumsum(a.at(0), axis(o), {.reverse = o.value("reverse", false)});
         }},
        {"argmin",
         [](const Operands& a, const Options& o) { return argmin(a.at(0), arg_options(o)); }},
        {"argmax",
         [](const Operands& a, const Options& o) { return argmax(a.at(0), arg_options(o)); }},
        {"sum_to", [](const Operands& a, const Options& o) { return sum_to(a.at(0), shape(o)); }},
        {"matmul",
         [](const Operands& a, const Options& o) {
             return matmul(a.at(0), a.at(1),
                           {.transpose_a = o.value("transpose_a", false),
                            .transpose_b = o.value("transpose_b", false)});
         }},
        {"bmm", binary(bmm)},
        {"outer", binary(outer)},
        {"einsum",
         [](const Operands& a, const Options& o) {
             const std::string equation = o.at("equation");
             return a.size() == 1 ? einsum(equation, a.at(0)) : einsum(equation, a.at(0), a.at(1));
         }},
        {"softmax", [](const Operands& a, const Options& o) { return softmax(a.at(0), axis(o)); }},
        {"log_softmax",
         [](const Operands& a, const Options& o) { return log_softmax(a.at(0), axis(o)); }},
        {"softmax_vjp", [](const Operands& a,
                           const Options& o) { return softmax_vjp(a.at(0), a.at(1), axis(o)); }},
        {"reshape", [](const Operands& a, const Options& o) { return reshape(a.at(0), shape(o)); }},
        {"permute",
         [](const Operands& a, const Options& o) { return permute(a.at(0), list(o, "axes")); }},
        {"transpose",
         [](const Operands& a, const Options& o) {
             return o.empty() ? transpose(a.at(0))
                              : transpose(a.at(0), o["axis0"].get<std::int64_t>(),
                                          o["axis1"].get<std::int64_t>());
         }},
        {"slice", [](const Operands& a,
                     const Options& o) { return slice(a.at(0), axis(o), slice_options(o)); }},
        {"slice_scatter",
         [](const Operands& a, const Options& o) {
             return slice_scatter(a.at(0), shape(o), axis(o), slice_options(o));
         }},
        {"concat", [](const Operands& a, const Options& o) { return concat(a, axis(o)); }},
        {"stack", [](const Operands& a, const Options& o) { return stack(a, axis(o)); }},
        {"squeeze", [](const Operands& a, const Options& o) { return squeeze(a.at(0), axes(o)); }},
        {"unsqueeze",
         [](const Operands& a, const Options& o) { return unsqueeze(a.at(0), axis(o)); }},
        {"expand", [](const Operands& a, const Options& o) { return expand(a.at(0), shape(o)); }},
        {"split",
         [](const Operands& a, const Options& o) {
             return split(a.at(0), whole(o, "size"), axis(o)).at(part(o));
         }},
        {"split_sizes",
         [](const Operands& a, const Options& o) {
             return split(a.at(0), list(o, "sizes"), axis(o)).at(part(o));
         }},
        {"chunk",
         [](const Operands& a, const Options& o) {
             return chunk(a.at(0), whole(o, "count"), axis(o)).at(part(o));
         }},
        {"pad", [](const Operands& a,
                   const Options& o) { return pad(a.at(0), pad_widths(o), {.value = number(o)}); }},
        {"flip", [](const Operands& a, const Options& o) { return flip(a.at(0), axes(o)); }},
        {"roll",
         [](const Operands& a, const Options& o) {
             return roll(a.at(0), list(o, "shifts"), list(o, "axes"));
         }},
        {"tril",
         [](const Operands& a, const Options& o) { return tril(a.at(0), whole(o, "diagonal")); }},
        {"triu",
         [](const Operands& a, const Options& o) { return triu(a.at(0), whole(o, "diagonal")); }},
        {"repeat", [](const Operands& a,
                      const Options& o) { return repeat(a.at(0), shape_of(o.at("counts"))); }},
        {"select", [](const Operands& a,
                      const Options& o) { return select(a.at(0), axis(o), whole(o, "index")); }},
        {"index", [](const Operands& a, const Options&) { return index(a.at(0), a.at(1)); }},
        {"index_select", [](const Operands& a,
                            const Options& o) { return index_select(a.at(0), axis(o), a.at(1)); }},
        {"index_add",
         [](const Operands& a, const Options& o) {
             return index_add(a.at(0), axis(o), a.at(1), a.at(2));
         }},
        {"gather",
         [](const Operands& a, const Options& o) { return gather(a.at(0), axis(o), a.at(1)); }},
        {"scatter_add",
         [](const Operands& a, const Options& o) {
             return scatter_add(a.at(0), axis(o), a.at(1), a.at(2));
         }},
        {"embedding", binary(embedding)},
        {"broadcast_to",
         [](const Operands& a, const Options& o) { return broadcast_to(a.at(0), shape(o)); }},
        {"zeros", created(zeros)},
        {"ones", created(ones)},
        {"zeros_like", unary(zeros_like)},
        {"ones_like", unary(ones_like)},
        {"full",
         [](const Operands&, const Options& o) { return full(shape(o), number(o), dtype(o)); }},
        {"arange",
         [](const Operands&, const Options& o) {
             return arange(number(o, "start"), number(o, "stop"), number(o, "step"), dtype(o));
         }},
        {"linspace",
         [](const Operands&, const Options& o) {
             return linspace(number(o, "start"), number(o, "stop"), o["count"].get<std::int64_t>(),
                             dtype(o));
         }},
        {"eye", [](const Operands&,
                   const Options& o) { return eye(o["count"].get<std::int64_t>(), dtype(o)); }},
        {"astype", [](const Operands& a, const Options& o) { return a.at(0).astype(dtype(o)); }},
    };
    return table;
}

}  // namespace glassgrad::testing
