#pragma once
// record: how an op, of the library or of a user, joins the graph.
//
//   const OpRow cube_row{.name = "cube", .forward = "y = x³", .backward = "gx = 3 x² gy"};
//   Variable cube(const Variable& x) {
//       return record(cube_row, pow(x.value(), 3),
//                     edge(x, [](const auto& gy, const auto& x) { return 3.0 * x * x * gy; }, x));
//   }
//
// One edge an input, with the rule for its gradient. A rule gets gy and then the values named
// after it, in which `result` stands for the op's own result. It is written once, for `auto`:
// called with Tensors in the usual pass, with Variables when derivatives of derivatives are asked
// for. An input that needs no gradient drops its edge and all that the edge would keep.

#include <glassgrad/autograd/grad_mode.hpp>
#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/observer.hpp>
#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/error.hpp>

#include <array>
#include <concepts>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad {

/// Stands for the op's own result among the values that an edge's rule reads.
struct ResultTag {};
inline constexpr ResultTag result{};

template <class Rule, class... Saved>
struct Edge {
    const Variable& input;
    Rule rule;
    std::tuple<const Saved&...> saved;
    static constexpr bool reads_result = (std::is_same_v<Saved, ResultTag> || ...);
};

/// The gradient of `input` is rule(gy, saved...). A rule's answer may still be broadcast: the
/// engine sums it to the shape of the input.
template <class Rule, class... Saved>
Edge<Rule, Saved...> edge(const Variable& input, Rule rule, const Saved&... saved) {
    return {input, std::move(rule), {saved...}};
}

namespace detail {

template <class T>
inline constexpr bool is_edge = false;
template <class Rule, class... Saved>
inline constexpr bool is_edge<Edge<Rule, Saved...>> = true;

inline Variable keep(const Variable& x) { return x.kept(); }
inline ResultTag keep(ResultTag) { return {}; }

inline const Tensor& as(std::type_identity<Tensor>, const Variable& x) { return x.value(); }
inline const Variable& as(std::type_identity<Variable>, const Variable& x) { return x; }
inline Tensor answer(std::type_identity<Tensor>, const Variable& x) {
    return x.defined() ? x.value() : Tensor();
}
inline Variable answer(std::type_identity<Variable>, const Tensor& x) { return x; }

/// An edge as a node keeps it: without what it would read when no gradient is wanted.
template <class Rule, class... Saved>
struct KeptEdge {
    Rule rule;
    std::tuple<std::conditional_t<std::is_same_v<Saved, ResultTag>, ResultTag, Variable>...> saved;

    explicit KeptEdge(const Edge<Rule, Saved...>& edge) : rule(edge.rule) {
        if (!edge.input.requires_grad()) return;
        std::apply([&](const auto&... each) { saved = {keep(each)...}; }, edge.saved);
    }

    template <class V>
    V apply(const V& gy, const V& y) const {
        constexpr std::type_identity<V> kind;
        const auto pick = [&](const auto& kept) -> const V& {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(kept)>, ResultTag>) {
                return y;
            } else {
                return as(kind, kept);
            }
        };
        return std::apply(
            [&](const auto&... kept) -> V {
                if constexpr (std::is_same_v<decltype(rule(gy, pick(kept)...)), V>) {
                    return rule(gy, pick(kept)...);
                } else {
                    return answer(kind, rule(gy, pick(kept)...));
                }
            },
            saved);
    }
    void list(std::vector<Variable>& out) const {
        const auto add = [&](const auto& kept) {
            if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(kept)>, ResultTag>) {
                if (kept.defined()) out.push_back(kept);
            }
        };
        std::apply([&](const auto&... kept) { (add(kept), ...); }, saved);
    }
    void release() noexcept { saved = {}; }
};

/// The op's own result, for rules that read it; made into a Variable at call time, so that a node
/// never holds itself.
Variable result_variable(const Tensor& value, Node& node);

