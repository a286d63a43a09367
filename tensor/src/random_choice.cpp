// Orders and samples of RandomState; the draws behind them are in random.cpp.

#include <glassgrad/tensor/random.hpp>

#include "dispatch.hpp"
#include "fail.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

namespace glassgrad {

using detail::fail;
using detail::hint;

namespace {

/// Indices 0 … n - 1 in the order of NumPy's legacy shuffle: from the end, each with one before.
Tensor shuffled_indices(RandomState& random, std::int64_t n) {
    Tensor result = arange(n);
    auto* out = result.mutable_data<std::int64_t>();
    for (std::int64_t i = n - 1; i > 0; --i) {
        std::swap(out[i], out[random.next_interval(static_cast<std::uint64_t>(i))]);
    }
    return result;
}

/// Sum with Kahan's correction, as NumPy checks that probabilities sum to 1.
double compensated_sum(const std::vector<double>& values) {
    double sum = 0;
    double lost = 0;
    for (const double value : values) {
        const double corrected = value - lost;
        const double next = sum + corrected;
        lost = (next - sum) - corrected;
        sum = next;
    }
    return sum;
}

/// The probabilities of `choice` in f64, checked.
std::vector<double> checked_probabilities(const Tensor& p, std::int64_t n) {
    if (!is_floating(p.dtype())) {
        fail<TypeError>("choice: probabilities must be f32 or f64, got {}", p.dtype());
    }
    if (p.shape() != Shape{n}) {
        fail<ShapeError>("choice: probabilities have shape {}, needed is {}", p.shape(), Shape{n});
    }
    const Tensor wide = p.astype(f64);
    const auto values = wide.values<double>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!(values[i] >= 0)) {
            fail<ValueError>("choice: probability {} at index {} is not a number at or above 0",
                             values[i], i);
        }
    }
    std::vector<double> result(values.begin(), values.end());
    const double sum = compensated_sum(result);
    const double tolerance = p.dtype() == f32 ? std::sqrt(0x1p-23) : std::sqrt(0x1p-52);
    if (!(std::abs(sum - 1) <= tolerance)) {
        fail<ValueError>(hint("divide them by their sum"),
                         "choice: probabilities sum to {}, not to 1", sum);
    }
    return result;
}

/// Running sums divided by the last of them.
std::vector<double> cumulative(const std::vector<double>& p) {
    std::vector<double> result(p.size());
    std::partial_sum(p.begin(), p.end(), result.begin());
    const double total = result.back();
    for (double& value : result) value /= total;
    return result;
}

std::int64_t index_of(const std::vector<double>& cumulative, double u) {
    return std::upper_bound(cumulative.begin(), cumulative.end(), u) - cumulative.begin();
}

/// Distinct indices with probabilities: draws as many as are missing, keeps the new ones in the
/// order drawn, sets their probability to 0, and draws again.
void sample_distinct(RandomState& random, std::vector<double> p, std::int64_t count,
                     std::int64_t* out) {
    std::int64_t found = 0;
    std::vector<double> draws;
    while (found < count) {
        draws.resize(static_cast<std::size_t>(count - found));
        for (double& u : draws) u = random.next_double();
        const std::vector<double> bounds = cumulative(p);
        for (const double u : draws) {
            const std::int64_t index = index_of(bounds, u);
            double& probability = p[static_cast<std::size_t>(index)];
            if (probability < 0) continue;  // seen among these draws
            out[found++] = index;
            probability = -1;
        }
        for (std::int64_t i = 0; i < found; ++i) p[static_cast<std::size_t>(out[i])] = 0;
    }
}

}  // namespace

Tensor RandomState::permutation(std::int64_t n) {
    if (n < 0) fail<ValueError>("permutation: {} items cannot be put in order", n);
    return shuffled_indices(*this, n);
}

Tensor RandomState::permutation(const Tensor& x) {
    if (x.defined() && x.rank() == 0) {
        fail<ShapeError>(hint("permutation(n) gives the numbers below n in random order"),
                         "permutation: shape () has no rows");
    }
    return detail::with_type(x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* in = x.template data<T>();
        const std::int64_t rows = x.shape()[0];
        const Tensor from = shuffled_indices(*this, rows);
        const auto* index = from.data<std::int64_t>();
        Tensor result = Tensor::empty(x.shape(), x.dtype());
        T* out = result.mutable_data<T>();
        const std::int64_t row = rows == 0 ? 0 : x.numel() / rows;
        for (std::int64_t i = 0; i < rows; ++i) {
            std::copy_n(in + index[i] * row, row, out + i * row);
        }
        return result;
    });
}

void RandomState::shuffle(Tensor& x) {
    if (x.defined() && x.rank() == 0) fail<ShapeError>("shuffle: shape () has no rows");
    x = permutation(x);
}

Tensor RandomState::choice(std::int64_t n, const Shape& shape, const ChoiceOptions& options) {
    const std::int64_t count = checked_numel("choice", shape, i64);
    if (n < 0 || (n == 0 && count > 0)) {
        fail<ValueError>("choice: cannot choose {} of {} items", count, n);
    }
    const bool weighted = options.p.defined();
    std::vector<double> p;
    if (weighted) p = checked_probabilities(options.p, n);
    if (!options.replace && count > n) {
        fail<ValueError>(hint("draw with {{.replace = true}}"),
                         "choice: cannot choose {} of {} items without replacement", count, n);
    }
    if (!weighted) {
        if (options.replace) return n == 0 ? Tensor::empty(shape, i64) : randint(0, n, shape);
        const Tensor all = permutation(n);
        return from_span(all.values<std::int64_t>().first(static_cast<std::size_t>(count)), shape);
    }
    Tensor result = Tensor::empty(shape, i64);
    auto* out = result.mutable_data<std::int64_t>();
    if (options.replace) {
        const std::vector<double> bounds = cumulative(p);
        for (std::int64_t i = 0; i < count; ++i) out[i] = index_of(bounds, next_double());
        return result;
    }
    const auto positive = std::count_if(p.begin(), p.end(), [](double value) { return value > 0; });
    if (positive < count) {
        fail<ValueError>(
            "choice: cannot choose {} items without replacement: only {} have a "
            "probability above 0",
            count, positive);
    }
    sample_distinct(*this, std::move(p), count, out);
    return result;
}

}  // namespace glassgrad
