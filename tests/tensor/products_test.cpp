// Products of matrices against plain loops, on whole numbers, whose sums are exact in any order.

#include "gemm.hpp"
#include "kernels/kernels.hpp"

#include "support/catch.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

using namespace glassgrad::detail;

namespace {

template <class T>
using Numbers = std::vector<T>;

template <class T>
Numbers<T> whole(std::int64_t count, std::int64_t seed) {
    Numbers<T> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<T>((static_cast<std::int64_t>(i) * 7 + seed) % 11 - 5);
    }
    return x;
}

struct Call {
    std::int64_t m, n, k;
    bool a_turned = false;
    bool b_turned = false;
    bool add = false;
    bool bias = false;
};

/// Whether a product with rows further apart than they are long is that of loops, and nothing else
/// is written to.
template <class T, class F>
bool right(const Call& call, const F& product) {
    const auto& [m, n, k, a_turned, b_turned, add, bias] = call;
    constexpr std::int64_t gap = 3;
    const std::int64_t a_stride = (a_turned ? m : k) + gap;
    const std::int64_t b_stride = (b_turned ? k : n) + gap;
    const std::int64_t c_stride = n + gap;
    const Numbers<T> a = whole<T>((a_turned ? k : m) * a_stride, 3);
    const Numbers<T> b = whole<T>((b_turned ? n : k) * b_stride, 8);
    const Numbers<T> added = whole<T>(n, 5);
    Numbers<T> c = whole<T>(m * c_stride, 1);
    Numbers<T> wanted = c;
    const auto at = [](const Numbers<T>& x, std::int64_t i) {
        return x[static_cast<std::size_t>(i)];
    };
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            T sum = add ? at(c, i * c_stride + j) : T{0};
            for (std::int64_t p = 0; p < k; ++p) {
                sum += at(a, a_turned ? p * a_stride + i : i * a_stride + p) *
                       at(b, b_turned ? j * b_stride + p : p * b_stride + j);
            }
            if (bias) sum += at(added, j);
            wanted[static_cast<std::size_t>(i * c_stride + j)] = sum;
        }
    }
    product(m, n, k, Operand<T>{a.data(), a_stride, a_turned},
            Operand<T>{b.data(), b_stride, b_turned},
            Target<T>{c.data(), c_stride, add, bias ? added.data() : nullptr});
    return c == wanted;
}

template <class T>
const ProductKernels<T>& products_of(const KernelTable& table) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return table.of_float.products;
    } else {
        return table.of_double.products;
    }
}

}  // namespace

TEMPLATE_TEST_CASE("gemm is the product of plain loops", "[products]", float, double) {
    using T = TestType;
    constexpr std::int64_t sizes[][3] = {
        {0, 3, 4},    {3, 0, 4},      {3, 4, 0},    {1, 1, 1},     {4, 6, 3},      {1, 700, 3},
        {700, 1, 3},  {1, 65, 130},   {2, 64, 65},  {17, 15, 3},   {12, 32, 63},   {13, 33, 64},
        {63, 65, 17}, {65, 16, 31},   {37, 41, 53}, {5, 3, 1000},  {300, 40, 390}, {40, 300, 390},
        {8, 530, 17}, {3, 15, 390},   {9, 1, 400},  {13, 33, 780}, {3, 33, 780},   {25, 64, 800},
        {70, 96, 33}, {20, 64, 1021}, {9, 1021, 64}};
    for (const auto& [m, n, k] : sizes) {
        for (int bits = 0; bits < 16; ++bits) {
            const Call call{.m = m,
                            .n = n,
                            .k = k,
                            .a_turned = (bits & 1) != 0,
                            .b_turned = (bits & 2) != 0,
                            .add = (bits & 4) != 0,
                            .bias = (bits & 8) != 0};
            CAPTURE(m, n, k, bits);
            CHECK(right<T>(call, gemm<T>));
        }
    }
}

