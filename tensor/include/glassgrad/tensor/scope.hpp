#pragma once
// Where the program is: a thread's stack of names (`blocks.1.attention`). Errors print it,
// graph nodes and traces keep it. Nothing here knows what a layer is.

#include <string>
#include <string_view>

namespace glassgrad {

/// One node of the tree of names that a thread has entered; nodes live as long as the program.
struct ScopeNode {
    const ScopeNode* parent = nullptr;
    std::string name;
    std::string path;  ///< dotted, `blocks.1.attention`; empty for the root
};

namespace detail {
/// Where this thread is; null outside of all scopes.
inline constinit thread_local const ScopeNode* scope_here = nullptr;
extern const ScopeNode& outermost_scope;
}  // namespace detail

/// Enters `name` below the current scope for the lifetime of the object. An empty name is a no-op.
class Scope {
  public:
    explicit Scope(std::string_view name);
    ~Scope() { detail::scope_here = previous_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

  private:
    const ScopeNode* previous_;
};

/// The innermost scope of this thread; never null (the root has an empty path).
inline const ScopeNode* current_scope() noexcept {
    const ScopeNode* const scope = detail::scope_here;
    return scope ? scope : &detail::outermost_scope;
}

/// Puts a thread back into a scope it was in before (the backward pass of a node, for example).
class ScopeRestore {
  public:
    explicit ScopeRestore(const ScopeNode* scope) noexcept : previous_(detail::scope_here) {
        move_to(scope);
    }
    ~ScopeRestore() { detail::scope_here = previous_; }
    /// Goes on to another scope; stays for null.
    void move_to(const ScopeNode* scope) noexcept {
        if (scope) detail::scope_here = scope;
    }
    ScopeRestore(const ScopeRestore&) = delete;
    ScopeRestore& operator=(const ScopeRestore&) = delete;

  private:
    const ScopeNode* previous_;
};

}  // namespace glassgrad
