// Kernels of rows in every set of instructions that the processor has, against plain loops.

#include "support/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
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

namespace {

/// What a norm of rows of n and its derivative give.
template <class T>
struct PlainNorm {
    std::vector<Wide<T>> y, gx, gw, gb;

    PlainNorm(bool centred, double eps, const std::vector<T>& x, const std::vector<T>& gy,
              const std::vector<T>& weight, const std::vector<T>& bias)
        : gx(x.size()), gw(weight.size()), gb(weight.size()) {
        using W = Wide<T>;
        const auto n = static_cast<std::int64_t>(weight.size());
        y = by_rows(x, n, [&](std::size_t at, std::vector<W>& v) {
            const auto size = static_cast<W>(n);
            W mean = 0, squares = 0, plain = 0, along = 0;
            for (int round = 0; centred && round < 2; ++round) {
                W off = 0;
                for (const W each : v) off += each - mean;
                mean += off / size;
            }
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
    }
};

}  // namespace

TEMPLATE_TEST_CASE("kernels of norms are plain loops to rounding, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
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
            const PlainNorm<T> wanted(centred, eps, x, gy, weight, bias);
            std::vector<T> y = x;
            (centred ? row.layer_norm : row.rms_norm)(some, n, y.data(), weight.data(), bias.data(),
                                                      eps, y.data());
            CHECK(distance(y, wanted.y) <= 16 * slack);
            std::vector<double> weights(weight.size()), biases(weight.size());
            std::vector<T> pulled(gy.size());
            (centred ? row.layer_norm_vjp : row.rms_norm_vjp)(
                some, n, x.data(), gy.data(), weight.data(), eps,
                {pulled.data(), weights.data(), biases.data()});
            // A row of one has no spread: its slopes are those of eps.
            const double limit = n == 1 ? 1e4 : 40 * slack;
            CHECK(distance(pulled, wanted.gx) <= limit);
            CHECK(distance(std::vector<T>(weights.begin(), weights.end()), wanted.gw) <=
                  40 * slack);
            CHECK(distance(std::vector<T>(biases.begin(), biases.end()), wanted.gb) <= 8);
        }
    });
}

TEMPLATE_TEST_CASE("derivatives of softmax are finite where gradients are as large as there are",
                   "[kernels]", float, double) {
    using T = TestType;
    using W = Wide<T>;
    constexpr T most = std::numeric_limits<T>::max();
    constexpr W infinity = std::numeric_limits<W>::infinity();
    for_each_length<T>([=](const Rows<T>& row, std::int64_t n) {
        const std::vector<T> x = plain_numbers<T>(some * n, 1);
        std::vector<T> gy = plain_numbers<T>(some * n, 2);
        for (std::size_t i = 0; i < gy.size(); ++i) gy[i] *= most / 4;
        if (n > 0) std::fill_n(gy.begin(), n, most);
        std::vector<T> y(x.size()), logs(x.size()), gx(x.size()), glogs(x.size());
        row.softmax(some, n, x.data(), y.data());
        row.log_softmax(some, n, x.data(), logs.data());
        row.softmax_vjp(some, n, y.data(), gy.data(), gx.data());
        row.log_softmax_vjp(some, n, logs.data(), gy.data(), glogs.data());
        // In units of the largest number, each result by so much of it.
        const auto scaled = [=](std::vector<T> values) {
            for (T& each : values) each /= most;
            return values;
        };
        std::vector<W> wanted(x.size()), wanted_logs(x.size());
        for (std::int64_t r = 0; r < some; ++r) {
            W dot = 0, total = 0;
            for (auto i = static_cast<std::size_t>(r * n); i < static_cast<std::size_t>(r * n + n);
                 ++i) {
                dot += W{y[i]} * (gy[i] / most);
                total += gy[i] / most;
            }
            for (auto i = static_cast<std::size_t>(r * n); i < static_cast<std::size_t>(r * n + n);
                 ++i) {
                wanted[i] = y[i] * (gy[i] / most - dot);
                wanted_logs[i] = gy[i] / most - std::exp(W{logs[i]}) * total;
                if (std::abs(wanted_logs[i]) > 1) wanted_logs[i] *= infinity;
            }
        }
        CHECK(distance(scaled(gx), wanted) <= 16);
        CHECK(distance(scaled(glogs), wanted_logs) <= 200);
    });
}

