// Kernels of rows in every set of instructions that the processor has, against plain loops.

#include "support/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace kernel_tests;

namespace {

constexpr std::int64_t some = 6;  // rows

template <class T>
std::vector<T> plain_numbers(std::int64_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(-3, 3);
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& each : x) each = static_cast<T>(uniform(random));
    return x;
}

/// Calls f(table's rows of T, n) for each set of instructions and row length.
template <class T, class F>
void for_each_length(const F& f) {
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        for (const std::int64_t n : sizes) {
            CAPTURE(n);
            f(of<T>(table).row, n);
        }
    }
}

/// The largest difference in units of epsilon.
template <class T>
double distance(const std::vector<T>& got, const std::vector<Wide<T>>& wanted) {
    REQUIRE(got.size() == wanted.size());
    Wide<T> worst = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(got[i]) && std::isnan(wanted[i])) continue;
        if (got[i] == static_cast<T>(wanted[i])) continue;
        const Wide<T> off = std::abs(got[i] - wanted[i]);
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<Wide<T>>::infinity();
    }
    return static_cast<double>(worst / std::numeric_limits<T>::epsilon());
}

/// For rows of n, what f(row, result) makes of each.
template <class T, class F>
std::vector<Wide<T>> by_rows(const std::vector<T>& x, std::int64_t n, const F& f) {
    std::vector<Wide<T>> result(x.size());
    for (std::int64_t r = 0; n > 0 && r < some; ++r) {
        const auto at = static_cast<std::size_t>(r * n);
        std::vector<Wide<T>> row(x.begin() + r * n, x.begin() + (r + 1) * n);
        f(at, row);
        std::copy(row.begin(), row.end(), result.begin() + r * n);
    }
    return result;
}

template <class T>
std::vector<Wide<T>> plain_softmax(const std::vector<T>& x, std::int64_t n, bool logarithm) {
    return by_rows(x, n, [&](std::size_t, std::vector<Wide<T>>& row) {
        const Wide<T> top = *std::max_element(row.begin(), row.end());
        Wide<T> total = 0;
        for (const auto each : row) total += std::exp(each - top);
        for (auto& each : row) {
            const Wide<T> shifted = each - top;
            each = logarithm ? shifted - std::log(total) : std::exp(shifted) / total;
        }
    });
}

}  // namespace

TEMPLATE_TEST_CASE("kernels of softmax are plain loops to rounding, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    using W = Wide<T>;
    for_each_length<T>([](const Rows<T>& row, std::int64_t n) {
        const std::vector<T> x = plain_numbers<T>(some * n, 1);
        const std::vector<T> gy = plain_numbers<T>(some * n, 2);
        std::vector<T> y = x;
        row.softmax(some, n, y.data(), y.data());
        CHECK(distance(y, plain_softmax(x, n, false)) <= 4);
        std::vector<T> logs(x.size());
        row.log_softmax(some, n, x.data(), logs.data());
        CHECK(distance(logs, plain_softmax(x, n, true)) <= 16);

        const auto pulled = [&](bool logarithm, const std::vector<T>& result) {
            return by_rows(gy, n, [&](std::size_t at, std::vector<W>& g) {
                W dot = 0;
                for (std::size_t i = 0; i < g.size(); ++i) {
                    dot += g[i] * (logarithm ? W{1} : W{result[at + i]});
                }
                for (std::size_t i = 0; i < g.size(); ++i) {
                    const W p = result[at + i];
                    g[i] = logarithm ? g[i] - std::exp(p) * dot : p * (g[i] - dot);
                }
            });
        };
        std::vector<T> gx = gy;
        row.softmax_vjp(some, n, y.data(), gx.data(), gx.data());
        CHECK(distance(gx, pulled(false, y)) <= 8);
        row.log_softmax_vjp(some, n, logs.data(), gy.data(), gx.data());
        CHECK(distance(gx, pulled(true, logs)) <= 100);
    });
}

