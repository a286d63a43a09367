// What attention does to scores between its products, in each set of instructions, against plain
// loops in f64.

#include "kernels/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

using namespace glassgrad::detail;

namespace {

template <class T>
const Kernels<T>& of(const KernelTable& table) {
    if constexpr (std::is_same_v<T, float>) {
        return table.of_float;
    } else {
        return table.of_double;
    }
}

constexpr double inf = std::numeric_limits<double>::infinity();

template <class T>
std::vector<T> spread(std::int64_t count, double low, double high, int seed) {
    std::vector<T> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double turn = 0.7548776662466927 * static_cast<double>(i + 1) + 0.3141 * seed;
        x[i] = static_cast<T>(low + (high - low) * (turn - std::floor(turn)));
    }
    return x;
}

/// Scores of which every seventh is hidden, and all of column 1.
template <class T>
std::vector<T> some_hidden(std::int64_t rows, std::int64_t panel, int seed) {
    std::vector<T> x = spread<T>(rows * panel, -9, 9, seed);
    for (std::size_t i = 0; i < x.size(); ++i) {
        if (i % 7 == 3 || static_cast<std::int64_t>(i) % panel == 1) x[i] = static_cast<T>(-inf);
    }
    return x;
}

template <class T>
bool near(T got, double wanted) {
    if (wanted == 0) return got == 0;
    const double tolerance = sizeof(T) == sizeof(float) ? 2e-6 : 1e-14;
    return std::abs(static_cast<double>(got) - wanted) <= tolerance * (1 + std::abs(wanted));
}

/// f(kernels) in each set of instructions.
template <class T, class F>
void in_each_set(const F& f) {
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        f(of<T>(table));
    }
}

constexpr std::int64_t rows_of[] = {0, 1, 2, 3, 4, 5, 15, 16, 17, 65};

}  // namespace

TEMPLATE_TEST_CASE("scores become weights beside those before, in each set of instructions",
                   "[attention]", float, double) {
    using T = TestType;
    constexpr double factor = 0.375;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t panel = kernels.products.panel_columns;
        const auto width = static_cast<std::size_t>(panel);
        for (const std::int64_t rows : rows_of) {
            CAPTURE(rows);
            std::vector<T> top(width, static_cast<T>(-inf));
            std::vector<double> total(width, 0.0);
            std::vector<T> by(width);
            std::vector<double> best(width, -inf);
            std::vector<double> sums(width, 0.0);
            for (const int seed : {1, 2}) {
                std::vector<T> x = some_hidden<T>(rows, panel, seed);
                const std::vector<T> given = x;
                kernels.attention.weigh(rows, T(factor), x.data(), top.data(), total.data(),
                                        by.data());
                for (std::size_t j = 0; j < width; ++j) {
                    double largest = best[j];
                    for (std::size_t i = j; i < x.size(); i += width) {
                        largest = std::max(largest, static_cast<double>(given[i] * T(factor)));
                    }
                    const double change = largest == best[j] ? 1 : std::exp(best[j] - largest);
                    sums[j] *= change;
                    for (std::size_t i = j; i < x.size(); i += width) {
                        const auto score = static_cast<double>(given[i] * T(factor));
                        const double weight = score == -inf ? 0 : std::exp(score - largest);
                        CHECK(near(x[i], weight));
                        sums[j] += weight;
                    }
                    best[j] = largest;
                    CHECK(static_cast<double>(top[j]) == largest);
                    CHECK(near(by[j], change));
                    CHECK(near(static_cast<T>(total[j]), sums[j]));
                }
            }
        }
    });
}

