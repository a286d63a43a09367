#include <glassgrad/tensor/detail/finite.hpp>
#include <glassgrad/tensor/detail/small_attention.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>
#include <glassgrad/tensor/ops.hpp>

#include "dispatch.hpp"
#include "gemm.hpp"
#include "kernels/kernels.hpp"
#include "parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace glassgrad::detail {
namespace {

/// Of a head: wider ones take so long that steps of their own cost nothing beside them.
constexpr std::int64_t most_width = 128;

/// Where the (query or key, width) matrices of a tensor lie.
struct Place {
    std::int64_t row;         ///< from token to token
    std::int64_t from_head;   ///< from head to head of a text
    std::int64_t from_batch;  ///< from text to text

    Place(std::int64_t tokens, std::int64_t width, std::int64_t heads)
        : row(heads * width), from_head(width), from_batch(tokens * row) {}
    std::int64_t at(std::int64_t batch, std::int64_t head) const noexcept {
        return batch * from_batch + head * from_head;
    }
};

struct Matrix {
    std::int64_t batch;
    std::int64_t head;
};

template <class T>
class SmallAttention {
  public:
    SmallAttention(const Tensor& q, const Tensor& k, const Tensor& v, const SmallCall& call)
        : call_(call),
          kernels_(kernels<T>()),
          heads_(std::max<std::int64_t>(1, call.heads)),
          queries_(q.shape()[q.rank() - 2]),
          keys_(k.shape()[k.rank() - 2]),
          width_(q.shape().back() / heads_),
          value_width_(v.shape().back() / heads_),
          q_at_(queries_, width_, heads_),
          k_at_(keys_, width_, heads_),
          v_at_(keys_, value_width_, heads_),
          y_at_(queries_, value_width_, heads_),
          q_(q.data<T>()),
          k_(k.data<T>()),
          v_(v.data<T>()) {
        matrices_ = heads_;
        for (int i = 0; i < q.rank() - 2; ++i) matrices_ *= q.shape()[i];
    }

    void attend(T* weights, T* y) const {
        for_matrices([&](const Matrix& n, std::int64_t scores_at) {
            T* const w = weights + scores_at;
            gemm<T>(queries_, keys_, width_, rows(q_, q_at_, n), turned(k_, k_at_, n), {w, keys_});
            scale(w);
            kernels_.row.softmax(queries_, keys_, w, w);
            gemm<T>(queries_, value_width_, keys_, {w, keys_, false}, rows(v_, v_at_, n),
                    into(y, y_at_, n));
        });
    }

    /// Of q, k and v, each null if it isn't wanted.
    void pull(const T* weights, const T* gy, T* gq, T* gk, T* gv) const {
        for_matrices([&](const Matrix& n, std::int64_t scores_at) {
            const T* const w = weights + scores_at;
            const Operand<T> g = rows(gy, y_at_, n);
            if (gv) gemm<T>(keys_, value_width_, queries_, {w, keys_, true}, g, into(gv, v_at_, n));
            if (!gq && !gk) return;
            T scores[tiled_attention_threshold];
            gemm<T>(queries_, keys_, value_width_, g, turned(v_, v_at_, n), {scores, keys_});
            kernels_.row.softmax_vjp(queries_, keys_, w, scores, scores);
            const T factor = static_cast<T>(call_.scale);
            for (std::int64_t i = 0; i < queries_ * keys_; ++i) scores[i] *= factor;
            if (gq) {
                gemm<T>(queries_, width_, keys_, {scores, keys_, false}, rows(k_, k_at_, n),
                        into(gq, q_at_, n));
            }
            if (gk) {
                gemm<T>(keys_, width_, queries_, {scores, keys_, true}, rows(q_, q_at_, n),
                        into(gk, k_at_, n));
            }
        });
    }

  private:
    static Operand<T> rows(const T* x, const Place& place, const Matrix& n) {
        return {x + place.at(n.batch, n.head), place.row, false};
    }
    static Operand<T> turned(const T* x, const Place& place, const Matrix& n) {
        return {x + place.at(n.batch, n.head), place.row, true};
    }
    static Target<T> into(T* x, const Place& place, const Matrix& n) {
        return {x + place.at(n.batch, n.head), place.row};
    }
    /// f(matrix, where its scores begin)
    template <class F>
    void for_matrices(const F& f) const {
        if (matrices_ == 1) return f({0, 0}, 0);
        constexpr std::int64_t little = 1 << 16;
        const std::int64_t work = queries_ * keys_ * (width_ + value_width_);
        for_chunks(matrices_, std::max<std::int64_t>(1, little / work),
                   [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t n = begin; n < end; ++n) {
                           f({n / heads_, n % heads_}, n * queries_ * keys_);
                       }
                   });
    }
    void scale(T* w) const {
        const T factor = static_cast<T>(call_.scale);
        if (!call_.causal) {
            for (std::int64_t i = 0; i < queries_ * keys_; ++i) w[i] *= factor;
            return;
        }
        for (std::int64_t i = 0; i < queries_; ++i, w += keys_) {
            const std::int64_t seen = std::clamp<std::int64_t>(i + 1 + keys_ - queries_, 0, keys_);
            for (std::int64_t j = 0; j < seen; ++j) w[j] *= factor;
            for (std::int64_t j = seen; j < keys_; ++j) w[j] = -std::numeric_limits<T>::infinity();
        }
    }

