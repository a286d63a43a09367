// Every kernel in every set of instructions that the processor has, against a plain reference.

#include "support/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

using namespace kernel_tests;

namespace {

/// The largest distance of kernel(x) from `reference`, in place as well, and cut in pieces, where
/// it must be the same to the bit.
template <class T, class Kernel, class Reference>
double worst(const Kernel& kernel, const Reference& reference, double low, double high) {
    constexpr double never = std::numeric_limits<double>::infinity();
    double distance = 0;
    for (const std::int64_t n : sizes) {
        const std::vector<T> x = numbers<T>(n, low, high);
        std::vector<T> y(x.size() + 1, T{7});
        kernel(n, x.data(), y.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            distance = std::max(distance, ulps(y[i], static_cast<T>(reference(Wide<T>(x[i])))));
        }
        if (y.back() != 7) return never;
        std::vector<T> pieces = x;
        pieces.push_back(7);
        for (std::int64_t at = 0, size = 1; at < n; at += size, size = size * 2 + 1) {
            kernel(std::min(size, n - at), pieces.data() + at, pieces.data() + at);
        }
        if (!same_bits(pieces, y)) return never;
    }
    return distance;
}

/// The largest error of slope(x, gy) against gy reference(x), in units of gy.
template <class T, class Kernel, class Reference>
double worst_slope(const Kernel& kernel, const Reference& reference, double low, double high) {
    double distance = 0;
    for (const std::int64_t n : sizes) {
        const std::vector<T> x = numbers<T>(n, low, high);
        std::vector<T> gy(x.size());
        for (std::size_t i = 0; i < gy.size(); ++i) gy[i] = T(i % 7) - T(2.75);
        std::vector<T> gx = gy;
        kernel(n, x.data(), gx.data(), gx.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            const Wide<T> wanted = Wide<T>(gy[i]) * reference(Wide<T>(x[i]));
            if (ulps(gx[i], static_cast<T>(wanted)) == 0) continue;
            const double off = static_cast<double>(std::abs(gx[i] - wanted) / std::abs(gy[i]));
            distance = off >= 0 ? std::max(distance, off) : INFINITY;
        }
    }
    return distance / static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace

TEMPLATE_TEST_CASE("a kernel is its reference to rounding, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    using W = Wide<T>;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        const Maps<T>& map = of<T>(table).map;
        const double far = sizeof(T) == sizeof(float) ? 110 : 760;
        const auto near = [](auto kernel, auto reference, double low, double high) {
            return worst<T>(kernel, reference, low, high);
        };
        const auto shared = [](W x, W share) { return share == 0 ? -W{0} : x * share; };
        const auto sigmoid = [](W x) {
            const W e = std::exp(-std::abs(x));
            return (x < 0 ? e : 1) / (1 + e);
        };
        CHECK(near(
                  map.exp, [](W x) { return std::exp(x); }, -far, far) <= 2);
        CHECK(near(
                  map.expm1, [](W x) { return std::expm1(x); }, -2, 2) <= 3);
        CHECK(near(
                  map.expm1, [](W x) { return std::expm1(x); }, -far, far) <= 3);
        CHECK(near(
                  map.log, [](W x) { return std::log(x); }, 0, 2) <= 2);
        CHECK(near(
                  map.log, [](W x) { return std::log(x); }, 0, 1e30) <= 2);
        CHECK(near(
                  map.log1p, [](W x) { return std::log1p(x); }, -1, 2) <= 3);
        CHECK(near(
                  map.log1p, [](W x) { return std::log1p(x); }, -1e-3, 1e-3) <= 3);
        CHECK(near(
                  map.sqrt, [](W x) { return std::sqrt(x); }, 0, 9) <= 0.5);
        CHECK(near(
                  map.rsqrt, [](W x) { return 1 / std::sqrt(x); }, 0, 9) <= 2);
        CHECK(near(
                  map.reciprocal, [](W x) { return 1 / x; }, -9, 9) <= 0.5);
        CHECK(near(
                  map.erf, [](W x) { return std::erf(x); }, -4, 4) <= 3);
        CHECK(near(
                  map.tanh, [](W x) { return std::tanh(x); }, -12, 12) <= 4);
        // Results that would be subnormal are 0.
        CHECK(near(map.sigmoid, sigmoid, -87, far) <= 4);
        CHECK(near(
                  map.softplus,
                  [](W x) { return std::max(x, W{0}) + std::log1p(std::exp(-std::abs(x))); }, -30,
                  30) <= 4);
        CHECK(near(
                  map.relu, [](W x) { return x < 0 ? W{0} : x; }, -1, 1) == 0);
        CHECK(near(
                  map.silu, [&](W x) { return shared(x, sigmoid(x)); }, -80, 80) <= 5);
        CHECK(near(
                  map.gelu, [&](W x) { return shared(x, std::erfc(-x / std::sqrt(W{2})) / 2); },
                  -12, 12) <= 8);
        const auto by_tanh = [&](W x) {
            const W u =
                std::sqrt(8 / std::acos(W{-1})) * (x + static_cast<W>(0.044715L) * x * x * x);
            return shared(x, sigmoid(u));
        };
        // Far left each digit of u is one of the result.
        CHECK(near(map.gelu_tanh, by_tanh, -2, 9) <= 8);
        CHECK(near(map.gelu_tanh, by_tanh, -9, 9) <= 130);
    }
}

TEMPLATE_TEST_CASE("the slope of an activation is its reference, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    using W = Wide<T>;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        const Slopes<T>& slope = of<T>(table).slope;
        const auto far = [](auto kernel, auto reference) {
            return worst_slope<T>(kernel, reference, -12, 12);
        };
        const W pi = std::acos(W{-1});
        const auto limits = [](W x, W flat, auto f) {
            return std::abs(x) > flat ? (x > 0 ? W{1} : W{0}) : f(x);
        };
        const auto sigmoid = [](W x) { return 1 / (1 + std::exp(-x)); };
        CHECK(worst_slope<T>(
                  slope.tanh, [](W y) { return 1 - y * y; }, -1, 1) <= 1);
        CHECK(worst_slope<T>(
                  slope.sigmoid, [](W y) { return y * (1 - y); }, 0, 1) <= 1);
        CHECK(far(slope.relu, [](W y) { return y > 0 ? W{1} : W{0}; }) == 0);
        CHECK(far(slope.softplus, sigmoid) <= 2);
        CHECK(far(slope.silu, [&](W x) {
                  return limits(x, 800, [&](W z) {
                      const W s = sigmoid(z);
                      return s * (1 + z * (1 - s));
                  });
              }) <= 4);
        CHECK(far(slope.gelu, [&](W x) {
                  return limits(x, 40, [&](W z) {
                      return std::erfc(-z / std::sqrt(W{2})) / 2 +
                             z * std::exp(-z * z / 2) / std::sqrt(2 * pi);
                  });
              }) <= 4);
        CHECK(far(slope.gelu_tanh, [&](W x) {
                  return limits(x, 40, [&](W z) {
                      const W twice = std::sqrt(8 / pi);
                      const W cubic = static_cast<W>(0.044715L);
                      const W p = sigmoid(twice * (z + cubic * z * z * z));
                      return p + z * p * (1 - p) * twice * (1 + 3 * cubic * z * z);
                  });
              }) <= 8);
    }
}

