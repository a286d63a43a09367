#pragma once
// Reference counts that cost an ordinary increment while the program has one thread.

#include <atomic>
#include <cstdint>
#include <utility>

#if __has_include(<sys/single_threaded.h>) && !defined(__SANITIZE_THREAD__)
#include <sys/single_threaded.h>
#define GLASSGRAD_SINGLE_THREADED __libc_single_threaded
#else
#define GLASSGRAD_SINGLE_THREADED false
#endif

namespace glassgrad::detail {

/// A counter that is atomic once a second thread exists.
class Counter {
  public:
    explicit constexpr Counter(std::int64_t value) noexcept : value_(value) {}

    void increment() noexcept {
        if (GLASSGRAD_SINGLE_THREADED) {
            value_.store(value_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        } else {
            value_.fetch_add(1, std::memory_order_relaxed);
        }
    }
    /// True when the count fell to zero. Whoever sees a count of 1 holds the only reference, which
    /// nobody can copy meanwhile, and needs no atomic operation to drop it.
    bool decrement() noexcept {
        const std::int64_t count = value_.load(std::memory_order_acquire);
        if (count == 1) return true;
        if (GLASSGRAD_SINGLE_THREADED) {
            value_.store(count - 1, std::memory_order_relaxed);
            return false;
        }
        return value_.fetch_sub(1, std::memory_order_acq_rel) == 1;
    }
    /// The next value of a growing sequence.
    std::int64_t next() noexcept {
        if (GLASSGRAD_SINGLE_THREADED) {
            const std::int64_t value = value_.load(std::memory_order_relaxed) + 1;
            value_.store(value, std::memory_order_relaxed);
            return value;
        }
        return value_.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    std::int64_t load() const noexcept { return value_.load(std::memory_order_acquire); }

  private:
    std::atomic<std::int64_t> value_;
};

/// Owning handle of a T with a member `Counter references` and a free function `dispose(T*)`.
template <class T>
class Counted {
  public:
    constexpr Counted() noexcept = default;
    /// Takes over one reference that the caller holds.
    static Counted adopt(T* pointer) noexcept {
        Counted handle;
        handle.pointer_ = pointer;
        return handle;
    }
    /// Adds a reference.
    static Counted share(T* pointer) noexcept {
        if (pointer) pointer->references.increment();
        return adopt(pointer);
    }
    Counted(const Counted& other) noexcept : pointer_(other.pointer_) {
        if (pointer_) pointer_->references.increment();
    }
    Counted(Counted&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
    Counted& operator=(const Counted& other) noexcept {
        if (this != &other) *this = Counted(other);
        return *this;
    }
    Counted& operator=(Counted&& other) noexcept {
        T* const before = std::exchange(pointer_, std::exchange(other.pointer_, nullptr));
        if (before && before->references.decrement()) dispose(before);
        return *this;
    }
    ~Counted() {
        if (pointer_ && pointer_->references.decrement()) dispose(pointer_);
    }

    T* get() const noexcept { return pointer_; }
    T* operator->() const noexcept { return pointer_; }
    T& operator*() const noexcept { return *pointer_; }
    explicit operator bool() const noexcept { return pointer_ != nullptr; }
    /// Gives up the reference without dropping it.
    T* release() noexcept { return std::exchange(pointer_, nullptr); }

  private:
    T* pointer_ = nullptr;
};

}  // namespace glassgrad::detail
