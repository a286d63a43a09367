// Attention, its products and dropout.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/small_attention.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>

#include "family.hpp"

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;

namespace {

Samples score_samples() {
    Samples samples;
    int seed = 0;
    const auto add = [&](const Shape& q, const Shape& k) {
        seed += 2;
        samples.push_back(detail::sample(
            to_string(q) + " and " + to_string(k), spread(q, {-2, 2}, seed),
            spread(k, {-2, 2}, seed + 1),
            [](const Variable& a, const Variable& b) { return attention_scores(a, b); },
            "a @ b.mT"));
    };
    add({2, 3}, {4, 3});
    add({5, 2, 3}, {5, 4, 3});
    add({5, 1, 2, 3}, {6, 4, 3});
    add({2, 3}, {5, 4, 3});
    add({2, 0}, {4, 0});
    add({0, 3}, {4, 3});
    return samples;
}

/// Every third element 0.
Tensor with_zeros(Tensor x) {
    auto* values = x.mutable_data<double>();
    for (std::int64_t i = 0; i < x.numel(); i += 3) values[i] = 0;
    return x;
}

Samples sum_samples() {
    Samples samples;
    int seed = 0;
    const auto add = [&](const Shape& w, const Shape& v, bool transposed) {
        seed += 2;
        const WeightedSumOptions options{.transpose_weights = transposed};
        samples.push_back(detail::sample(
            to_string(w) + (transposed ? "ᵀ" : "") + " of " + to_string(v),
            with_zeros(spread(w, {-2, 2}, seed)), spread(v, {-2, 2}, seed + 1),
            [options](const Variable& a, const Variable& b) { return weighted_sum(a, b, options); },
            transposed ? "a.mT @ b" : "a @ b"));
    };
    for (const bool transposed : {false, true}) {
        const auto turned = [&](Shape shape) {
            if (transposed) std::swap(shape[shape.rank() - 2], shape[shape.rank() - 1]);
            return shape;
        };
        add(turned({2, 4}), {4, 3}, transposed);
        add(turned({5, 2, 4}), {5, 4, 3}, transposed);
        add(turned({5, 1, 2, 4}), {6, 4, 3}, transposed);
        add(turned({2, 0}), {0, 3}, transposed);
    }
    return samples;
}

Samples dropout_samples() {
    Samples samples;
    const auto add = [&](const Shape& shape, double p) {
        const std::string rate = std::to_string(p);
        const std::string drawn =
            p < 1 ? " * torch.tensor(np.random.Generator(np.random.Philox(key=[7, 0])).random(" +
                        std::to_string(shape.numel()) + ").reshape(a.shape) < 1 - " + rate +
                        ") / (1 - " + rate + ")"
                  : " * 0";
        samples.push_back(detail::sample(
            to_string(shape) + " with p " + rate, spread(shape, {-2, 2}, 1),
            [p](const Variable& x) {
                CounterRng rng(7);
                return dropout(x, rng, {.p = p});
            },
            "a" + drawn));
    };
    add({}, 0.125);
    add({2, 3}, 0.4);
    add({3, 5, 2}, 0.125);
    add({2, 3}, 0.9);
    add({0, 3}, 0.5);
    return samples;
}

using Inputs = std::span<const Variable>;

/// A sample with q (2, 3, 4), k (2, 5, 4), v (2, 5, 3), unless other shapes are given. `scores`
/// is what becomes of s = q kᵀ / 2 in Python.
OpSample attention_sample(std::string_view label, std::string_view scores,
                          std::function<Variable(Inputs)> apply, std::vector<Tensor> more = {},
                          std::string_view after = "") {
    OpSample sample{std::string(label),
                    {spread({2, 3, 4}, {-2, 2}, 1), spread({2, 5, 4}, {-2, 2}, 2),
                     spread({2, 5, 3}, {-2, 2}, 3)},
                    std::move(apply),
                    "(lambda s: torch.softmax(" + std::string(scores) + ", -1)" +
                        std::string(after) + " @ c)(a @ b.mT / 2)"};
    for (Tensor& each : more) sample.inputs.push_back(std::move(each));
    return sample;
}

Samples attention_samples() {
    const auto attend = [](const AttentionOpOptions& options) {
        return
            [options](Inputs x) { return scaled_dot_product_attention(x[0], x[1], x[2], options); };
    };
    // Row 1 sees nothing; the others see some.
    const Tensor mask = tensor({{1, 0, 1, 0, 1}, {0, 0, 0, 0, 0}, {0, 1, 1, 0, 0}}, boolean);
    const std::string python_mask =
        "torch.tensor([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]]).bool()";
    const std::string order = "torch.ones(3, 5).tril(2).bool()";
    Samples samples;
    samples.push_back(attention_sample("no mask", "s", attend({})));
    samples.push_back(attention_sample("another scale", "s * 0.6", attend({.scale = 0.3})));
    samples.push_back(attention_sample(
        "boolean mask with an empty row", "s.masked_fill(~" + python_mask + ", -1e30)",
        attend({.mask = mask}), {}, " * " + python_mask + ".any(-1, keepdim=True)"));
    samples.push_back(attention_sample(
        "causal, lower right", "s.masked_fill(~" + order + ", -1e30)", attend({.causal = true})));
    samples.push_back(attention_sample(
        "additive mask", "s + d",
        [](Inputs x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3]}); },
        {spread({3, 5}, {-2, 2}, 4)}));
    samples.push_back(attention_sample(
        "additive mask and causal", "(s + d).masked_fill(~" + order + ", -1e30)",
        [](Inputs x) {
            return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = x[3], .causal = true});
        },
        {spread({2, 1, 5}, {-2, 2}, 5)}));
    samples.push_back(attention_sample(
        "boolean mask and bias", "(s + d).masked_fill(~" + python_mask + ", -1e30)",
        [mask](Inputs x) {
            return scaled_dot_product_attention(x[0], x[1], x[2], {.mask = mask, .bias = x[3]});
        },
        {spread({2, 1, 5}, {-2, 2}, 6)}, " * " + python_mask + ".any(-1, keepdim=True)"));
    const std::string distance =
        "(torch.arange(2, 5)[:, None] - torch.arange(5)).abs()";  // of key j from query i
    samples.push_back(attention_sample("window", "s.masked_fill(" + distance + " >= 2, -1e30)",
                                       attend({.window = 2})));
    samples.push_back(attention_sample(
        "causal window", "s.masked_fill((" + distance + " >= 2) | ~" + order + ", -1e30)",
        attend({.causal = true, .window = 2})));
    samples.push_back(attention_sample(
        "alibi", "s - torch.tensor([0.5, 0.125])[:, None, None].double() * " + distance,
        [](Inputs x) {
            const Tensor slopes = tensor({0.5, 0.125}, x[0].dtype());
            return scaled_dot_product_attention(x[0], x[1], x[2], {.alibi = slopes});
        }));
    samples.push_back(attention_sample(
        "dropout", "s",
        [](Inputs x) {
            CounterRng rng(7, 3);
            return scaled_dot_product_attention(x[0], x[1], x[2], {.dropout_p = 0.4, .rng = &rng});
        },
        {},
        " * torch.tensor(np.random.Generator(np.random.Philox(key=[7, 3])).random(30)"
        ".reshape(2, 3, 5) < 0.6) / 0.6"));
    samples.push_back(
        OpSample{"grouped heads, causal",
                 {spread({2, 6, 3, 4}, {-2, 2}, 1), spread({2, 2, 5, 4}, {-2, 2}, 2),
                  spread({2, 2, 5, 3}, {-2, 2}, 3)},
                 attend({.causal = true}),
                 "torch.softmax((a @ b.repeat_interleave(3, 1).mT / 2).masked_fill(~" + order +
                     ", -1e30), -1) @ c.repeat_interleave(3, 1)"});
    samples.push_back(OpSample{"grouped heads",
                               {spread({4, 3, 4}, {-2, 2}, 1), spread({2, 5, 4}, {-2, 2}, 2),
                                spread({2, 5, 3}, {-2, 2}, 3)},
                               attend({}),
                               "torch.softmax(a @ b.repeat_interleave(2, 0).mT / 2, -1) @ "
                               "c.repeat_interleave(2, 0)"});
    samples.push_back(OpSample{
        "no keys",
        {spread({3, 4}, {-2, 2}, 1), spread({0, 4}, {-2, 2}, 2), spread({0, 3}, {-2, 2}, 3)},
        attend({.causal = true}),
        "(a @ b.mT) @ c"});
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "attention_scores",
     .forward = "y = q kᵀ",
     .backward = "gq = weighted_sum(gy, k); gk = weighted_sum(gyᵀ, q)",
     .domain = "any number; an exact 0 in gy takes nothing from k or q, even inf or NaN",
     .torch = "torch.matmul",
     .samples = score_samples},
    {.name = "weighted_sum",
     .forward = "y[i, d] = sum over j, where w[i, j] is not 0, of w[i, j] v[j, d]",
     .backward = "gw = gy vᵀ; gv = weighted_sum(wᵀ, gy)",
     .domain = "any number; an exact 0 in w takes nothing from v, even inf or NaN",
     .torch = "torch.matmul",
     .samples = sum_samples},
    {.name = "dropout",
     .forward = "y = x / (1 - p) where kept, else 0",
     .backward = "gx = gy / (1 - p) where kept, else 0",
     .torch = "torch.nn.functional.dropout",
     .samples = dropout_samples},
    {.name = "scaled_dot_product_attention",
     .forward = "y = softmax(q kᵀ scale + mask + bias + alibi) v",
     .backward = "gq = gs k scale; gk = gsᵀ q scale; gv = wᵀ gy, with w the weights and gs = "
                 "w (gy vᵀ - sum(w gy vᵀ))",
     .domain = "a query that sees no key gives zeros and takes zero gradients; hidden keys and "
               "values leak into no bit, whatever they are",
     .torch = "torch.nn.functional.scaled_dot_product_attention",
     .records = "scaled_dot_product_attention attention_scores matmul scale add where softmax "
                "dropout weighted_sum reshape transpose tiled_attention",
     .f32_ulp = 8,
     .samples = attention_samples},
};

}  // namespace

