// Compiled for this machine and with -ffast-math, so that the compiler's vectors do the work. exp
// is Cody and Waite's reduction and a polynomial; sums of many elements are in f64, as the
// library's.

#include "hand_kernels.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#if defined(__AVX__)
#include <immintrin.h>
#endif

namespace bench {
namespace {

inline float exp_of(float x) {
    x = std::min(std::max(x, -87.0F), 88.0F);
    const float k = std::floor(x * 1.44269504F + 0.5F);
    const float r = x - k * 0.693359375F + k * 2.12194440e-4F;
    float p = 1.9875691500e-4F;
    p = p * r + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * r * r + r + 1;
    return p * std::bit_cast<float>((static_cast<std::int32_t>(k) + 127) << 23);
}
inline float tanh_of(float x) { return 1 - 2 / (exp_of(2 * x) + 1); }
inline float sigmoid_of(float x) { return 1 / (1 + exp_of(-x)); }
inline float gelu_inner(float x) { return 0.797884561F * (x + 0.044715F * x * x * x); }

/// y = f(x, gy) element by element.
template <class F>
void each(const Arrays& in, float* __restrict out, std::int64_t begin, std::int64_t count,
          const F& f) {
    const float* __restrict x = in.x + begin;
    const float* __restrict gy = in.gy + begin;
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(x[i], gy[i]);
}

/// f(first element) of each row.
template <class F>
double rows(std::int64_t begin, std::int64_t count, const F& f) {
    double total = 0;
    for (std::int64_t at = 0; at < count; at += row_length) total += f(begin + at, at);
    return total;
}

double sum_of(const float* x, std::int64_t n) {
    double total = 0;
    for (std::int64_t i = 0; i < n; ++i) total += static_cast<double>(x[i]);
    return total;
}

float largest_of(const float* x) {
    float largest = x[0];
    for (std::int64_t i = 0; i < row_length; ++i) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

/// exp(x - largest) into y, and its sum.
double exp_sum(const float* __restrict x, float* __restrict y, float largest) {
    for (std::int64_t i = 0; i < row_length; ++i) y[i] = exp_of(x[i] - largest);
    return sum_of(y, row_length);
}

/// Adds up to `mass`.
double softmax_row(const float* __restrict x, float* __restrict y, float mass = 1) {
    const double total = exp_sum(x, y, largest_of(x));
    const float factor = mass / static_cast<float>(total);
    for (std::int64_t i = 0; i < row_length; ++i) y[i] *= factor;
    return total;
}

struct Moments {
    float mean;
    float factor;  ///< 1 / standard deviation
};
Moments moments(const float* __restrict x) {
    const double mean = sum_of(x, row_length) / row_length;
    double squares = 0;
    for (std::int64_t i = 0; i < row_length; ++i) {
        const double d = static_cast<double>(x[i]) - mean;
        squares += d * d;
    }
    return {static_cast<float>(mean),
            static_cast<float>(1 / std::sqrt(squares / row_length + 1e-5))};
}

double layer_norm_row(const float* __restrict x, const float* __restrict weight,
                      const float* __restrict bias, float* __restrict y) {
    const Moments m = moments(x);
    for (std::int64_t i = 0; i < row_length; ++i) {
        y[i] = (x[i] - m.mean) * m.factor * weight[i] + bias[i];
    }
    return 0;
}

/// gx, and what is added to the gradients of weight and bias.
double layer_norm_vjp_row(const float* __restrict x, const float* __restrict gy,
                          const float* __restrict weight, float* __restrict gweight,
                          float* __restrict gbias, float* __restrict gx) {
    const Moments m = moments(x);
    double first = 0, second = 0;
    for (std::int64_t i = 0; i < row_length; ++i) {
        const float h = (x[i] - m.mean) * m.factor;
        const float g = gy[i] * weight[i];
        first += static_cast<double>(g);
        second += static_cast<double>(g * h);
        gweight[i] += gy[i] * h;
        gbias[i] += gy[i];
    }
    const auto a = static_cast<float>(first / row_length);
    const auto b = static_cast<float>(second / row_length);
    for (std::int64_t i = 0; i < row_length; ++i) {
        const float h = (x[i] - m.mean) * m.factor;
        gx[i] = m.factor * (gy[i] * weight[i] - a - h * b);
    }
    return static_cast<double>(gweight[0]);
}

double add(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float gy) { return x + gy; });
    return 0;
}
double mul(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float gy) { return x * gy; });
    return 0;
}
double mul_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    const float* __restrict a = in.x + begin;
    const float* __restrict b = in.w + begin;
    const float* __restrict gy = in.gy + begin;
    float* __restrict ga = out[0];
    float* __restrict gb = out[1];
    for (std::int64_t i = 0; i < count; ++i) {
        ga[i] = gy[i] * b[i];
        gb[i] = gy[i] * a[i];
    }
    return 0;
}
double exp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float) { return exp_of(x); });
    return 0;
}
double tanh(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float) { return tanh_of(x); });
    return 0;
}
/// x is the result of tanh.
double tanh_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float y, float gy) { return gy * (1 - y * y); });
    return 0;
}
double gelu(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count,
         [](float x, float) { return x * sigmoid_of(2 * gelu_inner(x)); });
    return 0;
}
double gelu_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float gy) {
        const float s = sigmoid_of(2 * gelu_inner(x));
        const float slope = 1.59576912F * (1 + 0.134145F * x * x);
        return gy * (s + x * s * (1 - s) * slope);
    });
    return 0;
}
double silu(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float) { return x * sigmoid_of(x); });
    return 0;
}
double silu_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    each(in, out[0], begin, count, [](float x, float gy) {
        const float s = sigmoid_of(x);
        return gy * (s + x * s * (1 - s));
    });
    return 0;
}
double softmax(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    return rows(begin, count, [&](std::int64_t from, std::int64_t to) {
        return softmax_row(in.x + from, out[0] + to);
    });
}
/// x is the result of softmax.
double softmax_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    return rows(begin, count, [&](std::int64_t from, std::int64_t to) {
        const float* __restrict y = in.x + from;
        const float* __restrict gy = in.gy + from;
        float* __restrict gx = out[0] + to;
        double total = 0;
        for (std::int64_t i = 0; i < row_length; ++i) total += static_cast<double>(y[i] * gy[i]);
        const auto shift = static_cast<float>(total);
        for (std::int64_t i = 0; i < row_length; ++i) gx[i] = y[i] * (gy[i] - shift);
        return 0.0;
    });
}
double layer_norm(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    return rows(begin, count, [&](std::int64_t from, std::int64_t to) {
        return layer_norm_row(in.x + from, in.w, in.mean, out[0] + to);
    });
}
double layer_norm_vjp(const Arrays& in, float* const* out, std::int64_t begin, std::int64_t count) {
    float gweight[row_length] = {}, gbias[row_length] = {};
    return rows(begin, count, [&](std::int64_t from, std::int64_t to) {
        return layer_norm_vjp_row(in.x + from, in.gy + from, in.w, gweight, gbias, out[0] + to);
    });
}
double cross_entropy(const Arrays& in, float* const*, std::int64_t begin, std::int64_t count) {
    float scratch[row_length];
    return rows(begin, count, [&](std::int64_t from, std::int64_t) {
        const float* x = in.x + from;
        const float largest = largest_of(x);
        const double total = exp_sum(x, scratch, largest);
        const float correct = x[in.target[from / row_length]] - largest;
        return (std::log(total) - static_cast<double>(correct)) * static_cast<double>(in.factor);
    });
}
double cross_entropy_vjp(const Arrays& in, float* const* out, std::int64_t begin,
                         std::int64_t count) {
    return rows(begin, count, [&](std::int64_t from, std::int64_t to) {
        softmax_row(in.x + from, out[0] + to, in.factor);
        out[0][to + in.target[from / row_length]] -= in.factor;
        return 0.0;
    });
}
double sum(const Arrays& in, float* const*, std::int64_t begin, std::int64_t count) {
    return sum_of(in.x + begin, count);
}
double ones(const Arrays&, float* const* out, std::int64_t, std::int64_t count) {
    std::fill_n(out[0], count, 1.0F);
    return 0;
}
double adamw(const Arrays& in, float* const*, std::int64_t begin, std::int64_t count) {
    float* __restrict w = in.w + begin;
    float* __restrict mean = in.mean + begin;
    float* __restrict square = in.square + begin;
    const float* __restrict g = in.gy + begin;
    for (std::int64_t i = 0; i < count; ++i) {
        mean[i] = mean[i] * 0.9F + g[i] * 0.1F;
        square[i] = square[i] * 0.99F + g[i] * g[i] * 0.01F;
        w[i] = w[i] * 0.9999F - 1e-3F * mean[i] / (std::sqrt(square[i]) * 1.01F + 1e-8F);
    }
    return 0;
}