template <class E>
struct KeptOf;
template <class Rule, class... Saved>
struct KeptOf<Edge<Rule, Saved...>> {
    using type = KeptEdge<Rule, Saved...>;
};

template <class... E>
struct OpNode final : Node {
    static constexpr std::size_t count = sizeof...(E);
    static constexpr bool reads_result = (E::reads_result || ...);

    OpNode(const OpRow& op, const Tensor& value, std::int64_t number, const E&... given)
        : Node(op, value, number),
          next{given.input.requires_grad() ? given.input.node() : NodePtr()...},
          edges(given...) {
        if constexpr (reads_result) {
            if (((E::reads_result && given.input.requires_grad()) || ...)) kept_result = value;
        }
    }

    std::span<const NodePtr> inputs() const noexcept override { return next; }

    void pull(const Tensor& gy, Gradients<Tensor>& out) override {
        if constexpr (reads_result) {
            run<Tensor>(gy, kept_result, out, std::index_sequence_for<E...>());
        } else {
            run<Tensor>(gy, gy, out, std::index_sequence_for<E...>());  // gy for what nobody reads
        }
    }
    void pull(const Variable& gy, Gradients<Variable>& out) override {
        run<Variable>(gy, result_as_input(), out, std::index_sequence_for<E...>());
    }
    void list_saved(std::vector<Variable>& out) const override {
        std::apply([&](const auto&... each) { (each.list(out), ...); }, edges);
        if (const Variable y = const_cast<OpNode&>(*this).result_as_input(); y.defined()) {
            out.push_back(y);
        }
    }
    void release() noexcept override {
        std::apply([](auto&... each) { (each.release(), ...); }, edges);
        kept_result = {};
    }

  private:
    struct NoResult {};

    Variable result_as_input() {
        if constexpr (reads_result) {
            if (kept_result.defined()) return result_variable(kept_result, *this);
        }
        return {};
    }
    template <class V, std::size_t... I>
    void run(const V& gy, const V& y, Gradients<V>& out, std::index_sequence<I...>) {
        ((out.wanted(next[I].get()) ? out.put(I, *next[I], std::get<I>(edges).apply(gy, y))
                                    : void()),
         ...);
    }

    std::array<NodePtr, count> next;
    std::tuple<typename KeptOf<E>::type...> edges;
    [[no_unique_address]] std::conditional_t<reads_result, Tensor, NoResult> kept_result;
};

/// A node with as many inputs as a call had (concat); the rule gets the number of the input.
template <class Rule>
struct ManyNode final : Node {
    ManyNode(const OpRow& op, const Tensor& value, std::int64_t number,
             std::span<const Variable> given, Rule pullback)
        : Node(op, value, number), rule(std::move(pullback)) {
        next.reserve(given.size());
        for (const Variable& x : given) {
            next.push_back(x.requires_grad() ? x.node() : NodePtr());
        }
    }
    std::span<const NodePtr> inputs() const noexcept override { return next; }
    void pull(const Tensor& gy, Gradients<Tensor>& out) override { run(gy, out); }
    void pull(const Variable& gy, Gradients<Variable>& out) override { run(gy, out); }

  private:
    template <class V>
    void run(const V& gy, Gradients<V>& out) {
        for (std::size_t i = 0; i < next.size(); ++i) {
            if (out.wanted(next[i].get())) out.put(i, *next[i], rule(i, gy));
        }
    }

    std::vector<NodePtr> next;
    Rule rule;
};

/// What the rule of a joint op reads; `result` is undefined unless it was asked for.
template <std::size_t S, std::size_t K>
struct JointRead {
    std::array<Variable, S> saved;
    std::array<Tensor, K> kept;
    Tensor result;
};