std::span<const OpRow> detail::attention_rows() { return rows; }

Variable attention_scores(const Variable& q, const Variable& k) {
    return record(
        find(rows, "attention_scores"), [&] { return attention_scores(q.value(), k.value()); },
        edge(
            q, [](const auto& gy, const auto& keys) { return weighted_sum(gy, keys); }, k),
        edge(
            k,
            [](const auto& gy, const auto& queries) {
                return weighted_sum(gy, queries, {.transpose_weights = true});
            },
            q));
}

Variable weighted_sum(const Variable& weights, const Variable& values,
                      const WeightedSumOptions& options) {
    const bool turned = options.transpose_weights;
    return record(
        find(rows, "weighted_sum"),
        [&] { return weighted_sum(weights.value(), values.value(), options); },
        [=] {
            return Attributes{{"transpose_weights", turned}};
        },
        edge(
            weights,
            [turned](const auto& gy, const auto& v) {
                return turned ? attention_scores(v, gy) : attention_scores(gy, v);
            },
            values),
        edge(
            values,
            [turned](const auto& gy, const auto& w) {
                return weighted_sum(w, gy, {.transpose_weights = !turned});
            },
            weights));
}

Variable dropout(const Variable& x, CounterRng& rng, const DropoutOptions& options) {
    const double p = options.p;
    const Variable kept(detail::draw_kept(x.value(), rng, p));
    if (p == 0) return x;
    const double factor = detail::kept_factor(p);
    return record(
        find(rows, "dropout"), [&] { return detail::drop(x.value(), kept.value(), p); },
        [=] {
            return Attributes{{"p", p}};
        },
        edge(
            x,
            [factor](const auto& gy, const auto& mask) {
                using V = std::remove_cvref_t<decltype(gy)>;
                return where(mask, scale(gy, factor), V(zeros({}, gy.dtype())));
            },
            kept));
}