    const SmallCall& call_;
    const Kernels<T>& kernels_;
    std::int64_t heads_, queries_, keys_, width_, value_width_;
    Place q_at_, k_at_, v_at_, y_at_;
    std::int64_t matrices_;
    const T* q_;
    const T* k_;
    const T* v_;
};

/// Gradients to be written, of the inputs that want one.
template <std::size_t N>
std::array<Tensor, N> room_for(const std::array<const Tensor*, N>& inputs,
                               const std::array<bool, N>& wanted) {
    std::array<Tensor, N> out;
    for (std::size_t i = 0; i < N; ++i) {
        if (wanted[i]) out[i] = Tensor::empty(inputs[i]->shape(), inputs[i]->dtype());
    }
    return out;
}
template <class T>
T* memory(Tensor& x) {
    return x.defined() ? x.mutable_data<T>() : nullptr;
}

/// As the steps' derivatives do it, which keep what is hidden away from what isn't finite.
std::array<Tensor, 3> gradients_by_steps(const Tensor& q, const Tensor& k, const Tensor& v,
                                         const Tensor& weights, const Tensor& gy,
                                         const SmallCall& call) {
    if (call.heads > 0) {
        std::array<Tensor, 3> gradients = gradients_by_steps(
            heads_apart(q, call.heads), heads_apart(k, call.heads), heads_apart(v, call.heads),
            weights, heads_apart(gy, call.heads), {call.scale, call.causal, 0});
        for (Tensor& each : gradients) each = heads_together(each);
        return gradients;
    }
    const WeightedSumOptions turned{.transpose_weights = true};
    const Tensor gw = matmul(gy, v, {.transpose_b = true});
    Tensor gs = scale(softmax_vjp(weights, gw, -1), call.scale);
    if (!call.causal) {
        return {matmul(gs, k), weighted_sum(gs, q, turned),
                matmul(weights, gy, {.transpose_a = true})};
    }
    const Tensor seen = causal_mask(q.size(-2), k.size(-2));
    gs = where(seen, gs, zeros({}, gs.dtype()));
    return {weighted_sum(gs, k), weighted_sum(gs, q, turned), weighted_sum(weights, gy, turned)};
}

}  // namespace

std::optional<SmallCall> small_call(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const SdpaOptions& options, bool watched) {
    if (watched || options.form != AttentionForm::automatic || options.on_step ||
        options.mask.defined() || options.bias.defined() || options.alibi.defined() ||
        options.window != 0 || options.dropout_p != 0 || options.tile != 0 ||
        (options.kv_heads != 0 && options.kv_heads != options.heads)) {
        return std::nullopt;
    }
    if (!q.defined() || !k.defined() || !v.defined() || !is_floating(q.dtype()) ||
        k.dtype() != q.dtype() || v.dtype() != q.dtype()) {
        return std::nullopt;
    }
    const int rank = q.rank();
    if (rank < 2 || k.rank() != rank || v.rank() != rank || rank == max_rank) return std::nullopt;
    const Shape& of_q = q.shape();
    const Shape& of_k = k.shape();
    const Shape& of_v = v.shape();
    for (int i = 0; i < rank - 2; ++i) {
        if (of_q[i] != of_k[i] || of_q[i] != of_v[i]) return std::nullopt;
    }
    const std::int64_t heads = std::max<std::int64_t>(1, options.heads);
    const std::int64_t queries = of_q[rank - 2];
    const std::int64_t keys = of_k[rank - 2];
    const std::int64_t width = of_q.back() / heads;
    const bool fits = options.heads >= 0 && of_v[rank - 2] == keys && of_k.back() == of_q.back() &&
                      of_q.back() % heads == 0 && of_v.back() % heads == 0;
    const bool small = q.numel() > 0 && k.numel() > 0 && v.numel() > 0 &&
                       queries * keys <= tiled_attention_threshold && width <= most_width &&
                       of_v.back() / heads <= most_width;
    if (!fits || !small) return std::nullopt;
    return SmallCall{
        .scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(width)),
        .causal = options.causal,
        .heads = options.heads};
}

