#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/feed_forward.hpp>

namespace glassgrad {
namespace {

LinearOptions linear_options(const FeedForwardOptions& options) {
    return {.bias = options.bias, .dtype = options.dtype};
}

}  // namespace

FeedForward::FeedForward(const FeedForwardOptions& options, RandomState& rng)
    : linear1(options.d_model, options.d_ff, rng, linear_options(options)),
      linear2(options.d_ff, options.d_model, rng, linear_options(options)),
      dropout(options.dropout, rng),
      activation(options.activation) {
    register_module("linear1", linear1);
    register_module("linear2", linear2);
    if (options.gated) {
        linear3 =
            std::make_unique<Linear>(options.d_model, options.d_ff, rng, linear_options(options));
        register_module("linear3", *linear3);
    }
    register_module("dropout", dropout);
}

Variable FeedForward::operator()(const Variable& x) const {
    const Scope scope = enter();
    Variable hidden = activate(activation, linear1(x));
    if (linear3) hidden = hidden * (*linear3)(x);
    return linear2(dropout(point("hidden", hidden)));
}

}  // namespace glassgrad
