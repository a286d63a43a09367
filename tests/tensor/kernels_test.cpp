// Every kernel in every set of instructions that the processor has, against a plain reference.

#include "kernels/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace glassgrad::detail;

namespace {

/// Around the widths of vectors and of unrolled loops.
constexpr std::int64_t sizes[] = {0, 1, 3, 7, 8, 15, 16, 17, 31, 63, 64, 65, 1000};

template <class T>
const Kernels<T>& of(const KernelTable& table) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return table.of_float;
    } else {
        return table.of_double;
    }
}

/// Distance from a reference in units in its last place; infinite where only one is NaN or
/// infinite.
template <class T>
double ulps(T got, T wanted) {
    if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
    if (!std::isfinite(got) || !std::isfinite(wanted)) {
        return std::numeric_limits<double>::infinity();
    }
    const T size = std::abs(wanted);
    const double unit =
        static_cast<double>(std::nextafter(size, std::numeric_limits<T>::infinity())) -
        static_cast<double>(size);
    return std::abs(static_cast<double>(got) - static_cast<double>(wanted)) / unit;
}

/// Numbers in [low, high], then what is special about T.
template <class T>
std::vector<T> numbers(std::int64_t n, double low, double high) {
    using Limits = std::numeric_limits<T>;
    const T special[] = {0,
                         -T{0},
                         Limits::infinity(),
                         -Limits::infinity(),
                         Limits::quiet_NaN(),
                         Limits::denorm_min(),
                         Limits::max(),
                         Limits::lowest(),
                         T{1},
                         T{-1}};
    std::mt19937 random(static_cast<unsigned>(n));
    std::uniform_real_distribution<double> uniform(low, high);
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& each : x) each = static_cast<T>(uniform(random));
    for (std::size_t i = 0; i < std::size(special) && i * 2 + 1 < x.size(); ++i) {
        x[i * 2 + 1] = special[i];
    }
    return x;
}

/// The largest distance of kernel(x) from `reference`, of each element of its own.
template <class T, class Kernel, class Reference>
double worst(const Kernel& kernel, const Reference& reference, double low, double high) {
    double distance = 0;
    for (const std::int64_t n : sizes) {
        const std::vector<T> x = numbers<T>(n, low, high);
        std::vector<T> y(x.size() + 1, T{7});
        kernel(n, x.data(), y.data());
        for (std::size_t i = 0; i < x.size(); ++i) {
            distance = std::max(distance, ulps(y[i], reference(x[i])));
        }
        if (y.back() != 7) return std::numeric_limits<double>::infinity();
    }
    return distance;
}

}  // namespace

TEMPLATE_TEST_CASE("a kernel is its reference to rounding, in each set of instructions",
                   "[kernels]", float, double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        const Kernels<T>& kernels = of<T>(table);
        const double far = sizeof(T) == sizeof(float) ? 110 : 760;
        CHECK(worst<T>(
                  kernels.exp, [](T x) { return std::exp(x); }, -far, far) <= 2);
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
