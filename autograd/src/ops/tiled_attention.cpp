// Attention in tiles: one op, whose gradients are computed together.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>
#include <glassgrad/tensor/error.hpp>

#include "family.hpp"

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {

using detail::find;
using detail::Samples;
using detail::spread;
using detail::TiledCall;

namespace {

using Inputs = std::span<const Variable>;

/// A call on a, b, c with slopes and masks in their type; `added` makes a bias of the fourth input.
struct Call {
    AttentionOpOptions options;
    Tensor slopes = {};
    bool added = false;
    bool masked = false;  // the last input is a floating mask

    Variable operator()(Inputs x) const {
        AttentionOpOptions given = options;
        CounterRng rng(7, 3);
        given.rng = &rng;
        if (slopes.defined()) given.alibi = slopes.astype(x[0].dtype());
        if (added) given.bias = x[3];
        if (masked) given.mask = x.back();
        return tiled_attention(x[0], x[1], x[2], given);
    }
};

Samples tiled_samples() {
    Samples samples;
    // Two heads, 3 queries, 5 keys in tiles of 3.
    const auto add = [&](std::string_view label, std::string_view scores, const Call& call,
                         std::vector<Tensor> more = {}, std::string_view after = "") {
        OpSample sample{std::string(label),
                        {spread({2, 3, 4}, {-2, 2}, 1), spread({2, 5, 4}, {-2, 2}, 2),
                         spread({2, 5, 3}, {-2, 2}, 3)},
                        call,
                        "(lambda s: torch.softmax(" + std::string(scores) + ", -1)" +
                            std::string(after) + " @ c)(a @ b.mT / 2)"};
        for (Tensor& each : more) sample.inputs.push_back(std::move(each));
        samples.push_back(std::move(sample));
    };
    // Row 1 sees nothing; the others see some.
    const Tensor mask = tensor({{1, 0, 1, 0, 1}, {0, 0, 0, 0, 0}, {0, 1, 1, 0, 0}}, boolean);
    const std::string python_mask =
        "torch.tensor([[1, 0, 1, 0, 1], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]]).bool()";
    const std::string any = " * " + python_mask + ".any(-1, keepdim=True)";
    const std::string order = "torch.ones(3, 5).tril(2).bool()";
    const std::string distance = "(torch.arange(2, 5)[:, None] - torch.arange(5)).abs()";
    add("no mask", "s", {{.tile = 3}});
    add("one tile", "s * 0.6", {{.scale = 0.3}});
    add("boolean mask with an empty row", "s.masked_fill(~" + python_mask + ", -1e30)",
        {{.mask = mask, .tile = 3}}, {}, any);
    add("causal", "s.masked_fill(~" + order + ", -1e30)", {{.causal = true, .tile = 4}});
    add("causal window and alibi",
        "(s - torch.tensor([0.5, 0.125])[:, None, None].double() * " + distance +
            ").masked_fill((" + distance + " >= 3) | ~" + order + ", -1e30)",
        {{.causal = true, .window = 3, .tile = 3}, tensor({0.5, 0.125}, f64)});
    add("additive mask", "s + d", {.options = {.tile = 3}, .masked = true},
        {spread({3, 5}, {-2, 2}, 4)});
    add("bias over keys and boolean mask", "(s + d).masked_fill(~" + python_mask + ", -1e30)",
        {.options = {.mask = mask, .tile = 3}, .added = true}, {spread({5}, {-2, 2}, 5)}, any);
    add("bias of each head, additive mask and window",
        "(s + d + inputs[4]).masked_fill(" + distance + " >= 2, -1e30)",
        {.options = {.window = 2, .tile = 3}, .added = true, .masked = true},
        {spread({2, 3, 5}, {-2, 2}, 6), spread({2, 1, 5}, {-2, 2}, 7)});
    add("dropout", "s", {{.dropout_p = 0.4, .tile = 3}}, {},
        " * torch.tensor(np.random.Generator(np.random.Philox(key=[7, 3])).random(30)"
        ".reshape(2, 3, 5) < 0.6) / 0.6");
    const auto grouped = [&](std::string_view label, std::int64_t shared, const Call& call,
                             std::string_view after, std::string_view dropped = "") {
        const std::string repeated = ".repeat_interleave(" + std::to_string(6 / shared) + ", 1)";
        samples.push_back(
            OpSample{std::string(label),
                     {spread({2, 6, 3, 4}, {-2, 2}, 1), spread({2, shared, 5, 4}, {-2, 2}, 2),
                      spread({2, shared, 5, 3}, {-2, 2}, 3)},
                     call,
                     "torch.softmax((a @ b" + repeated + ".mT / 2)" + std::string(after) + ", -1)" +
                         std::string(dropped) + " @ c" + repeated});
    };
    grouped("grouped heads, causal", 2, {{.causal = true, .tile = 3}},
            ".masked_fill(~" + order + ", -1e30)");
    grouped("one head of keys, dropout", 1, {{.dropout_p = 0.4, .tile = 3}}, "",
            " * torch.tensor(np.random.Generator(np.random.Philox(key=[7, 3])).random(180)"
            ".reshape(2, 6, 3, 5) < 0.6) / 0.6");
    samples.push_back(OpSample{"grouped heads without a batch",
                               {spread({4, 3, 4}, {-2, 2}, 1), spread({2, 5, 4}, {-2, 2}, 2),
                                spread({2, 5, 3}, {-2, 2}, 3)},
                               Call{{.tile = 3}},
                               "torch.softmax(a @ b.repeat_interleave(2, 0).mT / 2, -1) @ "
                               "c.repeat_interleave(2, 0)"});
    samples.push_back(OpSample{
        "no keys",
        {spread({3, 4}, {-2, 2}, 1), spread({0, 4}, {-2, 2}, 2), spread({0, 3}, {-2, 2}, 3)},
        Call{{.causal = true}},
        "(a @ b.mT) @ c"});
    return samples;
}

constexpr OpRow rows[] = {
    {.name = "tiled_attention",
     .forward = "y = softmax(q kᵀ scale + mask + bias + alibi) v",
     .backward =
         "gq = gs k scale; gk = gsᵀ q scale; gv = wᵀ gy; gmask = gs; gbias = gs, with w the "
         "weights and gs = w (gy vᵀ - sum(y gy))",
     .domain = "a query that sees no key gives zeros and takes zero gradients; hidden keys and "
               "values leak into no bit, whatever they are",
     .inputs = "q k v",
     .torch = "torch.nn.functional.scaled_dot_product_attention",
     .f32_ulp = 9,
     .samples = tiled_samples},
};

/// What the rule reads, in this order: what is saved, of which mask and bias may be undefined, and
/// what is kept.
enum Saved : std::uint8_t { q, k, v, mask, bias };
enum Kept : std::uint8_t { row_sums, weights };
using Read = detail::JointRead<5, 2>;

/// The call with the masks that it was made with, which are saved apart from it: a sweep drops
/// them.
TiledCall with_masks(TiledCall call, Inputs saved) {
    if (saved[mask].defined()) call.mask = saved[mask].value();
    if (saved[bias].defined()) call.bias = saved[bias].value();
    return call;
}

/// The gradients of q, k, v and, if there are any, of mask and bias, from the kernel.
std::array<Tensor, 5> gradients_in_tiles(const Tensor& gy, const TiledCall& call, const Read& read,
                                         const std::array<bool, 5>& wanted) {
    const Inputs saved = read.saved;
    detail::TiledGradients g = detail::attend_in_tiles_vjp(
        saved[q].value(), saved[k].value(), saved[v].value(), with_masks(call, saved),
        {read.result, read.kept[row_sums], read.kept[weights]}, gy,
        {wanted[q], wanted[k], wanted[v], wanted[mask], wanted[bias]});
    return {std::move(g.q), std::move(g.k), std::move(g.v), std::move(g.mask), std::move(g.bias)};
}

/// The same from ops that are recorded, on the steps of the named form.
std::array<Variable, 5> gradients_by_steps(const Variable& gy, const TiledCall& call,
                                           Inputs saved) {
    if (call.heads > 0) {
        TiledCall apart = call;
        apart.heads = 0;
        apart.kv_heads = 0;
        std::vector<Variable> moved(saved.begin(), saved.end());
        moved[q] = detail::heads_apart(saved[q], call.heads);
        moved[k] = detail::heads_apart(saved[k], call.kv_heads);
        moved[v] = detail::heads_apart(saved[v], call.kv_heads);
        std::array<Variable, 5> gradients =
            gradients_by_steps(detail::heads_apart(gy, call.heads), apart, moved);
        for (std::size_t i = 0; i < 3; ++i) gradients[i] = detail::heads_together(gradients[i]);
        return gradients;
    }
    CounterRng rng = call.rng;
    CounterRng again = call.rng;
    const AttentionOpOptions options{
        .scale = call.scale,
        .mask = saved[mask],
        .bias = saved[bias],
        .causal = call.causal,
        .window = call.window,
        .alibi = call.alibi.defined() ? Variable(call.alibi) : Variable(),
        .dropout_p = call.dropout_p,
        .rng = &rng};
    const AttentionSteps steps = detail::attend(saved[q], saved[k], saved[v], options);
    // Heads of q that share one of k and v get an axis of their own.
    const std::int64_t group = saved[q].rank() > 2 ? saved[q].size(-3) / saved[k].size(-3) : 1;
    const auto split = [group](const Variable& x) {
        return group > 1 ? detail::split_heads(x, group) : x;
    };
    const auto shared = [group](const Variable& x) {
        return group > 1 ? detail::split_heads(x, 1) : x;
    };
    const auto merged = [group](const Variable& x) {
        return group > 1 ? detail::merge_heads(x) : x;
    };
    const auto gathered = [group](const Variable& x) {
        return group > 1 ? sum(x, {.axes = {-3}}) : x;
    };
    const Variable zero(zeros({}, gy.dtype()));
    Variable gw = merged(attention_scores(split(gy), shared(saved[v])));
    if (call.dropout_p > 0) {
        const Variable kept(detail::draw_kept(gw.value(), again, call.dropout_p));
        gw = where(kept, scale(gw, detail::kept_factor(call.dropout_p)), zero);
    }
    Variable gs = softmax_vjp(steps.weights, gw, -1);
    const Tensor allowed = detail::allowed_keys(detail::plain_options(options), gs.shape());
    if (allowed.defined()) gs = where(Variable(allowed), gs, zero);
    const Variable g = split(scale(gs, call.scale));
    const Variable w = split(steps.dropped.defined() ? steps.dropped : steps.weights);
    const WeightedSumOptions turned{.transpose_weights = true};
    return {merged(weighted_sum(g, shared(saved[k]))),
            gathered(weighted_sum(g, split(saved[q]), turned)),
            gathered(weighted_sum(w, split(gy), turned)), gs, gs};
}

}  // namespace

std::span<const OpRow> detail::tiled_attention_rows() { return rows; }

std::array<Variable, 3> detail::attention_gradients(const Variable& gy, const TiledCall& call,
                                                    std::span<const Variable, 3> inputs) {
    const Variable saved[] = {inputs[q], inputs[k], inputs[v], {}, {}};
    auto [gq, gk, gv, gmask, gbias] = gradients_by_steps(gy, call, saved);
    return {std::move(gq), std::move(gk), std::move(gv)};
}

Variable tiled_attention(const Variable& query, const Variable& key, const Variable& value,
                         const AttentionOpOptions& options) {
    detail::refuse_learned_slopes(options);
    const OpRow& row = find(rows, "tiled_attention");
    const auto made = detail::computed(
        row,
        [&] {
            const Tensor& q_value = query.value();
            TiledCall call = detail::tiled_call(q_value, key.value(), value.value(),
                                                detail::plain_options(options));
            call.keeps = grad_enabled() &&
                         (query.requires_grad() || key.requires_grad() || value.requires_grad());
            detail::TiledResult tiled =
                detail::attend_in_tiles(q_value, key.value(), value.value(), call);
            return std::pair(std::move(call), std::move(tiled));
        },
        query, key, value);
    const TiledCall& call = made.first;
    const detail::TiledResult& tiled = made.second;
    const auto attributes = [&] {
        return Attributes{{"scale", call.scale},
                          {"causal", call.causal},
                          {"window", call.window},
                          {"dropout_p", call.dropout_p}};
    };
    TiledCall kept = call;
    kept.mask = Tensor();
    kept.bias = Tensor();
    const auto rule = [kept](const auto& gy, const Read& read, const std::array<bool, 5>& wanted) {
        using V = std::remove_cvref_t<decltype(gy)>;
        if constexpr (std::is_same_v<V, Tensor>) {
            return gradients_in_tiles(gy, kept, read, wanted);
        } else {
            if (grad_enabled()) return gradients_by_steps(gy, kept, read.saved);
            std::array<Tensor, 5> gradients = gradients_in_tiles(gy.value(), kept, read, wanted);
            std::array<V, 5> all;
            for (std::size_t i = 0; i < all.size(); ++i) {
                if (gradients[i].defined()) all[i] = V(std::move(gradients[i]));
            }
            return all;
        }
    };
    return record_joint(row, tiled.output, attributes,
                        std::array{&query, &key, &value, &options.mask, &options.bias},
                        std::array{&query, &key, &value, &options.mask, &options.bias},
                        std::array{tiled.rows, tiled.weights}, rule, result);
}

}  // namespace glassgrad
