#pragma once

#include <glassgrad/tensor/memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace glassgrad::detail {

/// Memory of one task, given back at its end.
template <class T>
class Scratch {
  public:
    explicit Scratch(std::int64_t count)
        : bytes_(sizeof(T) * static_cast<std::size_t>(std::max<std::int64_t>(1, count))),
          data_(static_cast<T*>(pool_allocate(bytes_))) {}
    ~Scratch() { pool_free(data_, bytes_); }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    T* get() const noexcept { return data_; }

  private:
    std::size_t bytes_;
    T* data_;
};

}  // namespace glassgrad::detail
