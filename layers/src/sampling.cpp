#include <glassgrad/layers/sampling.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace glassgrad {
namespace {

constexpr const char* op = "sample_token";

void check(const SamplingOptions& options) {
    if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
        throw ValueError(fmt::format("{}: temperature {} is not a finite number from 0 on", op,
                                     options.temperature),
                         "0 takes the most probable token");
    }
    if (options.top_k && *options.top_k < 1) {
        throw ValueError(fmt::format("{}: top_k {} is below 1", op, *options.top_k),
                         "leave top_k out to keep all tokens");
    }
    if (!(options.top_p >= 0 && options.top_p <= 1)) {
        throw ValueError(fmt::format("{}: top_p {} is outside 0 to 1", op, options.top_p));
    }
    if (!(options.repetition_penalty > 0) || std::isinf(options.repetition_penalty)) {
        throw ValueError(fmt::format("{}: repetition_penalty {} is not a finite number above 0", op,
                                     options.repetition_penalty));
    }
}

void check_logits(const Tensor& logits) {
    if (logits.rank() != 1 || logits.numel() == 0) {
        throw ShapeError(
            fmt::format("{}: logits {} are not (vocabulary,)", op, to_string(logits.shape())),
            "take one row of a batch with select");
    }
    if (!is_floating(logits.dtype())) {
        throw TypeError(fmt::format("{}: logits are {}, not f32 or f64", op, name(logits.dtype())));
    }
}

void check_previous(std::span<const std::int64_t> previous, std::int64_t vocabulary) {
    for (const std::int64_t id : previous) {
        if (id >= 0 && id < vocabulary) continue;
        throw IndexError(fmt::format("{}: the previous token {} is outside the vocabulary of {}",
                                     op, id, vocabulary));
    }
}

/// The logits in f64.
std::vector<double> read(const Tensor& logits) {
    const Tensor wide = logits.astype(f64);
    return {wide.values<double>().begin(), wide.values<double>().end()};
}

void penalise(std::vector<double>& logits, std::span<const std::int64_t> previous, double penalty) {
    if (penalty == 1) return;
    std::vector<bool> seen(logits.size());
    for (const std::int64_t id : previous) {
        const auto i = static_cast<std::size_t>(id);
        if (seen[i]) continue;
        seen[i] = true;
        logits[i] = logits[i] > 0 ? logits[i] / penalty : logits[i] * penalty;
    }
}

/// The place of the largest, the first of equal ones. Throws ValueError unless all are numbers or
/// -inf, and one is a number.
template <class T>
std::size_t largest_of(std::span<const T> logits) {
    // NaN and +inf are what is not below +inf.
    bool numbers = true;
    for (const T each : logits) numbers = numbers && each < std::numeric_limits<T>::infinity();
    for (std::size_t i = 0; !numbers && i < logits.size(); ++i) {
        if (logits[i] < std::numeric_limits<T>::infinity()) continue;
        throw ValueError(fmt::format("{}: logits[{}] is {}", op, i, logits[i]));
    }
    const auto largest = std::max_element(logits.begin(), logits.end());
    if (std::isinf(*largest)) {
        throw ValueError(fmt::format("{}: all {} logits are -inf", op, logits.size()),
                         "something hides every token");
    }
    return static_cast<std::size_t>(largest - logits.begin());
}

/// Ids by falling value, equal ones by rising id.
std::vector<std::size_t> ranked(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
    return order;
}

/// How many tokens of `order` top-p keeps.
std::size_t nucleus(const std::vector<double>& p, const std::vector<std::size_t>& order,
                    double top_p, DType dtype) {
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    // Probabilities of 0.5 and 0.3 reach 0.8, though their logits were rounded.
    const double rounding = dtype == f32 ? 8 * std::numeric_limits<float>::epsilon()
                                         : 8 * std::numeric_limits<double>::epsilon();
    double sum = 0;
    for (std::size_t kept = 0; kept < order.size(); ++kept) {
        sum += p[order[kept]];
        if (sum / total >= top_p - rounding) return kept + 1;
    }
    return order.size();
}

std::vector<double> probabilities(const Tensor& given, const SamplingOptions& options,
                                  std::span<const std::int64_t> previous) {
    std::vector<double> p = read(given);
    penalise(p, previous, options.repetition_penalty);
    const std::size_t best = largest_of(std::span<const double>(p));
    const double top = p[best];
    if (options.temperature == 0) {
        std::fill(p.begin(), p.end(), 0.0);
        p[best] = 1;
        return p;
    }
    std::vector<std::size_t> order;
    if (options.top_k || options.top_p < 1) order = ranked(p);
    for (double& each : p) each = (each - top) / options.temperature;
    const Tensor powers = exp(from_span<double>(p, {static_cast<std::int64_t>(p.size())}));
    std::copy(powers.data<double>(), powers.data<double>() + p.size(), p.begin());
    const auto keep = [&](std::size_t count) {
        for (std::size_t i = count; i < order.size(); ++i) p[order[i]] = 0;
        order.resize(std::min(count, order.size()));
    };
    if (options.top_k) keep(static_cast<std::size_t>(*options.top_k));
    if (options.top_p < 1) keep(nucleus(p, order, options.top_p, given.dtype()));
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& each : p) each /= total;
    return p;
}

void check_all(const Tensor& logits, const SamplingOptions& options,
               std::span<const std::int64_t> previous) {
    check(options);
    check_logits(logits);
    check_previous(previous, logits.numel());
}

}  // namespace

Tensor sampling_probabilities(const Tensor& logits, const SamplingOptions& options,
                              std::span<const std::int64_t> previous) {
    check_all(logits, options, previous);
    return from_span<double>(probabilities(logits, options, previous), logits.shape());
}

std::int64_t sample_token(const Tensor& logits, const SamplingOptions& options, CounterRng& rng,
                          std::span<const std::int64_t> previous) {
    check_all(logits, options, previous);
    if (options.temperature == 0 && options.repetition_penalty == 1) {
        return static_cast<std::int64_t>(logits.dtype() == f32
                                             ? largest_of(logits.values<float>())
                                             : largest_of(logits.values<double>()));
    }
    const std::vector<double> p = probabilities(logits, options, previous);
    // At temperature 0 the sum passes 0 at the one token there is.
    const double drawn = options.temperature == 0 ? 0 : rng.next_double();
    double sum = 0;
    std::size_t last = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
        if (p[i] == 0) continue;
        sum += p[i];
        last = i;
        if (drawn < sum) break;
    }
    // Rounding may leave the sum a little below 1 and below the number drawn.
    return static_cast<std::int64_t>(last);
}

}  // namespace glassgrad