TEMPLATE_TEST_CASE("norms of any finite numbers are finite where their results are", "[kernels]",
                   float, double) {
    using T = TestType;
    using W = Wide<T>;
    constexpr T most = std::numeric_limits<T>::max();
    // In units of epsilon of the largest that isn't beyond T.
    const auto relative = [](std::vector<T> got, std::vector<W> wanted) {
        W largest = 0;
        for (const W each : wanted) {
            if (std::abs(each) <= W{most}) largest = std::max(largest, std::abs(each));
        }
        for (std::size_t i = 0; i < got.size(); ++i) {
            if (!(std::abs(wanted[i]) <= W{most})) {
                got[i] = static_cast<T>(wanted[i]) == got[i] ? T{0} : most;
                wanted[i] = 0;
            } else if (largest > 0) {
                wanted[i] /= largest;
                got[i] = static_cast<T>(got[i] / largest);
            }
        }
        return distance(got, wanted);
    };
    for_each_length<T>([&](const Rows<T>& row, std::int64_t n) {
        const std::vector<T> bias = plain_numbers<T>(n, 6);
        for (const T factor : {T{1}, std::sqrt(most), most / 4}) {
            for (const T pull : {T{1}, most / 4}) {
                std::vector<T> x = plain_numbers<T>(some * n, 7);
                std::vector<T> gy = plain_numbers<T>(some * n, 8);
                std::vector<T> weight = plain_numbers<T>(n, 9);
                // One row of equal numbers, one of large ones, one of which all but one are equal.
                for (std::int64_t i = 0; i < n; ++i) {
                    const auto at = static_cast<std::size_t>(i);
                    for (const std::size_t r : {0U, 5U}) {
                        x[r * weight.size() + at] = i == n / 2 && r == 5 ? T{-3} : T{3};
                    }
                    x[weight.size() + at] = T{3} - std::abs(x[weight.size() + at]) / 64;
                }
                for (T& each : x) each *= factor;
                for (T& each : gy) each *= pull;
                for (T& each : weight) each /= 4;
                for (const bool centred : {true, false}) {
                    CAPTURE(centred, factor, pull);
                    const PlainNorm<T> wanted(centred, 1e-5, x, gy, weight, bias);
                    std::vector<T> y(x.size()), gx(x.size());
                    (centred ? row.layer_norm : row.rms_norm)(some, n, x.data(), weight.data(),
                                                              bias.data(), 1e-5, y.data());
                    CHECK(relative(y, wanted.y) <= 64);
                    std::vector<double> gw(weight.size()), gb(weight.size());
                    (centred ? row.layer_norm_vjp : row.rms_norm_vjp)(
                        some, n, x.data(), gy.data(), weight.data(), 1e-5,
                        {gx.data(), gw.data(), gb.data()});
                    CHECK(relative(gx, wanted.gx) <= (n == 1 ? 1e4 : 256));
                    if (sizeof(T) == sizeof(double) && pull != 1) continue;  // sums are double
                    CHECK(relative(std::vector<T>(gw.begin(), gw.end()), wanted.gw) <= 64);
                    CHECK(relative(std::vector<T>(gb.begin(), gb.end()), wanted.gb) <= 64);
                }
            }
        }
        // So small an eps leaves equal numbers a slope that T doesn't hold.
        const std::vector<T> equal(bias.size(), T{3});
        std::vector<T> y(bias.size());
        row.layer_norm(n > 0 ? 1 : 0, n, equal.data(), nullptr, bias.data(), 1e-300, y.data());
        CHECK(y == bias);
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

TEMPLATE_TEST_CASE("the smallest number and where a number stands, as plain loops find them",
                   "[kernels]", float, double) {
    using T = TestType;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    for_each_length<T>([=](const Rows<T>& row, std::int64_t n) {
        std::vector<T> x = plain_numbers<T>(n, 11);
        CHECK(row.find(n, x.data(), T{9}) == n);
        CHECK(row.find(n, x.data(), nan) == n);
        if (n == 0) return;
        const auto low = std::min_element(x.begin(), x.end());
        CHECK(row.smallest(n, x.data()) == *low);
        CHECK(row.find(n, x.data(), *low) == low - x.begin());
        for (std::int64_t i = 0; i < n; i += 1 + n / 5) {
            const T before = std::exchange(x[static_cast<std::size_t>(i)], nan);
            CHECK(std::isnan(row.smallest(n, x.data())));
            CHECK(row.find(n, x.data(), nan) == i);
            x[static_cast<std::size_t>(i)] = before;
        }
    });
}
