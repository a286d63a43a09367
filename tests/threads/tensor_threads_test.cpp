// The same bits for any number of threads, on tensors large enough to be split, and right ones.

#include <glassgrad/tensor.hpp>

#include "support/catch.hpp"
#include "support/threads.hpp"
#include "tensor/support/data.hpp"
#include "tensor/support/npy_bytes.hpp"

#include <cmath>
#include <functional>
#include <map>
#include <thread>

#include <sys/wait.h>

using namespace glassgrad;
using namespace glassgrad::testing;

namespace {

std::string bytes(const Tensor& x) {
    const auto data = element_bytes(x);
    return to_string(x.shape()) +
           std::string(reinterpret_cast<const char*>(data.data()), data.size());
}

using Cases = std::map<std::string, std::function<Tensor()>>;

Cases large_calls(DType dtype) {
    RandomState random(9);
    const auto make = [&](const Shape& shape) { return random.randn(shape, {.dtype = dtype}); };
    const Tensor x = make({301, 211});
    const Tensor y = make({301, 211});
    const Tensor row = make({211});
    const Tensor column = make({301, 1});
    const Tensor stack = make({13, 47, 61});
    const Tensor other = make({13, 61, 29});
    const Tensor one = make({47, 61});
    const Tensor tall = make({1000, 90});
    const Tensor wide = make({90, 70});
    const Tensor line = make({200003});
    return {
        {"add", [=] { return add(x, y); }},
        {"add row", [=] { return add(x, row); }},
        {"mul column", [=] { return mul(column, x); }},
        {"div", [=] { return div(x, y); }},
        {"pow", [=] { return pow(abs(x), y); }},
        {"exp", [=] { return exp(x); }},
        {"tanh", [=] { return tanh(x); }},
        {"less", [=] { return less(x, y); }},
        {"where", [=] { return where(less(x, row), x, y); }},
        {"in place",
         [=] {
             Tensor z = x;
             z += y;
             z *= 3;
             return z;
         }},
        {"sum", [=] { return sum(line); }},
        {"sum rows", [=] { return sum(x, {.axes = {1}}); }},
        {"sum columns", [=] { return sum(x, {.axes = {0}}); }},
        {"sum middle", [=] { return sum(stack, {.axes = {1}}); }},
        {"sum_to",
         [=] {
             return sum_to(stack, {47, 1});
         }},
        {"mean", [=] { return mean(line); }},
        {"var", [=] { return var(x, {.axes = {0}}); }},
        {"max", [=] { return max(line); }},
        {"min columns", [=] { return min(x, {.axes = {0}}); }},
        {"argmax", [=] { return argmax(x, {.axis = 0}); }},
        {"softmax", [=] { return softmax(x); }},
        {"softmax columns", [=] { return softmax(x, 0); }},
        {"log_softmax", [=] { return log_softmax(stack); }},
        {"softmax_vjp", [=] { return softmax_vjp(x, y, 0); }},
        {"matmul", [=] { return matmul(tall, wide); }},
        {"matmul inner", [=] { return matmul(tall, tall, {.transpose_a = true}); }},
        {"matmul outer", [=] { return matmul(tall, tall, {.transpose_b = true}); }},
        {"matmul stack", [=] { return matmul(stack, other); }},
        {"matmul one to many", [=] { return matmul(one, other); }},
        {"matmul transposed stack",
         [=] { return matmul(other, stack, {.transpose_a = true, .transpose_b = true}); }},
        {"permute",
         [=] {
             return permute(stack, {2, 0, 1});
         }},
        {"broadcast_to",
         [=] {
             return broadcast_to(row, {301, 211});
         }},
        {"concat",
         [=] {
             return concat({x, y, x}, 1);
         }},
        {"slice", [=] { return slice(x, 1, {.step = -3}); }},
        {"astype", [=] { return x.astype(dtype == f32 ? f64 : f32); }},
    };
}

}  // namespace

TEST_CASE("1, 2, 3 and 4 threads give the same bits, and again from run to run") {
    for (const DType dtype : {f32, f64}) {
        std::map<std::string, std::string> expected;
        for (const int count : {1, 2, 3, 4, 1, 4}) {
            const Threads threads(count);
            for (const auto& [name, call] : large_calls(dtype)) {
                const std::string got = bytes(call());
                const auto [place, first] = expected.try_emplace(name, got);
                INFO(name << ", " << count << " threads");
                CHECK((first || place->second == got));
            }
        }
    }
}

