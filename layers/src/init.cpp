#include <glassgrad/layers/init.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <cmath>

namespace glassgrad::init {
namespace {

struct Fans {
    double in;
    double out;
};

Fans fans(std::string_view what, const Variable& x) {
    if (x.rank() < 2) {
        throw ShapeError(fmt::format("{}: {} has no fan: it needs two axes, (out, in)", what,
                                     to_string(x.shape())));
    }
    const auto rows = static_cast<double>(x.shape()[0]);
    const auto columns = static_cast<double>(x.shape()[1]);
    double rest = 1;
    for (int axis = 2; axis < x.rank(); ++axis) rest *= static_cast<double>(x.shape()[axis]);
    return {columns * rest, rows * rest};
}

double kaiming_std(std::string_view what, const Variable& x, const KaimingOptions& options) {
    const Fans sizes = fans(what, x);
    const double gain = std::sqrt(2 / (1 + options.slope * options.slope));
    return gain / std::sqrt(options.fan == Fan::in ? sizes.in : sizes.out);
}

bool ends_with_part(std::string_view name, std::string_view part) {
    return name.ends_with(part) &&
           (name.size() == part.size() || name[name.size() - part.size() - 1] == '.');
}

}  // namespace

void constant(Variable x, double value) { x.set_value(full(x.shape(), value, x.dtype())); }
void zeros(Variable x) { constant(std::move(x), 0); }
void ones(Variable x) { constant(std::move(x), 1); }

void uniform(Variable x, RandomState& rng, double low, double high) {
    x.set_value(rng.uniform(low, high, x.shape(), {.dtype = x.dtype()}));
}
void normal(Variable x, RandomState& rng, double mean, double std) {
    x.set_value(rng.normal(mean, std, x.shape(), {.dtype = x.dtype()}));
}

void trunc_normal(Variable x, RandomState& rng, const TruncatedOptions& options) {
    const auto below = [&](double bound) {
        return 0.5 * std::erfc((options.mean - bound) / (options.std * std::sqrt(2.0)));
    };
    const double share = below(options.high) - below(options.low);
    if (!(options.std > 0) || !(options.low < options.high) || !(share >= 1e-4)) {
        throw ValueError(
            fmt::format("trunc_normal: mean {} and std {} leave almost nothing "
                        "between {} and {}",
                        options.mean, options.std, options.low, options.high));
    }
    Tensor value = Tensor::empty(x.shape(), f64);
    auto* out = value.mutable_data<double>();
    for (std::int64_t i = 0; i < value.numel(); ++i) {
        do {
            out[i] = options.mean + options.std * rng.next_gauss();
        } while (out[i] < options.low || out[i] > options.high);
    }
    x.set_value(value.astype(x.dtype()));
}

void xavier_uniform(Variable x, RandomState& rng, double gain) {
    const Fans sizes = fans("xavier_uniform", x);
    const double bound = gain * std::sqrt(6 / (sizes.in + sizes.out));
    uniform(std::move(x), rng, -bound, bound);
}
void xavier_normal(Variable x, RandomState& rng, double gain) {
    const Fans sizes = fans("xavier_normal", x);
    normal(std::move(x), rng, 0, gain * std::sqrt(2 / (sizes.in + sizes.out)));
}

void kaiming_uniform(Variable x, RandomState& rng, const KaimingOptions& options) {
    const double bound = std::sqrt(3.0) * kaiming_std("kaiming_uniform", x, options);
    uniform(std::move(x), rng, -bound, bound);
}
void kaiming_normal(Variable x, RandomState& rng, const KaimingOptions& options) {
    const double std = kaiming_std("kaiming_normal", x, options);
    normal(std::move(x), rng, 0, std);
}

void gpt2(Module& model, RandomState& rng, const Gpt2Options& options) {
    if (options.num_layers < 1 || options.d_model < 1) {
        throw ValueError(fmt::format("init::gpt2: {} layers of width {}, there must be one",
                                     options.num_layers, options.d_model));
    }
    const double std = 0.02 * std::sqrt(768 / static_cast<double>(options.d_model));
    const double residual = std / std::sqrt(2 * static_cast<double>(options.num_layers));
    std::vector<Variable> done;
    for (const auto& [name, value] : model.named_parameters()) {
        const auto same = [&each = value](const Variable& x) { return x.same_as(each); };
        if (std::any_of(done.begin(), done.end(), same)) continue;
        done.push_back(value);
        if (ends_with_part(name, "bias")) {
            zeros(value);
        } else if (value.rank() >= 2) {
            const bool adds =
                ends_with_part(name, "out_proj.weight") || ends_with_part(name, "linear2.weight");
            normal(value, rng, 0, adds ? residual : std);
        }
    }
}

}  // namespace glassgrad::init