TEMPLATE_TEST_CASE("weights and their gradients come back, in each set of instructions",
                   "[attention]", float, double) {
    using T = TestType;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t panel = kernels.products.panel_columns;
        const auto width = static_cast<std::size_t>(panel);
        for (const std::int64_t rows : rows_of) {
            CAPTURE(rows);
            const std::vector<T> scores = some_hidden<T>(rows, panel, 3);
            const std::vector<T> top = spread<T>(rows, 2, 3, 4);
            const std::vector<T> inverse = spread<T>(rows, 0.1, 1, 5);
            const std::vector<T> dot = spread<T>(rows, -1, 1, 6);
            std::vector<T> w = scores;
            kernels.attention.weigh_again(rows, T{0.25}, top.data(), inverse.data(), w.data());
            std::vector<T> g = spread<T>(rows * panel, -2, 2, 7);
            for (std::size_t i = 0; i < g.size(); ++i) {
                if (w[i] == 0) g[i] = std::numeric_limits<T>::quiet_NaN();
            }
            const std::vector<T> before = g;
            kernels.attention.pull(rows, T{0.5}, dot.data(), w.data(), g.data());
            for (std::size_t i = 0; i < w.size(); ++i) {
                const std::size_t row = i / width;
                const auto score = static_cast<double>(scores[i]);
                CHECK(near(w[i], std::exp(score * 0.25 - static_cast<double>(top[row])) *
                                     static_cast<double>(inverse[row])));
                const double wanted =
                    w[i] == 0
                        ? 0
                        : static_cast<double>(w[i]) * 0.5 *
                              (static_cast<double>(before[i]) - static_cast<double>(dot[row]));
                CHECK(near(g[i], wanted));
            }
        }
    });
}

TEMPLATE_TEST_CASE("softmax and its gradients run down columns, in each set of instructions",
                   "[attention]", float, double) {
    using T = TestType;
    constexpr double factor = 0.375;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t panel = kernels.products.panel_columns;
        const auto width = static_cast<std::size_t>(panel);
        for (const std::int64_t rows : rows_of) {
            CAPTURE(rows);
            const std::vector<T> given = some_hidden<T>(rows, panel, 1);
            std::vector<T> w = given, top(width), total(width);
            kernels.attention.share(rows, T(factor), w.data(), top.data(), total.data());
            std::vector<T> g = spread<T>(rows * panel, -2, 2, 2);
            for (std::size_t i = 0; i < g.size(); ++i) {
                if (w[i] == 0) g[i] = std::numeric_limits<T>::quiet_NaN();
            }
            const std::vector<T> before = g;
            kernels.attention.pull_down(rows, T{0.5}, w.data(), g.data());
            for (std::size_t j = 0; j < width; ++j) {
                double largest = -inf, sum = 0, dot = 0;
                for (std::size_t i = j; i < w.size(); i += width) {
                    largest = std::max(largest, static_cast<double>(given[i] * T(factor)));
                }
                for (std::size_t i = j; i < w.size(); i += width) {
                    const auto score = static_cast<double>(given[i] * T(factor));
                    sum += score == -inf ? 0 : std::exp(score - largest);
                    if (w[i] != 0)
                        dot += static_cast<double>(w[i]) * static_cast<double>(before[i]);
                }
                CHECK(static_cast<double>(top[j]) == largest);
                CHECK(near(total[j], sum));
                for (std::size_t i = j; i < w.size(); i += width) {
                    const auto score = static_cast<double>(given[i] * T(factor));
                    CHECK(near(w[i], score == -inf ? 0 : std::exp(score - largest) / sum));
                    const double wanted = w[i] == 0 ? 0
                                                    : static_cast<double>(w[i]) * 0.5 *
                                                          (static_cast<double>(before[i]) - dot);
                    CHECK(near(g[i], wanted));
                }
            }
        }
    });
}

TEMPLATE_TEST_CASE("products of what lies anywhere are plain sums, in each set of instructions",
                   "[attention]", float, double) {
    using T = TestType;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t lanes = kernels.products.panel_columns / 2;
        for (const std::int64_t m : {0, 1, 2, 5, 11, 12, 13, 25}) {
            for (const std::int64_t n : {lanes, 2 * lanes, 3 * lanes}) {
                for (const std::int64_t k : {0, 1, 17}) {
                    CAPTURE(m, n, k);
                    const bool turned = (m + k) % 2 == 0;
                    const std::int64_t row = turned ? 1 : k + 3;
                    const std::int64_t step = turned ? m + 2 : 1;
                    const std::vector<T> a = spread<T>((m + 3) * (k + 3), -2, 2, 1);
                    const std::vector<T> b = spread<T>(k * (n + 5) + 1, -2, 2, 2);
                    const std::vector<T> before = spread<T>(m * (n + 1) + 1, -2, 2, 3);
                    std::vector<T> c = before;
                    const bool add = m % 2 == 1;
                    kernels.attention.multiply(m, n, k, {a.data(), row, step}, b.data(), n + 5,
                                               {c.data(), n + 1, add, nullptr});
                    for (std::int64_t i = 0; i < m; ++i) {
                        for (std::int64_t j = 0; j <= n; ++j) {
                            const auto at = static_cast<std::size_t>(i * (n + 1) + j);
                            if (j == n) {
                                CHECK(c[at] == before[at]);
                                continue;
                            }
                            double sum = add ? static_cast<double>(before[at]) : 0;
                            for (std::int64_t p = 0; p < k; ++p) {
                                sum += static_cast<double>(
                                           a[static_cast<std::size_t>(i * row + p * step)]) *
                                       static_cast<double>(
                                           b[static_cast<std::size_t>(p * (n + 5) + j)]);
                            }
                            CHECK(std::abs(static_cast<double>(c[at]) - sum) <
                                  (sizeof(T) == sizeof(float) ? 3e-5 : 1e-13));
                        }
                    }
                }
            }
        }
    });
}

