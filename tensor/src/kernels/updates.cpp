// What optimizers do to a parameter, in PyTorch's order of operations.

#include "isa.hpp"

namespace glassgrad::detail::GLASSGRAD_ISA {
namespace {

using N = std::int64_t;

template <class T>
void adam(N n, const AdamFactors<T>& f, const T* g, T* w, T* mean, T* square) {
    const AdamFactors<T> by = f;
#pragma omp simd
    for (N i = 0; i < n; ++i) {
        const T value = by.keep * w[i];
        const T gradient = by.scale * g[i] + by.decay * w[i];
        const T m = by.beta1 * mean[i] + by.rest1 * gradient;
        const T s = by.beta2 * square[i] + by.rest2 * gradient * gradient;
        mean[i] = m;
        square[i] = s;
        w[i] = value - by.size * m / (std::sqrt(s) / by.root + by.eps);
    }
}

template <bool First, bool Nesterov, class T>
void sgd_with_momentum(N n, const SgdFactors<T>& by, const T* g, T* w, T* velocity) {
#pragma omp simd
    for (N i = 0; i < n; ++i) {
        const T gradient = by.scale * g[i];
        const T direction = by.decay == 0 ? gradient : gradient + by.decay * w[i];
        const T v = First ? direction : by.momentum * velocity[i] + by.share * direction;
        velocity[i] = v;
        w[i] -= by.lr * (Nesterov ? direction + by.momentum * v : v);
    }
}

template <class T>
void sgd(N n, const SgdFactors<T>& f, const T* g, T* w, T* velocity) {
    const SgdFactors<T> by = f;
    if (velocity) {
        (by.first
             ? (by.nesterov ? sgd_with_momentum<true, true, T> : sgd_with_momentum<true, false, T>)
             : (by.nesterov ? sgd_with_momentum<false, true, T>
                            : sgd_with_momentum<false, false, T>))(n, by, g, w, velocity);
        return;
    }
#pragma omp simd
    for (N i = 0; i < n; ++i) {
        const T gradient = by.scale * g[i];
        w[i] -= by.lr * (by.decay == 0 ? gradient : gradient + by.decay * w[i]);
    }
}

template <class T>
void lion(N n, const LionFactors<T>& f, const T* g, T* w, T* mean) {
    const LionFactors<T> by = f;
#pragma omp simd
    for (N i = 0; i < n; ++i) {
        const T gradient = by.scale * g[i];
        const T blended = by.beta1 * mean[i] + by.rest1 * gradient;
        // NaN stays: a comparison would turn it into a step of a full lr.
        const T below = blended < 0 ? T{-1} : blended;
        const T sign = blended > 0 ? T{1} : below;
        w[i] = by.keep * w[i] - by.lr * sign;
        mean[i] = by.beta2 * mean[i] + by.rest2 * gradient;
    }
}

template <class T>
void blend(N n, T a, T b, const T* y, T* x) {
#pragma omp simd
    for (N i = 0; i < n; ++i) x[i] = a * x[i] + b * y[i];
}

template <class T>
void add(Updates<T>& updates) {
    updates.adam = adam<T>;
    updates.sgd = sgd<T>;
    updates.lion = lion<T>;
    updates.blend = blend<T>;
}

}  // namespace

void add_updates(KernelTable& table) {
    add(table.of_float.update);
    add(table.of_double.update);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