/// A row in the cache to memory, past the cache.
void stream(const float* from, float* to) {
#if defined(__AVX512F__)
    for (std::int64_t i = 0; i < row_length; i += 16) {
        _mm512_stream_ps(to + i, _mm512_load_ps(from + i));
    }
#elif defined(__AVX__)
    for (std::int64_t i = 0; i < row_length; i += 8) {
        _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
    }
#else
    std::memcpy(to, from, row_length * sizeof(float));
#endif
}

constexpr int most_outputs = 2;

double run_part(const HandKernel& kernel, const Arrays& in, float* const* out, std::int64_t begin,
                std::int64_t count, Stores stores) {
    if (stores == Stores::plain) {
        float* shifted[most_outputs] = {};
        for (int i = 0; i < kernel.outputs; ++i) shifted[i] = out[i] + begin;
        return kernel.loop(in, shifted, begin, count);
    }
    alignas(64) float block[most_outputs][row_length];
    float* const blocks[most_outputs] = {block[0], block[1]};
    double total = 0;
    for (std::int64_t at = begin; at < begin + count; at += row_length) {
        total += kernel.loop(in, blocks, at, row_length);
        for (int i = 0; i < kernel.outputs; ++i) stream(block[i], out[i] + at);
    }
#if defined(__AVX__)
    _mm_sfence();
#endif
    return total;
}

}  // namespace