void detail::refuse_learned_slopes(const AttentionOpOptions& options) {
    if (!options.alibi.requires_grad() || !grad_enabled()) return;
    throw GraphError(
        "scaled_dot_product_attention: the slopes of alibi require a gradient, which would be lost",
        "pass slopes.detach(), or a learned bias as .bias");
}

namespace {

/// A small call as one op, whose result has the bits of the steps'.
Variable recorded_small(const Variable& q, const Variable& k, const Variable& v,
                        const detail::SmallCall& call) {
    const OpRow& row = find(rows, "scaled_dot_product_attention");
    detail::SmallResult made = detail::computed(
        row, [&] { return detail::attend_small(q.value(), k.value(), v.value(), call); }, q, k, v);
    const auto rule = [call](const auto& gy, const detail::JointRead<3, 1>& read,
                             const std::array<bool, 3>& wanted) {
        using V = std::remove_cvref_t<decltype(gy)>;
        if constexpr (std::is_same_v<V, Variable>) {
            if (grad_enabled()) {
                const detail::TiledCall steps{.scale = call.scale,
                                              .causal = call.causal,
                                              .heads = call.heads,
                                              .kv_heads = call.heads};
                return detail::attention_gradients(gy, steps, read.saved);
            }
        }
        std::array<Tensor, 3> gradients = detail::attend_small_vjp(
            read.saved[0].value(), read.saved[1].value(), read.saved[2].value(), read.kept[0],
            detail::tensor_of(gy), call, wanted);
        if constexpr (std::is_same_v<V, Tensor>) {
            return gradients;
        } else {
            const auto given = [](Tensor& x) { return x.defined() ? V(std::move(x)) : V(); };
            return std::array<V, 3>{given(gradients[0]), given(gradients[1]), given(gradients[2])};
        }
    };
    return record_joint(
        row, std::move(made.output),
        [&] {
            return Attributes{{"scale", call.scale}, {"causal", call.causal}};
        },
        std::array{&q, &k, &v}, std::array{&q, &k, &v}, std::array{std::move(made.weights)}, rule);
}

}  // namespace

Variable scaled_dot_product_attention(const Variable& q, const Variable& k, const Variable& v,
                                      const AttentionOpOptions& options) {
    const bool free = !options.on_step && q.defined() && k.defined() && v.defined();
    if (free) {
        const SdpaOptions plain = detail::plain_options(options);
        const bool watched = detail::watched();
        if (detail::takes_tiles(q.value(), k.value(), v.value(), plain, watched)) {
            return tiled_attention(q, k, v, options);
        }
        if (const auto call = detail::small_call(q.value(), k.value(), v.value(), plain, watched)) {
            return recorded_small(q, k, v, *call);
        }
    }
    return scaled_dot_product_attention_steps(q, k, v, options).output;
}
AttentionSteps scaled_dot_product_attention_steps(const Variable& q, const Variable& k,
                                                  const Variable& v,
                                                  const AttentionOpOptions& options) {
    detail::refuse_learned_slopes(options);
    return detail::computed(
        find(rows, "scaled_dot_product_attention"),
        [&] { return detail::attend_in_steps(q, k, v, options); }, q, k, v);
}

}  // namespace glassgrad