TEST_CASE("large elementwise results are those of the elements") {
    const Threads threads(4);
    RandomState random(10);
    const Tensor x = random.randn({70001});
    const Tensor y = random.randn({70001});
    const Tensor a = add(x, y);
    const Tensor e = exp(x);
    const Tensor w = where(less(x, y), x, y);
    const auto px = x.values<double>();
    const auto py = y.values<double>();
    bool right = true;
    for (std::size_t i = 0; i < px.size(); ++i) {
        right = right && a.data<double>()[i] == px[i] + py[i];
        right = right && std::abs(e.data<double>()[i] / std::exp(px[i]) - 1) < 1e-14;
        right = right && w.data<double>()[i] == std::min(px[i], py[i]);
    }
    CHECK(right);
}

TEST_CASE("large products agree with three plain loops, whatever is transposed") {
    const Threads threads(4);
    RandomState random(11);
    for (const auto& [m, k, n] :
         {std::array<std::int64_t, 3>{500, 37, 90}, {3, 700, 41}, {64, 64, 64}, {1, 129, 300}}) {
        const Tensor a = random.randint(-5, 6, {m, k}).astype(f64);
        const Tensor b = random.randint(-5, 6, {k, n}).astype(f64);
        Tensor expected = zeros({m, n}, f64);
        double* out = expected.mutable_data<double>();
        for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t p = 0; p < k; ++p) {
                for (std::int64_t j = 0; j < n; ++j) {
                    out[i * n + j] += a.data<double>()[i * k + p] * b.data<double>()[p * n + j];
                }
            }
        }
        for (const DType dtype : {f32, f64, i64}) {
            const Tensor x = a.astype(dtype);
            const Tensor y = b.astype(dtype);
            CHECK(bytes(matmul(x, y).astype(f64)) == bytes(expected));
            CHECK(
                bytes(matmul(transpose(x), transpose(y), {.transpose_a = true, .transpose_b = true})
                          .astype(f64)) == bytes(expected));
        }
    }
}

TEST_CASE("each row of a large softmax has the bits that it has alone") {
    const Threads threads(3);
    RandomState random(12);
    const Tensor x = random.randn({500, 67}, {.dtype = f32});
    const Tensor y = softmax(x);
    const Tensor z = log_softmax(x);
    for (std::int64_t i = 0; i < 500; i += 71) {
        const Tensor row = slice(x, 0, {.start = i, .stop = i + 1});
        CHECK(bytes(softmax(row)) == bytes(slice(y, 0, {.start = i, .stop = i + 1})));
        CHECK(bytes(log_softmax(row)) == bytes(slice(z, 0, {.start = i, .stop = i + 1})));
    }
}

TEST_CASE("long sums in f32 keep six digits") {
    const Tensor x = full({10000000}, 0.1);
    CHECK(sum(x).item() == Approx(10000000 * double(0.1f)).epsilon(1e-7));
    CHECK(mean(x).item() == Approx(double(0.1f)).epsilon(1e-7));
    CHECK(var(x).item() < 1e-12);
    CHECK(sum(reshape(x, {5000000, 2}), {.axes = {0}}).at({1}) ==
          Approx(5000000 * double(0.1f)).epsilon(1e-7));
}

TEST_CASE("eight threads that multiply at once get what one gets") {
    RandomState random(13);
    const Tensor a = random.randn({37, 41});
    const Tensor b = random.randn({41, 43});
    const std::string expected = bytes(matmul(a, b));
    std::vector<std::thread> threads;
    std::vector<int> wrong(8);
    for (std::size_t t = 0; t < wrong.size(); ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 500; ++i) wrong[t] += bytes(matmul(a, b)) != expected;
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(8));
}

TEST_CASE("a child process multiplies after its parent did, with threads or without") {
    RandomState random(14);
    const Threads threads(2);
    const std::int64_t n = GENERATE(64, 600);
    const Tensor a = random.randn({n, n});
    const std::string expected = bytes(matmul(a, a));
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(20);
        ::_exit(bytes(matmul(a, a)) == expected ? 0 : 1);
    }
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the number of threads is at least one") {
    CHECK(num_threads() >= 1);
    CHECK(message_of([] { set_num_threads(0); }) ==
          "set_num_threads: 0 is not a number of threads; at least 1");
    CHECK_THROWS_AS(set_num_threads(-3), ValueError);
}

TEST_CASE("an error inside a large loop reaches the caller once") {
    const Threads threads(4);
    Tensor exponent = ones({100000}, i64);
    exponent.set({77777}, -2);
    CHECK(message_of([&] { pow(full({100000}, 3, i64), exponent); }) ==
          "pow: i64 3 to the negative power -2 is not an integer; convert with astype(f64)");
}