double run_by_hand(const HandKernel& kernel, const Arrays& in, float* const* out, std::int64_t n,
                   int threads, Stores stores) {
    if (threads == 1) return run_part(kernel, in, out, 0, n, stores);
    const std::int64_t count = n / row_length;
    double total = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : total) schedule(static)
    for (int i = 0; i < threads; ++i) {
        const std::int64_t begin = count * i / threads;
        const std::int64_t end = count * (i + 1) / threads;
        total += run_part(kernel, in, out, begin * row_length, (end - begin) * row_length, stores);
    }
    return total;
}

HandKernel hand_kernel(const char* name) {
    static constexpr struct {
        const char* name;
        HandKernel kernel;
    } all[] = {
        {"add", {add, 1}},
        {"mul", {mul, 1}},
        {"mul, derivative", {mul_vjp, 2}},
        {"exp", {exp, 1}},
        {"exp, derivative", {mul, 1}},
        {"tanh", {tanh, 1}},
        {"tanh, derivative", {tanh_vjp, 1}},
        {"gelu", {gelu, 1}},
        {"gelu, derivative", {gelu_vjp, 1}},
        {"silu", {silu, 1}},
        {"silu, derivative", {silu_vjp, 1}},
        {"softmax", {softmax, 1}},
        {"softmax, derivative", {softmax_vjp, 1}},
        {"layer_norm", {layer_norm, 1}},
        {"layer_norm, derivative", {layer_norm_vjp, 1}},
        {"cross_entropy", {cross_entropy, 0}},
        {"cross_entropy, derivative", {cross_entropy_vjp, 1}},
        {"sum", {sum, 0}},
        {"sum, derivative", {ones, 1}},
        {"adamw", {adamw, 0}},
    };
    for (const auto& each : all) {
        if (std::strcmp(each.name, name) == 0) return each.kernel;
    }
    throw std::invalid_argument("no loop by hand for " + std::string(name));
}

}  // namespace bench