TEMPLATE_TEST_CASE("a sum of squares is that of f64, and no NaN is lost", "[kernels]", float,
                   double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const auto kernel = of<T>(set.kernels()).sum_of_squares;
        for (const std::int64_t n : sizes) {
            CAPTURE(n);
            std::vector<T> x = numbers<T>(n, -3, 3);
            long double sum = 0;
            for (T& each : x) {
                if (!(std::abs(each) < 10)) each = T{2};
                sum += static_cast<long double>(each) * static_cast<long double>(each);
            }
            CHECK(kernel(n, x.data()) == Approx(static_cast<double>(sum)).epsilon(1e-14));
            if (n == 0) continue;
            x[x.size() / 2] = std::numeric_limits<T>::quiet_NaN();
            x.front() = n > 1 ? std::numeric_limits<T>::infinity() : x.front();
            CHECK(std::isnan(kernel(n, x.data())));
        }
    }
}

TEMPLATE_TEST_CASE("arithmetic of two operands is exact, in each set of instructions", "[kernels]",
                   float, double) {
    using T = TestType;
    const auto plain = [](auto kernel, auto f) {
        for (const std::int64_t n : sizes) {
            const std::vector<T> a = numbers<T>(n, -9, 9);
            std::vector<T> b = numbers<T>(n, -3, 3);
            std::rotate(b.begin(), b.begin() + n / 3, b.end());
            for (const auto& [step_a, step_b] : {std::pair{1, 1}, {1, 0}, {0, 1}, {0, 0}}) {
                std::vector<T> wanted(a.size());
                for (std::size_t i = 0; i < a.size(); ++i) {
                    wanted[i] = f(a[step_a ? i : 0], b[step_b ? i : 0]);
                }
                std::vector<T> y = a;
                std::vector<T> first(a.begin(), a.begin() + (n > 0 ? 1 : 0));
                kernel(n, step_a ? y.data() : first.data(), step_a, b.data(), step_b, y.data());
                if (!same_bits(y, wanted)) return false;
            }
            // Every other element.
            std::vector<T> y(static_cast<std::size_t>(n / 2));
            kernel(n / 2, a.data(), 2, b.data(), 1, y.data());
            for (std::size_t i = 0; i < y.size(); ++i) {
                if (!same_bits(std::vector<T>{y[i]}, {f(a[2 * i], b[i])})) return false;
            }
        }
        return true;
    };
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        const Pairs<T>& pair = of<T>(table).pair;
        CHECK(plain(pair.add, [](T a, T b) { return a + b; }));
        CHECK(plain(pair.sub, [](T a, T b) { return a - b; }));
        CHECK(plain(pair.mul, [](T a, T b) { return a * b; }));
        CHECK(plain(pair.div, [](T a, T b) { return a / b; }));
        CHECK(plain(pair.chain_mul, [](T a, T b) { return a == 0 ? 0 : a * b; }));
        CHECK(plain(pair.chain_div, [](T a, T b) { return a == 0 ? 0 : a / b; }));
        CHECK(plain(pair.maximum, [](T a, T b) {
            return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : a > b ? a : b;
        }));
        CHECK(plain(pair.minimum, [](T a, T b) {
            return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : a < b ? a : b;
        }));
        for (const std::int64_t n : sizes) {
            const std::vector<T> a = numbers<T>(n, -9, 9);
            const std::vector<T> b = numbers<T>(n, 20, 30);
            // Of vector<bool> there is no bool*.
            const auto mask = std::make_unique<bool[]>(static_cast<std::size_t>(n) + 1);
            for (std::int64_t i = 0; i < n; ++i) mask[static_cast<std::size_t>(i)] = i % 3 != 1;
            for (int steps = 0; steps < 8; ++steps) {
                const int by[] = {steps & 1, steps >> 1 & 1, steps >> 2};
                std::vector<T> y(a.size());
                pair.choose(n, mask.get(), by[0], a.data(), by[1], b.data(), by[2], y.data());
                std::vector<T> wanted(a.size());
                for (std::size_t i = 0; i < a.size(); ++i) {
                    wanted[i] = mask[by[0] ? i : 0] ? a[by[1] ? i : 0] : b[by[2] ? i : 0];
                }
                CHECK(same_bits(y, wanted));
            }
        }
    }
}

