#pragma once
// A number of threads for the length of a scope.

#include <glassgrad/tensor/threads.hpp>

namespace glassgrad::testing {

/// Puts the number of threads back.
class Threads {
  public:
    explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
    ~Threads() { set_num_threads(before_); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

  private:
    int before_;
};

}  // namespace glassgrad::testing
