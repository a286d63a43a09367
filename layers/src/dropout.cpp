#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/layers/dropout.hpp>
#include <glassgrad/tensor/error.hpp>

#include <fmt/format.h>

#include <limits>

namespace glassgrad {

Dropout::Dropout(double probability, RandomState& rng)
    : p(probability), rng_(rng.next_interval(std::numeric_limits<std::uint64_t>::max())) {
    if (!(p >= 0 && p <= 1)) {
        throw ValueError(fmt::format("dropout: probability {} is outside 0 to 1", p));
    }
}

Variable Dropout::operator()(const Variable& x) const {
    const Scope scope = enter();
    return active_p() > 0 ? dropout(x, rng_, {.p = p}) : x;
}

void seed_dropout(Module& model, std::uint64_t seed, std::uint64_t position) {
    std::uint64_t stream = 0;
    for (const auto& [name, module] : model.named_modules()) {
        if (const auto* each = dynamic_cast<const Dropout*>(module)) {
            each->rng() = CounterRng(seed, stream++);
            each->rng().set_position(position);
        }
    }
}

}  // namespace glassgrad
