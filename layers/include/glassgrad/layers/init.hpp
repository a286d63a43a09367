#pragma once
// Starting values, as torch.nn.init. Each fills a parameter of any shape in place, in its own type,
// with numbers that NumPy's generator of the same seed gives.

#include <glassgrad/layers/module.hpp>
#include <glassgrad/tensor/random.hpp>

namespace glassgrad::init {

void constant(Variable x, double value);
void zeros(Variable x);
void ones(Variable x);
/// Uniform in [low, high).
void uniform(Variable x, RandomState& rng, double low = 0, double high = 1);
void normal(Variable x, RandomState& rng, double mean = 0, double std = 1);

struct TruncatedOptions {
    double mean = 0;
    double std = 1;
    double low = -2;  ///< in the units of x, as in torch.nn.init.trunc_normal_
    double high = 2;
};
/// Normal, each number drawn anew until it lies in [low, high]. Throws ValueError unless low < high
/// and at least one draw in ten thousand falls between them.
void trunc_normal(Variable x, RandomState& rng, const TruncatedOptions& options = {});

// For weights (out, in, ...): fan_in = in times what follows, fan_out = out times what follows.
// Each throws ShapeError below two axes.

/// Uniform in ±gain √(6 / (fan_in + fan_out)). Source: Glorot and Bengio 2010.
void xavier_uniform(Variable x, RandomState& rng, double gain = 1);
/// Standard deviation gain √(2 / (fan_in + fan_out)).
void xavier_normal(Variable x, RandomState& rng, double gain = 1);

enum class Fan { in, out };
struct KaimingOptions {
    double slope = 0;  ///< of the rectifier below 0; the gain is √(2 / (1 + slope²))
    Fan fan = Fan::in;
};
/// Uniform in ±gain √(3 / fan). Source: He et al. 2015.
void kaiming_uniform(Variable x, RandomState& rng, const KaimingOptions& options = {});
/// Standard deviation gain / √fan.
void kaiming_normal(Variable x, RandomState& rng, const KaimingOptions& options = {});

struct Gpt2Options {
    std::int64_t num_layers;
    std::int64_t d_model = 768;
};

/// GPT-2's start: matrices normal with standard deviation s = 0.02 √(768 / d_model), those that add
/// to the residual stream (out_proj.weight, linear2.weight) s / √(2 num_layers), biases 0; weights
/// of norms stay. At GPT-2's width s is its 0.02; a narrow model that starts with 0.02 hardly moves
/// in its first thousand steps. Throws ValueError. Source: Radford et al. 2019, section 2.3, and
/// OpenAI's code; 1 / √width as Glorot and Bengio 2010.
void gpt2(Module& model, RandomState& rng, const Gpt2Options& options);

}  // namespace glassgrad::init
