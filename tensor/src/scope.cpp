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

/// Roots of all threads; leaked on purpose so that paths outlive every static object.
OwnedScope* new_root() {
    static std::mutex mutex;
    static auto* roots = new std::vector<std::unique_ptr<OwnedScope>>;
    const std::lock_guard lock(mutex);
    roots->push_back(std::make_unique<OwnedScope>());
    return roots->back().get();
}

constinit thread_local OwnedScope* current = nullptr;

OwnedScope* here() {
    if (!current) current = new_root();
    return current;
}

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

OwnedScope* owned(const ScopeNode* scope) {
    return const_cast<OwnedScope*>(static_cast<const OwnedScope*>(scope));
}

}  // namespace

Scope::Scope(std::string_view name) : previous_(here()) {
    if (!name.empty()) current = child(current, name);
}
Scope::~Scope() { current = owned(previous_); }

const ScopeNode* current_scope() noexcept { return here(); }

ScopeRestore::ScopeRestore(const ScopeNode* scope) noexcept : previous_(here()) {
    if (scope) current = owned(scope);
}
ScopeRestore::~ScopeRestore() { current = owned(previous_); }

}  // namespace glassgrad
