#include <glassgrad/tensor/detail/updates.hpp>

#include "dispatch.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <cmath>
#include <numeric>
#include <vector>

namespace glassgrad::detail {
namespace {

/// f(i) for all elements of `w`, in the element type T: `each(T{}, f)`.
template <class F>
void update(std::string_view op, Tensor& w, const F& f) {
    with_float(op, w.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        const auto loop = f(T{});
        for_elements(w.numel(), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) loop(i);
        });
    });
}

}  // namespace

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
    update("sgd", w, [&](auto zero) {
        using T = decltype(zero);
        T* pw = w.mutable_data<T>();
        T* pv = velocity.defined() ? velocity.mutable_data<T>() : nullptr;
        const T* pg = g.data<T>();
        const T scale = static_cast<T>(step.grad_scale);
        const T lr = static_cast<T>(step.lr);
        const T momentum = static_cast<T>(step.momentum);
        const T share = static_cast<T>(1 - step.dampening);
        const T decay = static_cast<T>(step.weight_decay);
        const bool first = step.first;
        const bool nesterov = step.nesterov;
        return [=](std::int64_t i) {
            const T gradient = scale * pg[i];
            T direction = decay == 0 ? gradient : gradient + decay * pw[i];
            if (pv) {
                pv[i] = first ? direction : momentum * pv[i] + share * direction;
                direction = nesterov ? direction + momentum * pv[i] : pv[i];
            }
            pw[i] -= lr * direction;
        };
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
    update("lion", w, [&](auto zero) {
        using T = decltype(zero);
        T* pw = w.mutable_data<T>();
        T* pm = mean.mutable_data<T>();
        const T* pg = g.data<T>();
        const T scale = static_cast<T>(step.grad_scale);
        const T lr = static_cast<T>(step.lr);
        const T beta1 = static_cast<T>(step.beta1);
        const T beta2 = static_cast<T>(step.beta2);
        const T rest1 = static_cast<T>(1 - step.beta1);
        const T rest2 = static_cast<T>(1 - step.beta2);
        const T keep = static_cast<T>(1 - step.lr * step.weight_decay);
        return [=](std::int64_t i) {
            const T gradient = scale * pg[i];
            const T blended = beta1 * pm[i] + rest1 * gradient;
            // NaN stays: a comparison would turn it into a step of a full lr.
            const T sign = blended > 0 ? T{1} : blended < 0 ? T{-1} : blended;
            pw[i] = keep * pw[i] - lr * sign;
            pm[i] = beta2 * pm[i] + rest2 * gradient;
        };
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
