#pragma once
// Whether this thread records what it computes.

namespace glassgrad {

namespace detail {
inline constinit thread_local bool grad_mode = true;
}  // namespace detail

/// True while operations on Variables are recorded for derivatives.
inline bool grad_enabled() noexcept { return detail::grad_mode; }

/// Sets the mode of this thread for the lifetime of the object.
class GradMode {
  public:
    explicit GradMode(bool enabled) noexcept : previous_(detail::grad_mode) {
        detail::grad_mode = enabled;
    }
    ~GradMode() { detail::grad_mode = previous_; }
    GradMode(const GradMode&) = delete;
    GradMode& operator=(const GradMode&) = delete;

  private:
    bool previous_;
};

/// Nothing is recorded while one of these lives.
class NoGrad : public GradMode {
  public:
    NoGrad() noexcept : GradMode(false) {}
};

}  // namespace glassgrad