TEMPLATE_TEST_CASE("rows of softmax that are special", "[kernels]", float, double) {
    using T = TestType;
    constexpr T inf = std::numeric_limits<T>::infinity();
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for_each_length<T>([&](const Rows<T>& row, std::int64_t n) {
        if (n == 0) return;
        const auto size = static_cast<std::size_t>(n);
        std::vector<T> x(size, -inf);
        std::vector<T> y(size);
        row.softmax(1, n, x.data(), y.data());
        CHECK(same_bits(y, std::vector<T>(size, 0)));
        row.log_softmax(1, n, x.data(), y.data());
        CHECK(same_bits(y, x));
        const std::vector<T> gy(size, nan);
        row.log_softmax_vjp(1, n, x.data(), gy.data(), y.data());
        CHECK(same_bits(y, std::vector<T>(size, 0)));
        for (const T wild : {nan, inf}) {
            x[size - 1] = wild;
            row.softmax(1, n, x.data(), y.data());
            CHECK(same_bits(y, std::vector<T>(size, nan)));
            row.log_softmax(1, n, x.data(), y.data());
            CHECK(same_bits(y, std::vector<T>(size, nan)));
            const T top = row.largest(n, x.data());
            CHECK((top == wild || (std::isnan(top) && std::isnan(wild))));
        }
        // What has no weight takes nothing, whatever its gradient is.
        std::vector<T> weights(size, 0);
        weights[0] = 1;
        std::vector<T> g(size, nan);
        g[0] = 2;
        row.softmax_vjp(1, n, weights.data(), g.data(), y.data());
        CHECK(same_bits(y, std::vector<T>(size, 0)));
    });
}

TEMPLATE_TEST_CASE("kernels of norms are plain loops to rounding, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    using W = Wide<T>;
    constexpr double eps = 1e-3;
    // A double's mean of about 40 is as far off as its last digits, more where a sum of 1,000 stays
    // in one lane, as under sanitizers.
    constexpr double slack = sizeof(T) == sizeof(float) ? 1 : 30;
    for_each_length<T>([=](const Rows<T>& row, std::int64_t n) {
        std::vector<T> x = plain_numbers<T>(some * n, 3);
        for (T& each : x) each += 40;  // a mean far from 0
        const std::vector<T> gy = plain_numbers<T>(some * n, 4);
        const std::vector<T> weight = plain_numbers<T>(n, 5);
        const std::vector<T> bias = plain_numbers<T>(n, 6);
        for (const bool centred : {true, false}) {
            CAPTURE(centred);
            std::vector<W> gw(weight.size()), gb(weight.size()), gx(x.size());
            const std::vector<W> wanted = by_rows(x, n, [&](std::size_t at, std::vector<W>& v) {
                const auto size = static_cast<W>(n);
                W mean = 0, squares = 0, plain = 0, along = 0;
                for (const W each : v) mean += centred ? each / size : 0;
                for (const W each : v) squares += (each - mean) * (each - mean);
                const W scale = 1 / std::sqrt(squares / size + W{eps});
                const auto h = [&](std::size_t i) { return (W{x[at + i]} - mean) * scale; };
                for (std::size_t i = 0; i < v.size(); ++i) {
                    v[i] = h(i) * weight[i] + bias[i];
                    gw[i] += gy[at + i] * h(i);
                    gb[i] += gy[at + i];
                    plain += centred ? W{gy[at + i]} * weight[i] / size : 0;
                    along += W{gy[at + i]} * weight[i] * h(i) / size;
                }
                for (std::size_t i = 0; i < v.size(); ++i) {
                    gx[at + i] = scale * (W{gy[at + i]} * weight[i] - plain - h(i) * along);
                }
            });
            std::vector<T> y = x;
            (centred ? row.layer_norm : row.rms_norm)(some, n, y.data(), weight.data(), bias.data(),
                                                      eps, y.data());
            CHECK(distance(y, wanted) <= 16 * slack);
            std::vector<double> weights(weight.size()), biases(weight.size());
            std::vector<T> pulled = gy;
            (centred ? row.layer_norm_vjp : row.rms_norm_vjp)(
                some, n, x.data(), pulled.data(), weight.data(), eps,
                {pulled.data(), weights.data(), biases.data()});
            // A row of one has no spread: its slopes are those of eps.
            const double limit = n == 1 ? 1e4 : 40 * slack;
            CHECK(distance(pulled, gx) <= limit);
            CHECK(distance(std::vector<T>(weights.begin(), weights.end()), gw) <= 40 * slack);
            CHECK(distance(std::vector<T>(biases.begin(), biases.end()), gb) <= 8);
        }
    });
}