TEMPLATE_TEST_CASE("a step of Adam is its formula, in each set of instructions", "[kernels]", float,
                   double) {
    using T = TestType;
    using W = Wide<T>;
    const AdamFactors<T> f{T(0.7),  T(0.9),  T(0.1), T(0.99), T(0.01),
                           T(1e-8), T(0.01), T(0.3), T(0.5),  0};
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        for (const std::int64_t n : sizes) {
            const auto size = static_cast<std::size_t>(n);
            std::vector<T> w(size), g(size), mean(size), square(size);
            for (std::size_t i = 0; i < size; ++i) {
                w[i] = T(i % 5) - T(1.5);
                g[i] = T(i % 7) - T(2.75);
                mean[i] = T(i % 3) - T(0.5);
                square[i] = T(i % 4) + T(0.25);
            }
            std::vector<T> got[] = {w, mean, square};
            of<T>(table).update.adam(n, f, g.data(), got[0].data(), got[1].data(), got[2].data());
            double worst_of_all = 0;
            for (std::size_t i = 0; i < size; ++i) {
                const W gradient = W{f.scale} * g[i];
                const W m = W{f.beta1} * mean[i] + W{f.rest1} * gradient;
                const W s = W{f.beta2} * square[i] + W{f.rest2} * gradient * gradient;
                const W v = W{f.keep} * w[i] - W{f.size} * m / (std::sqrt(s) / f.root + f.eps);
                for (const auto& [a, b] :
                     {std::pair{got[0][i], v}, {got[1][i], m}, {got[2][i], s}}) {
                    worst_of_all = std::max(worst_of_all, static_cast<double>(std::abs(a - b)));
                }
            }
            CHECK(worst_of_all <= 4 * static_cast<double>(std::numeric_limits<T>::epsilon()));
        }
    }
}