TEMPLATE_TEST_CASE("a band of scores is left, in each set of instructions", "[attention]", float,
                   double) {
    using T = TestType;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t panel = kernels.products.panel_columns;
        for (const std::int64_t from :
             {std::int64_t{-9}, std::int64_t{-2}, std::int64_t{0}, panel}) {
            for (const std::int64_t size : {std::int64_t{0}, std::int64_t{3}, panel}) {
                CAPTURE(from, size);
                const std::vector<T> given = spread<T>(7 * panel, -2, 2, 1);
                std::vector<T> x = given;
                kernels.attention.hide(7, from, from + size, x.data());
                for (std::int64_t i = 0; i < 7 * panel; ++i) {
                    const std::int64_t j = i % panel - i / panel;
                    const auto at = static_cast<std::size_t>(i);
                    CHECK(x[at] ==
                          (j < from || j >= from + size ? static_cast<T>(-inf) : given[at]));
                }
            }
        }
    });
}

TEMPLATE_TEST_CASE("factors of 0 leave nothing, and dots and looks at numbers are plain",
                   "[attention]", float, double) {
    using T = TestType;
    in_each_set<T>([&](const Kernels<T>& kernels) {
        const std::int64_t panel = kernels.products.panel_columns;
        std::vector<T> by = spread<T>(panel, 0.5, 2, 1);
        by[1] = 0;
        std::vector<T> x = spread<T>(3 * panel, -2, 2, 2);
        x[1] = std::numeric_limits<T>::infinity();
        const std::vector<T> before = x;
        kernels.attention.rescale(3, by.data(), x.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t j = i % by.size();
            CHECK(x[i] == (by[j] == 0 ? T{0} : before[i] * by[j]));
        }
        for (const std::int64_t n : {0, 1, 3, 15, 16, 17, 63, 65, 1000}) {
            CAPTURE(n);
            std::vector<T> a = spread<T>(n, -2, 2, 3);
            const std::vector<T> b = spread<T>(n, -2, 2, 4);
            double sum = 0;
            for (std::size_t i = 0; i < a.size(); ++i) {
                sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
            }
            CHECK(std::abs(kernels.attention.dot(n, a.data(), b.data()) - sum) < 1e-11);
            CHECK(kernels.attention.finite(1, n, a.data(), n));
            if (n == 0) continue;
            for (const double wild : {inf, -inf, std::nan("")}) {
                a.back() = static_cast<T>(wild);
                CHECK_FALSE(kernels.attention.finite(1, n, a.data(), n));
            }
        }
        // Rows of one to four vectors, with something wild between them and then in each place.
        for (const std::int64_t n : {2, 4, 8, 16, 32, 64}) {
            for (const std::int64_t count : {1, 2, 3, 5}) {
                CAPTURE(n, count);
                const std::int64_t row = n + 1;
                const auto size = static_cast<std::size_t>(count * row);
                std::vector<T> a = spread<T>(count * row, -2, 2, 3);
                for (std::size_t i = 0; i < size; ++i) {
                    if (static_cast<std::int64_t>(i) % row == n)
                        a[i] = static_cast<T>(std::nan(""));
                }
                CHECK(kernels.attention.finite(count, n, a.data(), row));
                bool found = true;
                for (T& each : a) {
                    if (std::isnan(each)) continue;
                    const T number = std::exchange(each, static_cast<T>(inf));
                    found = found && !kernels.attention.finite(count, n, a.data(), row);
                    each = number;
                }
                CHECK(found);
            }
        }
    });
}
