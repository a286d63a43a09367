#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/linear.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <cmath>

namespace glassgrad {

Linear::Linear(std::int64_t in, std::int64_t out, RandomState& rng, const LinearOptions& options) {
    if (in < 1 || out < 1) {
        throw ShapeError(fmt::format("linear: sizes in {} and out {} must be at least 1", in, out));
    }
    const double bound = 1 / std::sqrt(static_cast<double>(in));
    weight = register_parameter("weight",
                                rng.uniform(-bound, bound, {out, in}, {.dtype = options.dtype}));
    if (options.bias) {
        bias =
            register_parameter("bias", rng.uniform(-bound, bound, {out}, {.dtype = options.dtype}));
    }
}

Linear::Linear(const Variable& shared) {
    if (!shared.defined() || shared.rank() != 2 || !is_floating(shared.dtype())) {
        throw ShapeError(fmt::format("linear: a tied weight is a matrix (out, in), got {}",
                                     shared.defined() ? to_string(shared.shape()) : "nothing"));
    }
    weight = shared;
    register_parameter("weight", weight);
}

Variable Linear::operator()(const Variable& x) const {
    const Scope scope = enter();
    if (x.rank() == 0 || x.shape().back() != weight.shape()[1]) {
        throw ShapeError(fmt::format("linear: the last axis of {} is not {} long",
                                     to_string(x.shape()), weight.shape()[1]),
                         "the weight is (out, in) = " + to_string(weight.shape()));
    }
    return linear(x, weight, bias);
}

}  // namespace glassgrad
