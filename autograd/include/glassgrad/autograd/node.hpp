#pragma once
// The graph: one node a recorded result, pointing at the nodes of its inputs. Nodes come from the
// pool, and are destroyed without recursion, however long the chain.

#include <glassgrad/autograd/op_row.hpp>
#include <glassgrad/autograd/variable.hpp>
#include <glassgrad/tensor/scope.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace glassgrad::detail {

/// Where a node puts the gradients of its inputs during a sweep: V is Tensor in the usual pass,
/// Variable when the pass itself is recorded or observed.
template <class V>
class Gradients {
  public:
    bool wanted(const Node* input) const noexcept;
    /// Undoes broadcasting, checks shape and type, and adds to what the input has already.
    virtual void put(std::size_t index, Node& input, V&& gradient) = 0;

  protected:
    explicit Gradients(std::int64_t sweep) noexcept : sweep_(sweep) {}
    ~Gradients() = default;
    std::int64_t sweep() const noexcept { return sweep_; }

  private:
    const std::int64_t sweep_;
};

/// What few nodes need.
struct NodeExtra {
    std::vector<std::pair<std::int64_t, GradientHook>> hooks;
    std::int64_t hook_count = 0;
    bool retain_grad = false;
    Tensor grad;
};

struct Node {
    Node(const OpRow& op_row, const Tensor& value, std::int64_t number);
    virtual ~Node();
    Node(const Node&) = delete;
    Node& operator=(const Node&) = delete;

    /// Nodes of the inputs; null for those that need no gradient. Empty for a leaf.
    virtual std::span<const NodePtr> inputs() const noexcept { return {}; }
    virtual void pull(const Tensor&, Gradients<Tensor>&) {}
    virtual void pull(const Variable&, Gradients<Variable>&) {}
    /// Variables that the pullbacks read, for observers.
    virtual void list_saved(std::vector<Variable>&) const {}
    /// The result computed and recorded again, for a node that `recomputes`: the sweep goes on
    /// into that graph instead of asking for gradients.
    virtual Variable recompute() { return {}; }
    /// Nodes of that graph have larger ids, others that it reads have not.
    virtual std::int64_t recomputes_from() const noexcept { return 0; }
    /// Drops what is saved for the pullbacks.
    virtual void release() noexcept {}

    const Shape& shape() const noexcept { return pending.shape(); }
    DType dtype() const noexcept { return pending.dtype(); }
    NodeExtra& more() {
        if (!extra) extra = std::make_unique<NodeExtra>();
        return *extra;
    }

    Counter references{1};
    std::int64_t id;
    const OpRow* row;
    const ScopeNode* scope;
    bool is_leaf = false;
    bool released = false;
    bool recomputes = false;
    std::size_t block_bytes = 0;
    std::unique_ptr<NodeExtra> extra;

    // State of the sweep that runs over this node, if one does.
    std::int64_t sweep = 0;
    std::size_t slot = 0;
    bool reached = false;
    bool asked_for = false;
    /// The gradient on its way; its shape and type are the value's, elements or not.
    Tensor pending;

    Node* next_dead = nullptr;
};

template <class V>
bool Gradients<V>::wanted(const Node* input) const noexcept {
    return input && input->sweep == sweep_;
}

/// The gradient that `backward` summed up, where it lies; null when there is none.
inline Tensor* gradient_of(const Variable& x) noexcept {
    Node* node = x.defined() ? x.node().get() : nullptr;
    return node && node->extra && node->extra->grad.defined() ? &node->extra->grad : nullptr;
}

/// Gives the ids from `first` on once more, to what this thread makes while the object lives.
class ReplayedIds {
  public:
    explicit ReplayedIds(std::int64_t first) noexcept;
    ~ReplayedIds();
    ReplayedIds(const ReplayedIds&) = delete;
    ReplayedIds& operator=(const ReplayedIds&) = delete;

  private:
    std::int64_t previous_;
};

void* allocate_node(std::size_t bytes);
void free_node(void* block, std::size_t bytes) noexcept;

/// Makes a node in pooled memory.
template <class N, class... Args>
NodePtr make_node(Args&&... args) {
    void* block = allocate_node(sizeof(N));
    N* node = nullptr;
    if constexpr (std::is_nothrow_constructible_v<N, Args...>) {
        node = new (block) N(std::forward<Args>(args)...);
    } else {
        try {
            node = new (block) N(std::forward<Args>(args)...);
        } catch (...) {
            free_node(block, sizeof(N));
            throw;
        }
    }
    node->block_bytes = sizeof(N);
    return NodePtr::adopt(node);
}

}  // namespace glassgrad::detail
