#pragma once
// The nodes of one sweep, marked with its number while it runs, in falling order of their ids:
// ids grow with creation, so a node comes before everything it was computed from.

#include <glassgrad/autograd/node.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace glassgrad::detail {

/// The number of another sweep.
std::int64_t next_sweep() noexcept;

class Reached {
  public:
    /// Everything behind `roots`; with `targets`, only what leads to one of them. Throws GraphError
    /// when another sweep runs over one of the nodes.
    Reached(std::span<const NodePtr> roots, const std::vector<NodePtr>* targets,
            std::int64_t sweep);
    ~Reached();
    Reached(const Reached&) = delete;
    Reached& operator=(const Reached&) = delete;

    bool holds(const Node* node) const noexcept { return node && node->sweep == number; }

    std::span<Node* const> nodes() const noexcept { return memory_.nodes; }

    /// The next node; null at the end.
    Node* next() noexcept {
        if (expansions_.empty()) [[likely]] {
            return position_ < memory_.nodes.size() ? memory_.nodes[position_++] : nullptr;
        }
        return next_of_expansions();
    }

    /// Takes the graph behind `root`, which was recorded again for `checkpoint`, to come before all
    /// that is left. Gives its nodes. Throws GraphError when it reads what `checkpoint` did not.
    std::span<Node* const> expand(NodePtr root, const Node& checkpoint);

    /// Marks a node as one whose gradient somebody will want after the sweep.
    void ask_for(Node& node);
    std::span<Node* const> asked_for() const noexcept { return memory_.asked_for; }

  private:
    /// Memory that sweeps of a thread use again; a nested sweep brings its own.
    struct Workspace {
        std::vector<Node*> nodes;
        std::vector<Node*> stack;
        std::vector<Node*> asked_for;
        bool busy = false;
    };
    /// A graph that a checkpoint recorded again.
    struct Expansion {
        NodePtr root;
        std::vector<Node*> nodes;
        std::size_t position = 0;
        bool asked_for = false;
    };

    static Workspace& workspace();
    void collect(std::span<const NodePtr> roots);
    void keep_paths_to(const std::vector<NodePtr>& targets);
    void collect(Expansion& expansion, const Node& checkpoint);
    Node* next_of_expansions() noexcept;
    void clear() noexcept;

    Workspace own_;
    Workspace& memory_;
    std::size_t position_ = 0;
    const bool has_targets_;
    std::vector<Expansion> expansions_;  // the innermost last
    std::vector<Expansion> finished_;    // those with nodes that are asked for

  public:
    const std::int64_t number;
};

}  // namespace glassgrad::detail
