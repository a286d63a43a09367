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

template <class T>
void blend(N n, T a, T b, const T* y, T* x) {
#pragma omp simd
    for (N i = 0; i < n; ++i) x[i] = a * x[i] + b * y[i];
}

template <class T>
void add(Updates<T>& updates) {
    updates.adam = adam<T>;
    updates.blend = blend<T>;
}

}  // namespace

void add_updates(KernelTable& table) {
    add(table.of_float.update);
    add(table.of_double.update);
}

}  // namespace glassgrad::detail::GLASSGRAD_ISA