/// A node whose gradients are computed together, of N inputs at most: those that a call had.
template <std::size_t N, std::size_t S, std::size_t K, bool ReadsResult, class Rule>
struct JointNode final : Node {
    JointNode(const OpRow& op, const Tensor& value, std::int64_t number,
              const std::array<const Variable*, N>& given,
              const std::array<const Variable*, S>& saved, std::array<Tensor, K>&& kept,
              const Rule& pullback)
        : Node(op, value, number), rule(pullback) {
        read.kept = std::move(kept);
        if constexpr (ReadsResult) read.result = value;
        for (std::size_t i = 0; i < N; ++i) {
            if (!given[i]->defined()) continue;
            place[i] = static_cast<int>(count);
            if (given[i]->requires_grad()) next[count] = given[i]->node();
            ++count;
        }
        for (std::size_t i = 0; i < S; ++i) {
            if (saved[i]->defined()) read.saved[i] = saved[i]->kept();
        }
    }
    std::span<const NodePtr> inputs() const noexcept override { return {next.data(), count}; }
    void pull(const Tensor& gy, Gradients<Tensor>& out) override { run(gy, out); }
    void pull(const Variable& gy, Gradients<Variable>& out) override { run(gy, out); }
    void list_saved(std::vector<Variable>& out) const override {
        for (const Variable& x : read.saved) {
            if (x.defined()) out.push_back(x);
        }
        for (const Tensor& x : read.kept) {
            if (x.defined()) out.emplace_back(x);
        }
        if (read.result.defined()) {
            out.push_back(result_variable(read.result, const_cast<JointNode&>(*this)));
        }
    }
    void release() noexcept override { read = {}; }

  private:
    template <class V>
    void run(const V& gy, Gradients<V>& out) {
        std::array<bool, N> wanted{};
        for (std::size_t i = 0; i < N; ++i) wanted[i] = place[i] >= 0 && out.wanted(input(i));
        std::array<V, N> gradients = rule(gy, read, wanted);
        for (std::size_t i = 0; i < N; ++i) {
            if (wanted[i]) {
                out.put(static_cast<std::size_t>(place[i]), *input(i), std::move(gradients[i]));
            }
        }
    }
    Node* input(std::size_t i) const { return next[static_cast<std::size_t>(place[i])].get(); }

    static constexpr std::array<int, N> nowhere() {
        std::array<int, N> all{};
        all.fill(-1);
        return all;
    }

    std::array<NodePtr, N> next;
    std::size_t count = 0;
    std::array<int, N> place = nowhere();  ///< in `next`; -1 for what the call had not
    Rule rule;
    JointRead<S, K> read;
};

}  // namespace detail

namespace detail {

/// Adds the names that inputs have to the text of an error about them.
void name_operands(Error& error, const OpRow& row, std::span<const Variable* const> inputs);

/// compute(), whose errors tell the names of the inputs.
template <std::invocable<> C, std::same_as<Variable>... V>
auto computed(const OpRow& row, const C& compute, const V&... inputs) {
    const OpClock clock(row);
    try {
        return compute();
    } catch (Error& error) {
        const Variable* const all[] = {&inputs...};
        name_operands(error, row, all);
        throw;
    }
}
template <std::invocable<> C>
auto computed(const OpRow& row, const C& compute, std::span<const Variable> inputs) {
    const OpClock clock(row);
    try {
        return compute();
    } catch (Error& error) {
        std::vector<const Variable*> all;
        for (const Variable& x : inputs) all.push_back(&x);
        name_operands(error, row, all);
        throw;
    }
}

}  // namespace detail

namespace detail {

template <class A, class... E>
Variable recorded(const OpRow& row, Tensor&& value, const A& attributes, const E&... edges) {
    const std::int64_t id = next_id();
    NodePtr node;
    if (grad_enabled() && (edges.input.requires_grad() || ...)) {
        node = make_node<OpNode<E...>>(row, value, id, edges...);
    }
    Variable y(std::move(value), std::move(node), id);
    if (observed()) [[unlikely]] {
        const Variable inputs[] = {edges.input...};
        notify_forward(row, attributes(), inputs, y);
    }
    return y;
}

inline Attributes no_attributes() { return {}; }

}  // namespace detail

