#include <glassgrad/autograd/node.hpp>
#include <glassgrad/autograd/record.hpp>
#include <glassgrad/tensor/error.hpp>
#include <glassgrad/tensor/memory.hpp>

#include <string>

namespace glassgrad {
namespace detail {

namespace {
constinit thread_local Node* dead = nullptr;
constinit thread_local bool burying = false;
constinit Counter ids{0};
constinit thread_local std::int64_t replayed_id = 0;
}  // namespace

std::int64_t next_id() noexcept { return replayed_id != 0 ? replayed_id++ : ids.next(); }

ReplayedIds::ReplayedIds(std::int64_t first) noexcept
    : previous_(std::exchange(replayed_id, first)) {}
ReplayedIds::~ReplayedIds() { replayed_id = previous_; }

void* allocate_node(std::size_t bytes) { return pool_allocate(bytes); }
void free_node(void* block, std::size_t bytes) noexcept { pool_free(block, bytes); }

Node::Node(const OpRow& op_row, const Tensor& value, std::int64_t number)
    : id(number), row(&op_row), scope(current_scope()), pending(Elements::place_for(value)) {}
Node::~Node() = default;

// A node's destructor drops the nodes of its inputs, which come back here: they wait in a list
// instead of nesting, so a chain of any length is freed in constant stack.
void dispose(Node* node) noexcept {
    node->next_dead = dead;
    dead = node;
    if (burying) return;
    burying = true;
    while (dead) {
        Node* next = std::exchange(dead, dead->next_dead);
        const std::size_t bytes = next->block_bytes;
        next->~Node();
        free_node(next, bytes);
    }
    burying = false;
}

Variable result_variable(const Tensor& value, Node& node) {
    return Variable(Tensor(value), NodePtr::share(&node), node.id);
}

void name_operands(Error& error, const OpRow& row, std::span<const Variable* const> inputs) {
    const std::vector<std::string> names = input_names(row, inputs.size());
    std::string text;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i]->defined() || inputs[i]->name().empty()) continue;
        text += (text.empty() ? "" : ", ") + names[i] + " is '" + inputs[i]->name() + "'";
    }
    if (!text.empty()) error.name_operands(text);
}

}  // namespace detail

Variable record_without_derivative(const OpRow& row, Tensor value,
                                   std::span<const Variable> inputs) {
    if (grad_enabled()) {
        for (const Variable& x : inputs) {
            if (!x.requires_grad()) continue;
            throw GraphError(std::string(row.name) + ": has no derivative, and " + describe(x) +
                                 " requires a gradient, which would be lost",
                             "compute it under NoGrad, or on x.detach()");
        }
    }
    Variable y(std::move(value));
    if (detail::observed()) detail::notify_forward(row, {}, inputs, y);
    return y;
}

}  // namespace glassgrad
