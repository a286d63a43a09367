#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/memory.hpp>
#include <glassgrad/tensor/ops.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ostream>

namespace glassgrad {
namespace {

constexpr OpRow leaf_row{.name = "leaf", .forward = "", .backward = ""};

detail::NodePtr leaf_node(const Tensor& value, std::int64_t id) {
    detail::NodePtr node = detail::make_node<detail::Node>(leaf_row, value, id);
    node->is_leaf = true;
    return node;
}

void require_fit(std::string_view op, const Tensor& given, const Variable& x) {
    const std::string whose = x.name().empty() ? "" : fmt::format(" of '{}'", x.name());
    if (given.shape() != x.shape()) {
        throw ShapeError(fmt::format("{}: the value{} has shape {}, got {}", op, whose,
                                     to_string(x.shape()), to_string(given.shape())));
    }
    if (given.dtype() != x.dtype()) {
        throw TypeError(fmt::format("{}: the value{} is {}, got {}", op, whose, name(x.dtype()),
                                    name(given.dtype())),
                        "convert it with astype");
    }
}

}  // namespace

namespace detail {

VariableState::VariableState(Tensor&& tensor, NodePtr&& origin, std::int64_t number)
    : id(number), value(std::move(tensor)), node(std::move(origin)) {}
VariableState::~VariableState() {
    (void)Counted<VariableState>::adopt(kept.load(std::memory_order_acquire));
}

void dispose(VariableState* state) noexcept {
    state->~VariableState();
    pool_free(state, sizeof(VariableState));
}

}  // namespace detail

Variable::Variable(Tensor value) : Variable(std::move(value), {}, detail::next_id()) {}

Variable::Variable(Tensor&& value, detail::NodePtr node, std::int64_t id) {
    void* block = detail::pool_allocate(sizeof(detail::VariableState));
    state_ = detail::Counted<detail::VariableState>::adopt(
        new (block) detail::VariableState(std::move(value), std::move(node), id));
}

void Variable::throw_undefined() {
    throw ValueError("variable: undefined (default-constructed or moved from)");
}

bool Variable::is_leaf() const noexcept {
    return !state_ || !state_->node || state_->node->is_leaf;
}

std::string_view Variable::op() const noexcept {
    return is_leaf() ? std::string_view() : state_->node->row->name;
}

Variable& Variable::set_name(std::string_view name) {
    state().name = name;
    return *this;
}

Tensor Variable::grad() const {
    const detail::NodePtr& origin = node();
    return origin && origin->extra ? origin->extra->grad : Tensor();
}

void Variable::set_grad(Tensor gradient) {
    if (!node()) {
        throw GraphError("set_grad: " + describe(*this) + " requires no gradient",
                         "make it a parameter first");
    }
    if (gradient.defined()) require_fit("set_grad", gradient, *this);
    node()->more().grad = std::move(gradient);
}

void Variable::zero_grad() {
    if (node() && node()->extra) node()->extra->grad = Tensor();
}

void Variable::retain_grad() {
    if (!node()) {
        throw GraphError("retain_grad: " + describe(*this) + " requires no gradient",
                         "it was computed from constants or under NoGrad");
    }
    node()->more().retain_grad = true;
}

std::int64_t Variable::register_hook(GradientHook hook) {
    if (!node()) {
        throw GraphError("register_hook: " + describe(*this) + " requires no gradient",
                         "it was computed from constants or under NoGrad");
    }
    detail::NodeExtra& extra = node()->more();
    extra.hooks.emplace_back(++extra.hook_count, std::move(hook));
    return extra.hook_count;
}

void Variable::remove_hook(std::int64_t number) {
    if (!node() || !node()->extra) return;
    std::erase_if(node()->extra->hooks, [&](const auto& hook) { return hook.first == number; });
}

void Variable::require_leaf(std::string_view op) const {
    if (state().frozen) {
        throw GraphError(fmt::format("{}: {} is what a graph keeps of a leaf", op, describe(*this)),
                         "write to the leaf itself");
    }
    if (is_leaf()) return;
    throw GraphError(fmt::format("{}: {} is the result of {}; writing to it would lose its "
                                 "gradient",
                                 op, describe(*this), this->op()),
                     "use detach() for a constant copy");
}

Variable Variable::kept_leaf() const {
    using detail::VariableState;
    VariableState& leaf = state();
    if (leaf.frozen) return *this;
    Variable copy;
    VariableState* found = leaf.kept.load(std::memory_order_acquire);
    if (found && found->value.shares_buffer_with(leaf.value)) {
        copy.state_ = detail::Counted<VariableState>::share(found);
        return copy;
    }
    copy = Variable(Tensor(leaf.value), leaf.node, leaf.id);
    copy.state_->name = leaf.name;
    copy.state_->frozen = true;
    // The leaf was written to through a reference older than the copy, which is left alone: other
    // threads may be reading it.
    if (found) return copy;
    // Readers of one leaf on several threads may meet here: the first copy stays.
    VariableState* mine = detail::Counted<VariableState>(copy.state_).release();
    if (leaf.kept.compare_exchange_strong(found, mine, std::memory_order_acq_rel)) return copy;
    (void)detail::Counted<VariableState>::adopt(mine);
    copy.state_ = detail::Counted<VariableState>::share(found);
    return copy;
}

void Variable::forget_kept() noexcept {
    if (!state_->kept.load(std::memory_order_acquire)) return;
    (void)detail::Counted<detail::VariableState>::adopt(
        state_->kept.exchange(nullptr, std::memory_order_acq_rel));
}

void Variable::set_requires_grad(bool wanted) {
    if (!is_leaf()) {
        throw GraphError(
            fmt::format("set_requires_grad: {} is the result of {}", describe(*this), op()),
            "only leaves can be changed; use detach() for a constant copy");
    }
    forget_kept();
    if (!wanted) {
        state().node = {};
    } else if (!state().node) {
        if (!is_floating(dtype())) {
            throw TypeError(
                fmt::format("set_requires_grad: a {} tensor of shape {} has no gradient",
                            glassgrad::name(dtype()), to_string(shape())),
                "convert it with astype(f32) or astype(f64)");
        }
        state().node = leaf_node(value(), id());
    }
}

void Variable::set_value(Tensor value) {
    require_leaf("set_value");
    require_fit("set_value", value, *this);
    forget_kept();
    state().value = std::move(value);
}

Tensor& Variable::mutable_value() {
    require_leaf("mutable_value");
    forget_kept();
    return state().value;
}

Variable Variable::detach() const { return Variable(value()); }

Variable parameter(Tensor value, std::string_view name) {
    if (!value.defined()) throw ValueError("parameter: the tensor is undefined");
    Variable x(std::move(value));
    x.set_name(name);
    if (!is_floating(x.dtype())) {
        throw TypeError(fmt::format("parameter: a {} tensor of shape {} has no gradient",
                                    glassgrad::name(x.dtype()), to_string(x.shape())),
                        "convert it with astype(f32) or astype(f64)");
    }
    x.set_requires_grad(true);
    return x;
}

std::string describe(const Variable& x) {
    if (!x.defined()) return "an undefined variable";
    const std::string what = x.is_leaf() ? (x.requires_grad() ? "parameter" : "constant")
                                         : fmt::format("result of {}", x.op());
    return x.name().empty() ? fmt::format("{} of shape {}", what, to_string(x.shape()))
                            : fmt::format("'{}' of shape {}", x.name(), to_string(x.shape()));
}

std::ostream& operator<<(std::ostream& out, const Variable& x) {
    return x.defined() ? out << x.value() : out << "undefined";
}

}  // namespace glassgrad
