#include <glassgrad/tensor/detail/updates.hpp>

#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <cmath>
#include <numeric>
#include <vector>

namespace glassgrad::detail {
void own(Tensor& x) {
    with_type(x.dtype(), [&](auto type) { (void)x.mutable_data<typename decltype(type)::type>(); });
}

double sum_of_squares(const Tensor& x) {
    return with_float("sum_of_squares", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const T* values = x.data<T>();
        const auto sum = kernels<T>().sum_of_squares;
        constexpr std::int64_t chunk = std::int64_t{1} << 16;
        const std::int64_t count = x.numel();
        if (count <= chunk) return sum(count, values);
        std::vector<double> parts(static_cast<std::size_t>((count - 1) / chunk + 1));
        for_chunks(count, chunk, [&](std::int64_t begin, std::int64_t end) {
            parts[static_cast<std::size_t>(begin / chunk)] = sum(end - begin, values + begin);
        });
        return std::accumulate(parts.begin(), parts.end(), 0.0);
    });
}

void sgd_update(Tensor& w, const Tensor& g, Tensor& velocity, const SgdStep& step) {
    with_float("sgd", w.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const SgdFactors<T> factors{.scale = static_cast<T>(step.grad_scale),
                                    .lr = static_cast<T>(step.lr),
                                    .momentum = static_cast<T>(step.momentum),
                                    .share = static_cast<T>(1 - step.dampening),
                                    .decay = static_cast<T>(step.weight_decay),
                                    .first = step.first,
                                    .nesterov = step.nesterov};
        T* pw = w.mutable_data<T>();
        T* pv = velocity.defined() ? velocity.mutable_data<T>() : nullptr;
        const T* pg = g.data<T>();
        const auto kernel = kernels<T>().update.sgd;
        for_elements(w.numel(), [&](std::int64_t begin, std::int64_t end) {
            kernel(end - begin, factors, pg + begin, pw + begin, pv ? pv + begin : nullptr);
        });
    });
}

void adam_update(Tensor& w, const Tensor& g, Tensor& mean, Tensor& square, const AdamStep& step) {
    with_float("adam", w.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const AdamFactors<T> factors{
            .scale = static_cast<T>(step.grad_scale),
            .beta1 = static_cast<T>(step.beta1),
            .rest1 = static_cast<T>(1 - step.beta1),
            .beta2 = static_cast<T>(step.beta2),
            .rest2 = static_cast<T>(1 - step.beta2),
            .eps = static_cast<T>(step.eps),
            .size = static_cast<T>(step.lr / step.correction1),
            .root = static_cast<T>(std::sqrt(step.correction2)),
            .keep = static_cast<T>(step.decoupled ? 1 - step.lr * step.weight_decay : 1),
            .decay = static_cast<T>(step.decoupled ? 0 : step.weight_decay)};
        T* pw = w.mutable_data<T>();
        T* pm = mean.mutable_data<T>();
        T* ps = square.mutable_data<T>();
        const T* pg = g.data<T>();
        const auto kernel = kernels<T>().update.adam;
        for_elements(w.numel(), [&](std::int64_t begin, std::int64_t end) {
            kernel(end - begin, factors, pg + begin, pw + begin, pm + begin, ps + begin);
        });
    });
}

void lion_update(Tensor& w, const Tensor& g, Tensor& mean, const LionStep& step) {
    with_float("lion", w.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const LionFactors<T> factors{.scale = static_cast<T>(step.grad_scale),
                                     .beta1 = static_cast<T>(step.beta1),
                                     .rest1 = static_cast<T>(1 - step.beta1),
                                     .beta2 = static_cast<T>(step.beta2),
                                     .rest2 = static_cast<T>(1 - step.beta2),
                                     .lr = static_cast<T>(step.lr),
                                     .keep = static_cast<T>(1 - step.lr * step.weight_decay)};
        T* pw = w.mutable_data<T>();
        T* pm = mean.mutable_data<T>();
        const T* pg = g.data<T>();
        const auto kernel = kernels<T>().update.lion;
        for_elements(w.numel(), [&](std::int64_t begin, std::int64_t end) {
            kernel(end - begin, factors, pg + begin, pw + begin, pm + begin);
        });
    });
}

void blend(Tensor& x, double a, const Tensor& y, double b) {
    with_float("blend", x.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        T* px = x.mutable_data<T>();
        const T* py = y.data<T>();
        const auto kernel = kernels<T>().update.blend;
        for_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
            kernel(end - begin, static_cast<T>(a), static_cast<T>(b), py + begin, px + begin);
        });
    });
}

}  // namespace glassgrad::detail