/// The result of an op: `value`, computed from the inputs of the edges. `attributes` is called
/// only while someone observes.
template <std::invocable<> A, class... E>
requires(detail::is_edge<E>&&...) Variable
    record(const OpRow& row, Tensor value, const A& attributes, const E&... edges) {
    return detail::recorded(row, std::move(value), attributes, edges...);
}

template <class... E>
requires(sizeof...(E) > 0 && (detail::is_edge<E> && ...)) Variable
    record(const OpRow& row, Tensor value, const E&... edges) {
    return detail::recorded(row, std::move(value), detail::no_attributes, edges...);
}

/// As `record` with the value that `compute` gives; when it throws an Error, its text tells the
/// names of the inputs.
template <std::invocable<> C, std::invocable<> A, class... E>
requires(detail::is_edge<E>&&...) Variable
    record(const OpRow& row, const C& compute, const A& attributes, const E&... edges) {
    return detail::recorded(row, detail::computed(row, compute, edges.input...), attributes,
                            edges...);
}

template <std::invocable<> C, class... E>
requires(sizeof...(E) > 0 && (detail::is_edge<E> && ...)) Variable
    record(const OpRow& row, const C& compute, const E&... edges) {
    return detail::recorded(row, detail::computed(row, compute, edges.input...),
                            detail::no_attributes, edges...);
}

/// An op of any number of inputs; the gradient of input i is rule(i, gy).
template <std::invocable<> A, class Rule>
Variable record_many(const OpRow& row, Tensor value, const A& attributes,
                     std::span<const Variable> inputs, Rule rule) {
    const std::int64_t id = detail::next_id();
    detail::NodePtr node;
    bool wanted = false;
    for (const Variable& x : inputs) wanted = wanted || x.requires_grad();
    if (wanted && grad_enabled()) {
        node = detail::make_node<detail::ManyNode<Rule>>(row, value, id, inputs, std::move(rule));
    }
    Variable y(std::move(value), std::move(node), id);
    if (detail::observed()) detail::notify_forward(row, attributes(), inputs, y);
    return y;
}

/// An op whose gradients share nearly all of their work. They are computed by one call of
/// rule(gy, read, wanted), for a gy that is a Tensor in the usual pass and a Variable when the pass
/// is recorded or watched: an array with one gradient an input, undefined where wanted[i] is false.
/// `read` holds `saved`, `kept` (what was computed beside the result) and, when `result` is given
/// as the last argument, the result. Inputs and what is saved or kept may be undefined, as an
/// optional bias is. All of it is held while one input wants a gradient.
template <std::invocable<> A, std::size_t N, std::size_t S, std::size_t K, class Rule,
          std::same_as<ResultTag>... R>
Variable record_joint(const OpRow& row, Tensor value, const A& attributes,
                      const std::array<const Variable*, N>& inputs,
                      const std::array<const Variable*, S>& saved, std::array<Tensor, K> kept,
                      const Rule& rule, R... /*result*/) {
    const std::int64_t id = detail::next_id();
    detail::NodePtr node;
    bool wanted = false;
    for (const Variable* x : inputs) wanted = wanted || x->requires_grad();
    if (wanted && grad_enabled()) {
        node = detail::make_node<detail::JointNode<N, S, K, (sizeof...(R) > 0), Rule>>(
            row, value, id, inputs, saved, std::move(kept), rule);
    }
    Variable y(std::move(value), std::move(node), id);
    if (detail::observed()) [[unlikely]] {
        std::vector<Variable> given;
        for (const Variable* x : inputs) {
            if (x->defined()) given.push_back(*x);
        }
        detail::notify_forward(row, attributes(), given, y);
    }
    return y;
}

/// The result of an op that has no derivative (a row without `backward`). Throws GraphError when a
/// gradient would be lost: grad mode is on and an input requires one.
Variable record_without_derivative(const OpRow& row, Tensor value,
                                   std::span<const Variable> inputs);

}  // namespace glassgrad
