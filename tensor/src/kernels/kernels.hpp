#pragma once
// Inner loops over contiguous numbers. The sources of this folder are compiled once for each set
// of instructions; the best that the processor has is chosen at first use, so that an installed
// library runs on any processor of its family. Kernels check nothing, allocate nothing, know no
// threads and throw nothing: who calls has cut the work into pieces by shape alone.

#include "attention_kernels.hpp"
#include "product_kernels.hpp"

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

namespace glassgrad::detail {

/// y[i] = f(x[i]) of each element, for a function of that name.
template <class T>
struct Maps {
    using Map = void (*)(std::int64_t n, const T* x, T* y);
    using MapWith = void (*)(std::int64_t n, T number, const T* x, T* y);

    using MapBetween = void (*)(std::int64_t n, T low, T high, const T* x, T* y);

    /// y[i] = value
    void (*fill)(std::int64_t n, T value, T* y);
    Map neg, abs, square;
    MapBetween clamp;
    Map exp, expm1, log, log1p, sqrt, rsqrt, reciprocal, erf;
    Map tanh, sigmoid, softplus, relu, gelu, gelu_tanh, silu;
    MapWith leaky_relu, elu;
};

/// y[i] = f(a[i step_a], b[i step_b]), for a function of that name; steps of 0 and 1 are fast.
template <class T>
struct Pairs {
    using N = std::int64_t;
    using Pair = void (*)(N n, const T* a, N step_a, const T* b, N step_b, T* y);

    Pair add, sub, mul, div, chain_mul, chain_div, maximum, minimum;
    /// y[i] = mask[i step_mask] ? a[i step_a] : b[i step_b]
    void (*choose)(N n, const bool* mask, N step_mask, const T* a, N step_a, const T* b, N step_b,
                   T* y);
};

/// gx[i] = gy[i] times the slope of a function of that name at x[i]; tanh, sigmoid and relu get
/// their result y instead of x.
template <class T>
struct Slopes {
    using Slope = void (*)(std::int64_t n, const T* x, const T* gy, T* gx);

    Slope tanh, sigmoid, softplus, relu, gelu, gelu_tanh, silu;
};

/// Where the gradients of a norm go, each null if it isn't wanted; not where x or gy lie. Those of
/// weight and bias are added to what is there, n numbers each. That of x may go past the caches.
template <class T>
struct NormTargets {
    T* x;
    double* weight;
    double* bias;
    bool past_caches = false;
};

/// `rows` rows of n elements each.
template <class T>
struct Rows {
    using N = std::int64_t;

    /// As the functions of that name do it; a derivative of the result y.
    void (*softmax)(N rows, N n, const T* x, T* y);
    void (*log_softmax)(N rows, N n, const T* x, T* y);
    void (*softmax_vjp)(N rows, N n, const T* y, const T* gy, T* gx);
    void (*log_softmax_vjp)(N rows, N n, const T* y, const T* gy, T* gx);
    /// The largest or smallest, NaN if one is NaN, -inf or inf of none.
    T (*largest)(N n, const T* x);
    T (*smallest)(N n, const T* x);
    /// The first place of `value`, or of a NaN if it is one; n if it is nowhere.
    N (*find)(N n, const T* x, T value);
    /// The largest number, NaN only where none is above -inf beside it.
    T (*top)(N n, const T* x);
    /// The sum of exp(x[i] - top), for a top that none is above.
    double (*sum_exp)(N n, const T* x, T top);
    /// The same, and y[i] = exp(x[i] - top).
    double (*put_exp)(N n, const T* x, T top, T* y);
    /// y[i] = y[i] factor + constant
    void (*line)(N n, T factor, T constant, T* y);
    /// None is NaN or infinite.
    bool (*all_finite)(N n, const T* x);
    /// The sum of a row, and sums[i] += the sum of column i; f64.
    double (*sum)(N n, const T* x);
    void (*add_columns)(N rows, N n, const T* x, double* sums);

    using Norm = void (*)(N rows, N n, const T* x, const T* weight, const T* bias, double eps,
                          T* y);
    using NormVjp = void (*)(N rows, N n, const T* x, const T* gy, const T* weight, double eps,
                             const NormTargets<T>& gradients);
    /// y = (x - mean) / sqrt(variance + eps) weight + bias, where weight and bias may be null; the
    /// norm by the root of the mean square takes the mean for 0.
    Norm layer_norm, rms_norm;
    NormVjp layer_norm_vjp, rms_norm_vjp;
};

/// The numbers of a step of Adam, as `adam_update` computes them; `scale` of the gradient.
template <class T>
struct AdamFactors {
    T scale, beta1, rest1, beta2, rest2, eps, size, root, keep, decay;
};

/// The numbers of a step of SGD and of Lion, as `sgd_update` and `lion_update` compute them.
template <class T>
struct SgdFactors {
    T scale, lr, momentum, share, decay;
    bool first, nesterov;
};
template <class T>
struct LionFactors {
    T scale, beta1, rest1, beta2, rest2, lr, keep;
};

/// Steps of optimizers, in place.
template <class T>
struct Updates {
    using N = std::int64_t;

    void (*adam)(N n, const AdamFactors<T>& factors, const T* g, T* w, T* mean, T* square);
    /// Without momentum where `velocity` is null.
    void (*sgd)(N n, const SgdFactors<T>& factors, const T* g, T* w, T* velocity);
    void (*lion)(N n, const LionFactors<T>& factors, const T* g, T* w, T* mean);
    /// x[i] = a x[i] + b y[i]
    void (*blend)(N n, T a, T b, const T* y, T* x);
};

/// Loops for elements of type T (float, double). A result may lie where an operand of the same
/// size lies; other overlaps are not allowed.
template <class T>
struct Kernels {
    Maps<T> map;
    Pairs<T> pair;
    Slopes<T> slope;
    Rows<T> row;
    Updates<T> update;
    /// The sum of x[i]², in f64 and in an order that n alone fixes.
    double (*sum_of_squares)(std::int64_t n, const T* x);
    ProductKernels<T> products;
    /// out = softmax(scale q kᵀ) v for one q, rows of k and v of `width` numbers each, and room for
    /// `count` weights; a weight of 0 takes nothing from its row.
    void (*attend_row)(std::int64_t count, std::int64_t width, T scale, const T* q, const T* keys,
                       const T* values, T* weights, T* out);
    AttentionKernels<T> attention;
};

/// The loops of one set of instructions.
struct KernelTable {
    Kernels<float> of_float;
    Kernels<double> of_double;
};

struct InstructionSet {
    std::string_view name;
    KernelTable (*kernels)();
};
/// Those that this processor has, best last; the first is the compiler's baseline.
std::span<const InstructionSet> instruction_sets();

extern std::atomic<const KernelTable*> chosen_kernels;
/// As `instruction_set` says; throws as that.
const KernelTable& choose_kernels();

template <class T>
const Kernels<T>& kernels() {
    const KernelTable* table = chosen_kernels.load(std::memory_order_acquire);
    if (!table) table = &choose_kernels();
    if constexpr (sizeof(T) == sizeof(float)) {
        return table->of_float;
    } else {
        return table->of_double;
    }
}

}  // namespace glassgrad::detail
