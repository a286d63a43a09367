// One query's attention in every set of instructions, against plain loops.

#include "kernels/kernels.hpp"

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace glassgrad::detail;

TEMPLATE_TEST_CASE("a query attends to rows as the plain loops do, and not to a weight of 0",
                   "[kernels]", float, double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        CAPTURE(set.name);
        const KernelTable table = set.kernels();
        const auto kernel = [&] {
            if constexpr (sizeof(T) == sizeof(float)) {
                return table.of_float.attend_row;
            } else {
                return table.of_double.attend_row;
            }
        }();
        for (const std::int64_t count : {1, 3, 16, 65}) {
            for (const std::int64_t width : {0, 1, 3, 8, 15, 17, 48}) {
                CAPTURE(count, width);
                std::mt19937 random(static_cast<unsigned>(100 * count + width));
                std::normal_distribution<double> normal;
                const auto draw = [&](std::int64_t n) {
                    std::vector<T> x(static_cast<std::size_t>(n));
                    for (T& each : x) each = static_cast<T>(normal(random));
                    return x;
                };
                const std::vector<T> q = draw(width);
                std::vector<T> keys = draw(count * width);
                std::vector<T> values = draw(count * width);
                const double scale = 0.7;
                if (count > 1 && width > 0) {
                    // One key is so far away that its weight is 0: its value counts for nothing.
                    for (std::int64_t d = 0; d < width; ++d) {
                        keys[static_cast<std::size_t>(d)] = q[static_cast<std::size_t>(d)] > 0
                                                                ? static_cast<T>(-1e6)
                                                                : static_cast<T>(1e6);
                        values[static_cast<std::size_t>(d)] = std::numeric_limits<T>::quiet_NaN();
                    }
                }
                std::vector<double> weights;
                double sum = 0;
                for (std::int64_t j = 0; j < count; ++j) {
                    double score = 0;
                    for (std::int64_t d = 0; d < width; ++d) {
                        score += static_cast<double>(q[static_cast<std::size_t>(d)]) *
                                 static_cast<double>(keys[static_cast<std::size_t>(j * width + d)]);
                    }
                    weights.push_back(std::exp(scale * score));
                    sum += weights.back();
                }
                std::vector<T> room(static_cast<std::size_t>(count));
                std::vector<T> out(static_cast<std::size_t>(width) + 1, T{7});
                kernel(count, width, static_cast<T>(scale), q.data(), keys.data(), values.data(),
                       room.data(), out.data());
                CHECK(out.back() == 7);
                for (std::int64_t d = 0; d < width; ++d) {
                    double expected = 0;
                    for (std::int64_t j = 0; j < count; ++j) {
                        const double weight = weights[static_cast<std::size_t>(j)] / sum;
                        if (weight < 1e-100) continue;
                        expected += weight * static_cast<double>(
                                                 values[static_cast<std::size_t>(j * width + d)]);
                    }
                    const double eps = static_cast<double>(std::numeric_limits<T>::epsilon());
                    CHECK(std::abs(static_cast<double>(out[static_cast<std::size_t>(d)]) -
                                   expected) <= 100 * eps);
                }
            }
        }
    }
}
