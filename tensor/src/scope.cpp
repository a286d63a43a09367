// A thread's tree of scopes grows by the distinct paths it enters and is never freed: graph nodes
// and traces point into it, possibly from other threads.

#include <glassgrad/tensor/scope.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

namespace glassgrad {
namespace {

struct OwnedScope : ScopeNode {
    std::vector<std::unique_ptr<OwnedScope>> children;
};

/// Where every thread is that entered nothing; never destroyed.
union Outside {
    ScopeNode node{};
    // Defaulted ones would be deleted. NOLINTBEGIN(modernize-use-equals-default)
    Outside() {}
    ~Outside() {}
    // NOLINTEND(modernize-use-equals-default)
};
Outside outside;

/// Roots of all threads; leaked on purpose so that paths outlive every static object.
OwnedScope* new_root() {
    static std::mutex mutex;
    static auto* roots = new std::vector<std::unique_ptr<OwnedScope>>;
    const std::lock_guard lock(mutex);
    roots->push_back(std::make_unique<OwnedScope>());
    return roots->back().get();
}

constinit thread_local OwnedScope* root = nullptr;

OwnedScope* child(OwnedScope* parent, std::string_view name) {
    const auto found = std::find_if(parent->children.begin(), parent->children.end(),
                                    [&](const auto& node) { return node->name == name; });
    if (found != parent->children.end()) return found->get();
    auto node = std::make_unique<OwnedScope>();
    node->parent = parent;
    node->name = name;
    node->path = parent->path.empty() ? node->name : parent->path + '.' + node->name;
    parent->children.push_back(std::move(node));
    return parent->children.back().get();
}

/// The scope that this thread enters names from.
OwnedScope* here() {
    const ScopeNode* const current = detail::scope_here;
    if (current && current != &outside.node) {
        return const_cast<OwnedScope*>(static_cast<const OwnedScope*>(current));
    }
    if (!root) root = new_root();
    return root;
}

}  // namespace

constinit const ScopeNode& detail::outermost_scope = outside.node;

Scope::Scope(std::string_view name) : previous_(detail::scope_here) {
    if (!name.empty()) detail::scope_here = child(here(), name);
}

}  // namespace glassgrad