SmallResult attend_small(const Tensor& q, const Tensor& k, const Tensor& v, const SmallCall& call) {
    Shape shape = q.shape();
    shape[shape.rank() - 1] = v.shape().back();
    Shape scores = q.shape();
    scores[scores.rank() - 1] = k.shape()[k.rank() - 2];
    if (call.heads > 0) scores.insert(scores.rank() - 2, call.heads);
    SmallResult result{Tensor::empty(shape, q.dtype()), Tensor::empty(scores, q.dtype())};
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        SmallAttention<T>(q, k, v, call)
            .attend(result.weights.mutable_data<T>(), result.output.mutable_data<T>());
    });
    // What order hides may be infinite or NaN.
    if (call.causal && !all_finite(result.output)) {
        const Tensor values = call.heads > 0 ? heads_apart(v, call.heads) : v;
        const Tensor y = weighted_sum(result.weights, values);
        result.output = call.heads > 0 ? heads_together(y) : y;
    }
    return result;
}

std::array<Tensor, 3> attend_small_vjp(const Tensor& q, const Tensor& k, const Tensor& v,
                                       const Tensor& weights, const Tensor& gy,
                                       const SmallCall& call, const std::array<bool, 3>& wanted) {
    std::array<Tensor, 3> out = room_for<3>({&q, &k, &v}, wanted);
    with_float("scaled_dot_product_attention", q.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        SmallAttention<T>(q, k, v, call)
            .pull(weights.data<T>(), gy.data<T>(), memory<T>(out[0]), memory<T>(out[1]),
                  memory<T>(out[2]));
    });
    // Without an order, the step to the gradient of k alone tells an exact 0 from what is small.
    const auto finite = [](const Tensor& x) { return !x.defined() || all_finite(x); };
    if (finite(out[1]) && (!call.causal || (finite(out[0]) && finite(out[2])))) return out;
    std::array<Tensor, 3> careful = gradients_by_steps(q, k, v, weights, gy, call);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (wanted[i]) out[i] = std::move(careful[i]);
    }
    return out;
}

namespace {

/// The gradients of x w by w, which is aᵀ gy for all rows of x at once, and by x, which is written
/// or added to gx.
template <class T>
void pull_projection(const Tensor& x, const Tensor& w, const Tensor& gy, bool add, T* gx, T* gw) {
    const std::int64_t d_model = w.shape()[0];
    const std::int64_t width = w.shape()[1];
    const std::int64_t rows = x.numel() / d_model;
    const T* const g = gy.data<T>();
    if (gw) {
        gemm<T>(d_model, width, rows, {x.data<T>(), d_model, true}, {g, width, false}, {gw, width});
    }
    if (gx) {
        gemm<T>(rows, d_model, width, {g, width, false}, {w.data<T>(), width, true},
                {gx, d_model, add});
    }
}

}  // namespace

std::optional<SmallCall> small_projected_call(const std::array<const Tensor*, 4>& inputs,
                                              bool causal, bool watched) {
    const auto& [x, w_q, w_k, w_v] = inputs;
    if (watched || x->rank() < 2 || x->rank() == max_rank || !is_floating(x->dtype())) {
        return std::nullopt;
    }
    for (const Tensor* w : {w_q, w_k, w_v}) {
        if (w->rank() != 2 || w->dtype() != x->dtype() || w->shape()[0] != x->shape().back() ||
            w->numel() == 0 || w->shape()[1] > most_width) {
            return std::nullopt;
        }
    }
    const std::int64_t tokens = x->shape()[x->rank() - 2];
    if (w_q->shape() != w_k->shape() || x->numel() == 0 ||
        tokens * tokens >= tiled_attention_threshold) {
        return std::nullopt;
    }
    return SmallCall{.scale = 1 / std::sqrt(static_cast<double>(w_q->shape()[1])),
                     .causal = causal};
}

ProjectedResult project_small(const std::array<const Tensor*, 4>& inputs, const SmallCall& call) {
    ProjectedResult result;
    for (std::size_t i = 0; i < 3; ++i) result.kept[i] = matmul(*inputs[0], *inputs[i + 1]);
    SmallResult made = attend_small(result.kept[0], result.kept[1], result.kept[2], call);
    result.kept[3] = std::move(made.weights);
    result.output = std::move(made.output);
    return result;
}

std::array<Tensor, 4> project_small_vjp(const std::array<const Tensor*, 4>& inputs,
                                        const std::array<Tensor, 4>& kept, const Tensor& gy,
                                        const SmallCall& call, const std::array<bool, 4>& wanted) {
    const bool to_x = wanted[0];
    const std::array<Tensor, 3> g =
        attend_small_vjp(kept[0], kept[1], kept[2], kept[3], gy, call,
                         {to_x || wanted[1], to_x || wanted[2], to_x || wanted[3]});
    std::array<Tensor, 4> out = room_for(inputs, wanted);
    with_float("projected_attention", gy.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        T* const gx = memory<T>(out[0]);
        // In the order in which a sweep over the steps comes to them.
        for (std::size_t i = 3; i-- > 0;) {
            T* const gw = memory<T>(out[i + 1]);
            if (gx || gw) pull_projection(*inputs[0], *inputs[i + 1], g[i], i < 2, gx, gw);
        }
    });
    return out;
}

}  // namespace glassgrad::detail
