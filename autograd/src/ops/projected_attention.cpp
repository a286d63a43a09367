// Attention of one head with its projections. Of few tokens, most of the time of each step would go
// into its record: they are one op then.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/small_attention.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples projected_samples() {
    Samples samples;
    const auto add = [&](std::string_view label, const Shape& x, std::int64_t value_width,
                         const ProjectedAttentionOptions& options, std::string_view after) {
        const std::int64_t d_model = x.back();
        samples.push_back(
            OpSample{std::string(label),
                     {spread(x, {-1, 1}, 1), spread({d_model, 4}, {-1, 1}, 2),
                      spread({d_model, 4}, {-1, 1}, 3), spread({d_model, value_width}, {-1, 1}, 4)},
                     [options](std::span<const Variable> in) {
                         return projected_attention(in[0], in[1], in[2], in[3], options);
                     },
                     "torch.softmax(((a @ b) @ (a @ c).mT / 2)" + std::string(after) +
                         ", -1) @ (a @ inputs[3])"});
    };
    const std::string hidden =
        ".masked_fill(~torch.ones(a.shape[-2], a.shape[-2]).tril().bool(), "
        "-1e30)";
    add("one text", {3, 5}, 2, {}, "");
    add("one text, causal", {3, 5}, 4, {.causal = true}, hidden);
    add("two texts, causal", {2, 3, 5}, 2, {.causal = true}, hidden);
    add("one token", {1, 5}, 2, {}, "");
    add("no tokens", {0, 5}, 2, {}, "");
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "projected_attention",
     .forward = "y = softmax(q kᵀ / sqrt(d)) v, with q = x w_q, k = x w_k and v = x w_v",
     .backward = "gx = gq w_qᵀ + gk w_kᵀ + gv w_vᵀ; gw_q = xᵀ gq; gw_k = xᵀ gk; gw_v = xᵀ gv, with "
                 "gq, gk and gv those of scaled_dot_product_attention",
     .domain = "any number; with causal, later tokens leak into no bit of earlier ones",
     .inputs = "x w_q w_k w_v",
     .records = "projected_attention scaled_dot_product_attention attention_scores matmul scale "
                "where softmax weighted_sum tiled_attention reshape",
     .f32_ulp = 12,
     .samples = projected_samples},
};

using Read = detail::JointRead<4, 4>;

/// The gradients from ops that are recorded.
std::array<Variable, 4> gradients_by_steps(const Variable& gy, const detail::SmallCall& call,
                                           const Read& read) {
    const Variable& x = read.saved[0];
    const Variable inputs[] = {matmul(x, read.saved[1]), matmul(x, read.saved[2]),
                               matmul(x, read.saved[3])};
    const std::array<Variable, 3> g =
        detail::attention_gradients(gy, {.scale = call.scale, .causal = call.causal}, inputs);
    const auto flat = [](const Variable& each) {
        return each.rank() == 2 ? each : reshape(each, {-1, each.shape().back()});
    };
    std::array<Variable, 4> all;
    for (std::size_t i = 3; i-- > 0;) {
        all[i + 1] = matmul(flat(x), flat(g[i]), {.transpose_a = true});
        const Variable gx = matmul(g[i], read.saved[i + 1], {.transpose_b = true});
        all[0] = all[0].defined() ? all[0] + gx : gx;
    }
    return all;
}

}  // namespace

std::span<const OpRow> detail::projected_attention_rows() { return rows; }

Variable projected_attention(const Variable& x, const Variable& w_q, const Variable& w_k,
                             const Variable& w_v, const ProjectedAttentionOptions& options) {
    const std::array given{&x.value(), &w_q.value(), &w_k.value(), &w_v.value()};
    const auto found = detail::small_projected_call(given, options.causal, detail::watched());
    if (!found) {
        const Variable q = matmul(x, w_q);
        const Variable k = matmul(x, w_k);
        return scaled_dot_product_attention(q, k, matmul(x, w_v), {.causal = options.causal});
    }
    const detail::SmallCall call = *found;
    const OpRow& row = find(rows, "projected_attention");
    detail::ProjectedResult made = detail::computed(
        row, [&] { return detail::project_small(given, call); }, x, w_q, w_k, w_v);
    const auto rule = [call](const auto& gy, const Read& read, const std::array<bool, 4>& wanted) {
        using V = std::remove_cvref_t<decltype(gy)>;
        if constexpr (std::is_same_v<V, Variable>) {
            if (grad_enabled()) return gradients_by_steps(gy, call, read);
        }
        const auto& [in, q, k, v] = read.saved;
        std::array<Tensor, 4> gradients =
            detail::project_small_vjp({&in.value(), &q.value(), &k.value(), &v.value()}, read.kept,
                                      detail::tensor_of(gy), call, wanted);
        if constexpr (std::is_same_v<V, Tensor>) {
            return gradients;
        } else {
            std::array<V, 4> all;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (gradients[i].defined()) all[i] = V(std::move(gradients[i]));
            }
            return all;
        }
    };
    const std::array inputs{&x, &w_q, &w_k, &w_v};
    return record_joint(
        row, std::move(made.output),
        [&] {
            return Attributes{{"scale", call.scale}, {"causal", call.causal}};
        },
        inputs, inputs, std::move(made.kept), rule);
}

}  // namespace glassgrad