TEMPLATE_TEST_CASE("steps of SGD and Lion are their formulas, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    const LionFactors<T> lion{T(0.7), T(0.9), T(0.1), T(0.99), T(0.01), T(0.01), T(0.5)};
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        for (const std::int64_t n : sizes) {
            const auto size = static_cast<std::size_t>(n);
            std::vector<T> w(size), g(size), v(size);
            for (std::size_t i = 0; i < size; ++i) {
                w[i] = T(i % 5) - T(1.5);
                g[i] = i % 11 == 10 ? nan : i % 7 == 3 ? T{0} : T(i % 7) - T(2.75);
                v[i] = i % 7 == 3 ? T{0} : T(i % 3) - T(0.5);
            }
            std::vector<T> got = w, mean = v, wanted = w, wanted_mean = v;
            of<T>(table).update.lion(n, lion, g.data(), got.data(), mean.data());
            for (std::size_t i = 0; i < size; ++i) {
                const T gradient = lion.scale * g[i];
                const T step = lion.beta1 * v[i] + lion.rest1 * gradient;
                wanted[i] = lion.keep * w[i] - lion.lr * (step > 0 ? 1 : step < 0 ? -1 : step);
                wanted_mean[i] = lion.beta2 * v[i] + lion.rest2 * gradient;
            }
            CHECK(same_bits(got, wanted));
            CHECK(same_bits(mean, wanted_mean));
            for (int flags = 0; flags < 16; ++flags) {
                CAPTURE(flags);
                const bool heavy = (flags & 1) != 0;
                const SgdFactors<T> f{
                    T(0.7),           T(0.01),         T(0.9), T(0.8), (flags & 2) ? T(0.1) : T(0),
                    (flags & 4) != 0, (flags & 8) != 0};
                got = w, mean = v, wanted = w, wanted_mean = v;
                of<T>(table).update.sgd(n, f, g.data(), got.data(), heavy ? mean.data() : nullptr);
                for (std::size_t i = 0; i < size; ++i) {
                    T d = f.scale * g[i];
                    if (f.decay != 0) d = d + f.decay * w[i];
                    if (heavy) {
                        wanted_mean[i] = f.first ? d : f.momentum * v[i] + f.share * d;
                        d = f.nesterov ? d + f.momentum * wanted_mean[i] : wanted_mean[i];
                    }
                    wanted[i] = w[i] - f.lr * d;
                }
                CHECK(same_bits(got, wanted));
                CHECK(same_bits(mean, wanted_mean));
            }
        }
    }
}