TEMPLATE_TEST_CASE("norms keep their digits where squares leave the range of numbers", "[kernels]",
                   float) {
    using T = TestType;
    for_each_length<T>([](const Rows<T>& row, std::int64_t n) {
        if (n < 2) return;
        const std::vector<T> plain = plain_numbers<T>(n, 3);
        std::vector<T> wanted(plain.size()), y(plain.size());
        row.layer_norm(1, n, plain.data(), nullptr, nullptr, 0, wanted.data());
        for (const T factor : {T{0x1p100}, T{0x1p-80}}) {
            std::vector<T> x = plain;
            for (T& each : x) each *= factor;
            row.layer_norm(1, n, x.data(), nullptr, nullptr, 0, y.data());
            CHECK(distance(y, std::vector<Wide<T>>(wanted.begin(), wanted.end())) <= 16);
        }
    });
}

TEMPLATE_TEST_CASE("a fill writes one number in every place and nothing beside", "[kernels]", float,
                   double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        for (const std::int64_t n : sizes) {
            std::vector<T> y(static_cast<std::size_t>(n) + 1, T{7});
            of<T>(table).map.fill(n, T{-0.0}, y.data());
            std::vector<T> wanted(y.size(), T{-0.0});
            wanted.back() = 7;
            CHECK(same_bits(y, wanted));
        }
    }
}

TEMPLATE_TEST_CASE("sums of rows and columns are plain loops, wherever a row lies", "[kernels]",
                   float, double) {
    using T = TestType;
    for_each_length<T>([](const Rows<T>& row, std::int64_t n) {
        constexpr std::int64_t rows = 7;
        std::vector<T> x = plain_numbers<T>(rows * n + 9, 7);
        std::vector<double> sums(static_cast<std::size_t>(n), 0.5);
        row.add_columns(rows, n, x.data(), sums.data());
        std::vector<Wide<double>> wanted(sums.size(), 0.5L);
        for (std::int64_t i = 0; i < rows * n; ++i) {
            wanted[static_cast<std::size_t>(i % n)] += x[static_cast<std::size_t>(i)];
        }
        CHECK(distance(sums, wanted) <= 32);

        CHECK(row.all_finite(n, x.data()));
        for (std::int64_t i = 0; i < n; i += 1 + n / 5) {
            std::vector<T> wild = x;
            wild[static_cast<std::size_t>(i)] = i % 2 == 0 ? -std::numeric_limits<T>::infinity()
                                                           : std::numeric_limits<T>::quiet_NaN();
            CHECK_FALSE(row.all_finite(n, wild.data()));
        }

        Wide<double> total = 0;
        for (std::int64_t i = 0; i < n; ++i) total += x[static_cast<std::size_t>(i)];
        const double sum = row.sum(n, x.data());
        CHECK(std::abs(static_cast<double>(sum - total)) <= 1e-13 * static_cast<double>(n));
        const T top = row.largest(n, x.data());
        const double exps = row.sum_exp(n, x.data(), top);
        for (std::int64_t moved = 1; moved < 9; ++moved) {
            std::rotate(x.rbegin(), x.rbegin() + 1, x.rend());
            CHECK(row.sum(n, x.data() + moved) == sum);
            CHECK(row.sum_exp(n, x.data() + moved, top) == exps);
        }
    });
}
