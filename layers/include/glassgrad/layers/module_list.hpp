#pragma once

#include <glassgrad/layers/module.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace glassgrad {

/// Modules of one class in a row, named "0", "1", … as torch.nn.ModuleList names them. Whoever owns
/// it registers it and calls its modules.
template <class T>
class ModuleList : public Module {
  public:
    /// Makes a module at the end and returns it.
    template <class... Arguments>
    T& append(Arguments&&... arguments) {
        modules_.push_back(std::make_unique<T>(std::forward<Arguments>(arguments)...));
        register_module(std::to_string(modules_.size() - 1), *modules_.back());
        return *modules_.back();
    }

    std::size_t size() const noexcept { return modules_.size(); }
    T& operator[](std::size_t i) { return *modules_[i]; }
    const T& operator[](std::size_t i) const { return *modules_[i]; }

    /// Opens the scope of the list, then calls f(number, module) for each.
    template <class F>
    void each(const F& f) const {
        const Scope scope = enter();
        for (std::size_t i = 0; i < modules_.size(); ++i) f(i, *modules_[i]);
    }

  private:
    std::vector<std::unique_ptr<T>> modules_;
};

}  // namespace glassgrad