TEMPLATE_TEST_CASE("panels are packed and multiplied alike in each set of instructions",
                   "[products]", float, double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        const KernelTable table = set.kernels();
        const ProductKernels<T>* products = &products_of<T>(table);
        CAPTURE(set.name);
        for (const std::int64_t m : {1, 5, 12, 13, 24, 31}) {
            for (const std::int64_t n : {1, 7, 16, 32, 33, 64}) {
                for (const std::int64_t k : {1, 7, 17, 64}) {
                    const bool a_turned = (m + n) % 2 == 0;
                    const bool b_turned = (n + k) % 2 == 0;
                    CAPTURE(m, n, k, a_turned, b_turned);
                    const auto room = [](std::int64_t lines, std::int64_t unit) {
                        return static_cast<std::size_t>((lines + unit - 1) / unit * unit);
                    };
                    const Numbers<T> a = whole<T>(m * k, 2);
                    const Numbers<T> b = whole<T>(k * n, 9);
                    const auto depth = static_cast<std::size_t>(k);
                    Numbers<T> rows(room(m, products->panel_rows) * depth + 1, T{77});
                    Numbers<T> columns(room(n, products->panel_columns) * depth + 1, T{77});
                    products->pack_rows(m, k, a.data(), a_turned ? 1 : k, a_turned ? m : 1,
                                        rows.data());
                    products->pack_columns(n, k, b.data(), b_turned ? k : 1, b_turned ? 1 : n,
                                           columns.data());
                    Numbers<T> c(static_cast<std::size_t>(m * n + 1), T{77});
                    products->multiply(m, n, k, products->packed_rows(rows.data()),
                                       products->panel_rows * k, columns.data(),
                                       products->panel_columns * k, products->panel_columns,
                                       {c.data(), n, false, nullptr});
                    Numbers<T> wanted(c.size(), T{77});
                    multiply_in_loops<T>(m, n, k, {a.data(), a_turned ? m : k, a_turned},
                                         {b.data(), b_turned ? k : n, b_turned}, wanted.data(), n);
                    CHECK(c == wanted);
                    CHECK(rows.back() == 77);
                    CHECK(columns.back() == 77);
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("few rows are multiplied alike in each set of instructions", "[products]", float,
                   double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        const KernelTable table = set.kernels();
        const auto few = [&] {
            if constexpr (sizeof(T) == sizeof(float)) return table.of_float.products.multiply_few;
            if constexpr (sizeof(T) != sizeof(float)) return table.of_double.products.multiply_few;
        }();
        CAPTURE(set.name);
        for (const std::int64_t m : {1, 2, 3, 4, 7}) {
            for (const std::int64_t n : {1, 15, 16, 17, 64, 513}) {
                for (const std::int64_t k : {1, 7, 8, 16, 33}) {
                    for (const bool turned : {false, true}) {
                        CAPTURE(m, n, k, turned);
                        const std::int64_t b_stride = turned ? k : n;
                        const Numbers<T> a = whole<T>(m * k, 2);
                        const Numbers<T> b = whole<T>(k * n, 9);
                        Numbers<T> c(static_cast<std::size_t>(m * n + 1), T{77});
                        few(m, n, k, a.data(), k, b.data(), turned ? b_stride : 1,
                            turned ? 1 : b_stride, {c.data(), n, false, nullptr});
                        Numbers<T> wanted(c.size(), T{77});
                        multiply_in_loops<T>(m, n, k, {a.data(), k, false},
                                             {b.data(), b_stride, turned}, wanted.data(), n);
                        CHECK(c == wanted);
                    }
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("small products are those of plain loops in each set of instructions",
                   "[products]", float, double) {
    using T = TestType;
    for (const InstructionSet& set : instruction_sets()) {
        const KernelTable table = set.kernels();
        const ProductKernels<T>* products = &products_of<T>(table);
        CAPTURE(set.name);
        for (const std::int64_t m : {1, 3, 4, 7, 8, 9, 17}) {
            for (const std::int64_t n : {1, 2, 3, 4, 7, 8, 15, 16, 31}) {
                for (const std::int64_t k : {0, 1, 3, 4, 7, 17}) {
                    for (int bits = 0; bits < 16; ++bits) {
                        CAPTURE(m, n, k, bits);
                        CHECK(right<T>({.m = m,
                                        .n = n,
                                        .k = k,
                                        .a_turned = (bits & 1) != 0,
                                        .b_turned = (bits & 2) != 0,
                                        .add = (bits & 4) != 0,
                                        .bias = (bits & 8) != 0},
                                       products->multiply_small));
                    }
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("a row of a product doesn't depend on how many others there are", "[products]",
                   float, double) {
    using T = TestType;
    if (!kernels<T>().products.beats_blas) return;
    constexpr std::int64_t rows = 30;
    constexpr std::int64_t n = 37;
    constexpr std::int64_t k = 803;
    const auto fractions = [](std::int64_t count, std::int64_t seed) {
        Numbers<T> x = whole<T>(count, seed);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] += T{1} / static_cast<T>(i + 3);
        return x;
    };
    const Numbers<T> a = fractions(rows * k, 3);
    const Numbers<T> b = fractions(k * n, 8);
    for (const bool turned : {false, true}) {
        const Operand<T> right{b.data(), turned ? k : n, turned};
        Numbers<T> all(rows * n);
        gemm<T>(rows, n, k, {a.data(), k, false}, right, {all.data(), n});
        for (const std::int64_t m : {1, 2, 5, 8, 9, 13}) {
            CAPTURE(m, turned);
            Numbers<T> some(static_cast<std::size_t>(m * n));
            gemm<T>(m, n, k, {a.data(), k, false}, right, {some.data(), n});
            CHECK(std::equal(some.begin(), some.end(), all.begin()));
        }
    }
}

TEMPLATE_TEST_CASE("a product has the same bits packed and as its operands lie", "[products]",
                   float, double) {
    using T = TestType;
    const ProductKernels<T>& products = kernels<T>().products;
    if (!products.beats_blas) return;
    constexpr std::int64_t m = 70;
    constexpr std::int64_t n = 37;
    constexpr std::int64_t k = 97;
    const auto thirds = [](std::int64_t count, std::int64_t seed) {
        Numbers<T> x = whole<T>(count, seed);
        for (T& each : x) each = each / T{3} + T{1} / T{7};
        return x;
    };
    const Numbers<T> a = thirds(m * k, 3);
    const Numbers<T> b = thirds(k * n, 8);
    Numbers<T> packed(m * n);
    gemm<T>(m, n, k, {a.data(), k, false}, {b.data(), n, false}, {packed.data(), n});
    Numbers<T> small(m * n);
    products.multiply_small(m, n, k, {a.data(), k, false}, {b.data(), n, false}, {small.data(), n});
    CHECK(packed == small);
}

TEMPLATE_TEST_CASE("gemm keeps NaN and infinity where they belong", "[products]", float, double) {
    using T = TestType;
    constexpr std::int64_t n = 70;
    const std::int64_t m = GENERATE(as<std::int64_t>{}, 4, 70);
    Numbers<T> a(n * n, T{1});
    Numbers<T> b(n * n, T{1});
    a[3 * n + 69] = std::numeric_limits<T>::quiet_NaN();
    b[69 * n + 65] = std::numeric_limits<T>::infinity();
    Numbers<T> c(n * n);
    gemm<T>(m, n, n, {a.data(), n, false}, {b.data(), n, false}, {c.data(), n});
    for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
            const T got = c[static_cast<std::size_t>(i * n + j)];
            if (i == 3) {
                CHECK(got != got);
            } else {
                CHECK(got == (j == 65 ? std::numeric_limits<T>::infinity() : T{n}));
            }
        }
    }
}
