// Attention in tiles: one op, whose gradients are computed together.

#include <glassgrad/autograd/ops.hpp>
#include <glassgrad/tensor/detail/tiled_attention.hpp>
#include <glassgrad/tensor/error.hpp>

#include "family.hpp"

#include <string>

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
     .f32_ulp = 8,
     .samples = tiled_samples},
};

/// What the rule reads, in this order; mask and bias may be undefined.
enum Saved : std::uint8_t { q, k, v, mask, bias, row_sums };

/// The gradients of q, k, v and, if there are any, of mask and bias.
class TiledRule {
  public:
    TiledRule(TiledCall call, bool has_mask, bool has_bias)
        : call_(std::move(call)), has_mask_(has_mask), has_bias_(has_bias) {
        // They are among the saved values, which a sweep drops.
        call_.mask = Tensor();
        call_.bias = Tensor();
    }

    std::vector<Tensor> operator()(const Tensor& gy, const Tensor& y, Inputs saved,
                                   const std::vector<bool>& wanted) const {
        TiledCall call = call_;
        if (has_mask_) call.mask = saved[mask].value();
        if (has_bias_) call.bias = saved[bias].value();
        const std::size_t at = has_mask_ ? 4 : 3;
        const detail::TiledGradients g = detail::attend_in_tiles_vjp(
            saved[q].value(), saved[k].value(), saved[v].value(), call,
            {y, saved[row_sums].value()}, gy,
            {wanted[q], wanted[k], wanted[v], has_mask_ && wanted[3], has_bias_ && wanted[at]});
        std::vector<Tensor> gradients{g.q, g.k, g.v};
        if (has_mask_) gradients.push_back(g.mask);
        if (has_bias_) gradients.push_back(g.bias);
        return gradients;
    }

    std::vector<Variable> operator()(const Variable& gy, const Tensor& y, Inputs saved,
                                     const std::vector<bool>& wanted) const {
        if (grad_enabled()) return recorded(gy, saved);
        std::vector<Variable> gradients;
        for (Tensor& each : (*this)(gy.value(), y, saved, wanted)) {
            gradients.push_back(each.defined() ? Variable(std::move(each)) : Variable());
        }
        return gradients;
    }

  private:
    /// The same from ops that are recorded, on the steps of the named form.
    std::vector<Variable> recorded(const Variable& gy, Inputs saved) const {
        CounterRng rng = call_.rng;
        CounterRng again = call_.rng;
        const AttentionOpOptions options{
            .scale = call_.scale,
            .mask = saved[mask],
            .bias = saved[bias],
            .causal = call_.causal,
            .window = call_.window,
            .alibi = call_.alibi.defined() ? Variable(call_.alibi) : Variable(),
            .dropout_p = call_.dropout_p,
            .rng = &rng};
        const AttentionSteps steps = detail::attend(saved[q], saved[k], saved[v], options);
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
        const auto where_kept = [&](const Variable& x) {
            if (call_.dropout_p == 0) return x;
            const Variable kept(detail::draw_kept(x.value(), again, call_.dropout_p));
            return where(kept, scale(x, detail::kept_factor(call_.dropout_p)), zero);
        };
        const Variable weights = steps.dropped.defined() ? steps.dropped : steps.weights;
        const Variable gw = where_kept(merged(attention_scores(split(gy), shared(saved[v]))));
        Variable gs = softmax_vjp(steps.weights, gw, -1);
        const Tensor allowed = detail::allowed_keys(detail::plain_options(options), gs.shape());
        if (allowed.defined()) gs = where(Variable(allowed), gs, zero);
        const Variable g = split(scale(gs, call_.scale));
        const WeightedSumOptions turned{.transpose_weights = true};
        std::vector<Variable> gradients{merged(weighted_sum(g, shared(saved[k]))),
                                        gathered(weighted_sum(g, split(saved[q]), turned)),
                                        gathered(weighted_sum(split(weights), split(gy), turned))};
        if (has_mask_) gradients.push_back(gs);
        if (has_bias_) gradients.push_back(gs);
        return gradients;
    }

    TiledCall call_;
    bool has_mask_;
    bool has_bias_;
};

}  // namespace

std::span<const OpRow> detail::tiled_attention_rows() { return rows; }

Variable tiled_attention(const Variable& query, const Variable& key, const Variable& value,
                         const AttentionOpOptions& options) {
    detail::refuse_learned_slopes(options);
    const OpRow& row = find(rows, "tiled_attention");
    TiledCall call;
    detail::TiledResult result;
    detail::computed(
        row,
        [&] {
            call = detail::tiled_call(query.value(), key.value(), value.value(),
                                      detail::plain_options(options));
            result = detail::attend_in_tiles(query.value(), key.value(), value.value(), call);
            return 0;
        },
        query, key, value);
    const bool has_mask = options.mask.defined();
    const bool has_bias = options.bias.defined();
    std::vector<Variable> inputs{query, key, value};
    if (has_mask) inputs.push_back(options.mask);
    if (has_bias) inputs.push_back(options.bias);
    const Variable saved[] = {query, key, value, options.mask, options.bias, Variable(result.rows)};
    const auto attributes = [&] {
        return Attributes{{"scale", call.scale},
                          {"causal", call.causal},
                          {"window", call.window},
                          {"dropout_p", call.dropout_p}};
    };
    return record_joint(row, result.output, attributes, inputs, saved,
                        TiledRule(call, has_mask, has_bias));
}

}  // namespace glassgrad
